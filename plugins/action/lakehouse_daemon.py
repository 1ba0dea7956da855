"""Run the module ``daemon``; units that run are restarted on one host at a time.

Hosts are worked on side by side, so that a first start is as fast as the slowest of them. A unit that serves
and has to be restarted waits for its turn, which ends when it answers again. Where that fails, no other unit
is restarted in this run: they still serve. With ``restarts: false`` nothing that serves is restarted.

Several units of a host are a list, ``units``, whose entries are arguments of the module: one call looks at
all of them, and only those that are not as they should be are brought there, in the order of the list.
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

from lakehouse.model import evaluation

Result = dict[str, Any]
_OF_FILES = {"files", "units"}


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

    @classmethod
    def finalize_task_arg(cls, name: str, value: Any, templar: Any, context: Any) -> Any:
        """Leave what follows from a role's list of files to ``run``, which evaluates each variable once."""
        return value if name in _OF_FILES else super().finalize_task_arg(name, value, templar, context)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> Result:
        """Return the module's result; that of the last of ``units`` that was brought into its state."""
        variables = task_vars or {}
        super().run(tmp, variables)
        shared = {
            name: evaluation.evaluated(value, self._templar, variables) if name in _OF_FILES else value
            for name, value in self._task.args.items()
        }
        units = shared.pop("units") if "units" in shared else [shared]
        result: Result = {"changed": False, "action": "none"}
        for unit in self._unsettled(variables, units):
            before, result = result, self._bring(variables, {**shared, **unit})
            result["changed"] = before["changed"] or result.get("changed", False)
            if result.get("failed"):
                break
        return result

    def _unsettled(self, variables: dict[str, Any], units: list[Result]) -> list[Result]:
        """Return the units to change; all of them in check mode, where the host has no pending files."""
        if self._task.check_mode or len(units) == 1:
            return units
        result = self._call(variables, {"look": units, "manifest": self._task.args.get("manifest")})
        names = result.get("unsettled", [unit["name"] for unit in units])
        return [unit for unit in units if unit["name"] in names]

    def _bring(self, variables: dict[str, Any], arguments: Result) -> Result:
        """Bring a unit into the desired state."""
        restarts = boolean(arguments.get("restarts", True))
        if restarts and (self._task.check_mode or not arguments.get("turns", True)):
            return self._call(variables, arguments)
        result = self._call(variables, arguments | {"hold": True})
        if result.get("action") != "held" or not restarts:
            return result
        # Of this run alone, and shared by the processes of all its hosts.
        with turn(Path(constants.DEFAULT_LOCAL_TMP)) as file:
            name = arguments["name"]
            if failed := file.read():
                return {"failed": True, "msg": f"{name}: not restarted, because {failed} did not come back"}
            # Stands there, too, if this machine is lost on the way.
            file.write(f"{name} on {variables['inventory_hostname']}")
            file.flush()
            result = self._call(variables, arguments)
            if not result.get("failed"):
                file.truncate(0)
        return result

    def _call(self, variables: dict[str, Any], arguments: Result) -> Result:
        return dict(
            self._execute_module(module_name="lakehouse_daemon", module_args=arguments, task_vars=variables)
        )
