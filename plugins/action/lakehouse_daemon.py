"""Run the module ``daemon``; units that run are restarted on one host at a time.

Hosts are worked on side by side, so that a first start is as fast as the slowest of them. A unit that serves
and has to be restarted waits for its turn, which ends when it answers again. Where that fails, nobody else's
is restarted in this run: they still serve. With ``restarts: false`` nothing that serves is restarted.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ansible import constants
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

Result = dict[str, Any]


@contextmanager
def turn(folder: Path) -> Iterator[IO[str]]:
    """Wait until no other host of this run has it; what is in the file is who failed in his."""
    with (folder / "turn").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file


class ActionModule(ActionBase):
    """One call of the module, and another one for a restart."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> Result:
        """Return the module's result."""
        variables = task_vars or {}
        super().run(tmp, variables)
        restarts = boolean(self._task.args.get("restarts", True))
        if restarts and (self._task.check_mode or not self._task.args.get("turns", True)):
            return self._call(variables)
        result = self._call(variables, hold=True)
        if result.get("action") != "held" or not restarts:
            return result
        # Of this run alone, and shared by the processes of all its hosts.
        with turn(Path(constants.DEFAULT_LOCAL_TMP)) as file:
            if failed := file.read():
                name = self._task.args["name"]
                return {"failed": True, "msg": f"{name}: not restarted, because {failed} did not come back"}
            # Stands there, too, if this machine is lost on the way.
            file.write(f"{self._task.args['name']} on {variables['inventory_hostname']}")
            file.flush()
            result = self._call(variables)
            if not result.get("failed"):
                file.truncate(0)
        return result

    def _call(self, variables: dict[str, Any], **more: object) -> Result:
        arguments = {**self._task.args, **more}
        return dict(
            self._execute_module(module_name="lakehouse_daemon", module_args=arguments, task_vars=variables)
        )
