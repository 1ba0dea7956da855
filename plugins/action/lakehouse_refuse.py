"""End a play with findings, each of which is printed once.

Takes ``because``, what the findings are about, and ``findings``, their lines. ``ansible.builtin.fail`` would
say its whole message twice: as an error, and as the task's result.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleAction
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """One failure for all hosts."""

    BYPASS_HOST_LOOP = True
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail if there are findings: the error says why, the task's ``msg`` has the lines."""
        super().run(tmp, task_vars or {})
        _, options = self.validate_argument_spec(
            {"because": {"required": True}, "findings": {"type": "list", "elements": "str", "required": True}}
        )
        # Two hosts may know the same.
        lines = list(dict.fromkeys(options["findings"]))
        if not lines:
            return {"changed": False}
        message = "\n".join([f"findings: {len(lines)}", *lines])
        raise AnsibleAction(options["because"], result={"changed": False, "msg": message})
