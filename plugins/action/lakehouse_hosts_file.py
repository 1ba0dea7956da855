"""Name every node in /etc/hosts, and let no name of this node lead to 127.0.1.1.

Argument: ``block``, the lines that stand between two marks. Everything else in the file stays as it is.
"""

from __future__ import annotations

import re
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

PATH = "/etc/hosts"
MARK = "# {mark} lakehouse nodes"
BEGIN = MARK.format(mark="BEGIN")
END = MARK.format(mark="END")
# The installer of Debian writes one, and a daemon that binds its own name then listens on loopback.
LOOPBACK = r"^127\.0\.1\.1\s"
# In a container the file is a mount, and cannot be renamed over.
SHARED = {"path": PATH, "unsafe_writes": True}


def is_settled(text: str, block: str) -> bool:
    """Whether the file has the block between its marks, and no line of LOOPBACK."""
    # Not by "\n": a line that came through a terminal ends otherwise.
    lines = text.splitlines()
    if BEGIN not in lines or END not in lines:
        return False
    found = lines[lines.index(BEGIN) + 1 : lines.index(END)]
    return found == block.splitlines() and not any(re.match(LOOPBACK, line) for line in lines)


class ActionModule(ActionBase):
    """A question to the host's shell, and modules where the answer is no."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return ``changed`` and what each module shows of it."""
        variables = task_vars or {}
        super().run(tmp, variables)
        block = self._task.args.get("block")
        if not isinstance(block, str):
            raise AnsibleActionFail(
                "lakehouse_hosts_file needs 'block'; see plugins/action/lakehouse_hosts_file.py"
            )
        answer = self._low_level_execute_command(f"cat {PATH}")
        if answer["rc"] == 0 and is_settled(str(answer["stdout"]), block):
            return {"changed": False}
        changes: dict[str, dict[str, Any]] = {
            "lineinfile": {"regexp": LOOPBACK, "state": "absent"},
            "blockinfile": {"marker": MARK, "block": block, "mode": "0644"},
        }
        done: list[dict[str, Any]] = []
        for name, arguments in changes.items():
            result = self._execute_module(
                module_name=f"ansible.builtin.{name}", module_args=SHARED | arguments, task_vars=variables
            )
            if result.get("failed"):
                return dict(result)
            done.append(result)
        shown = [one for result in done for one in _diffs(result)]
        return {"changed": any(result.get("changed") for result in done), "diff": shown}


def _diffs(result: dict[str, Any]) -> list[dict[str, Any]]:
    found = result.get("diff") or []
    return list(found) if isinstance(found, list) else [found]
