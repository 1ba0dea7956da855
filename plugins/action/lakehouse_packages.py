"""Install packages of Debian that are missing, and ask apt about nothing where none is.

Argument: ``name``, a list. Package lists that are older than a day are refreshed first.
"""

from __future__ import annotations

import shlex
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

# One line for each package that is installed, in the order of dpkg; and the package lists that are there.
INSTALLED = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\\n"]
LISTS = "ls /var/lib/apt/lists/*Release"
DAY = 86400


def missing(names: list[str], shown: str) -> list[str]:
    """Return the packages that are not among those that dpkg-query shows as installed."""
    return [name for name in names if f"installed {name}" not in shown.splitlines()]


class ActionModule(ActionBase):
    """A question to dpkg, and apt where the answer is no."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of apt, or ``changed: false``."""
        variables = task_vars or {}
        super().run(tmp, variables)
        names = self._task.args.get("name")
        if not isinstance(names, list) or not names:
            raise AnsibleActionFail(
                "lakehouse_packages needs 'name', a list; see plugins/action/lakehouse_packages.py"
            )
        # A package that dpkg has never heard of makes it fail; the others are shown all the same.
        shown = self._low_level_execute_command(shlex.join([*INSTALLED, *names]))["stdout"]
        lacking = missing(names, str(shown))
        if not lacking:
            return {"changed": False}
        # An image without package lists looks freshly updated to apt's module: it goes by the folder's age.
        lists = self._low_level_execute_command(LISTS)["rc"] == 0
        if self._task.check_mode and not lists:
            return {"changed": True, "msg": f"would install {', '.join(lacking)}"}
        arguments = {
            "name": names,
            "install_recommends": False,
            "lock_timeout": 120,
            "update_cache": True,
            "cache_valid_time": DAY if lists else 0,
        }
        return dict(
            self._execute_module(
                module_name="ansible.builtin.apt", module_args=arguments, task_vars=variables
            )
        )
