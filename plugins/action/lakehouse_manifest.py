"""Run the module ``lakehouse_manifest``, and set facts from what it answers.

With ``state: inputs`` no host is asked: the fact ``lakehouse_inputs`` becomes the digest of all that the
roles are given, and ``lakehouse_manifest_run`` names this run. With ``compared`` the fact
``lakehouse_settled`` says whether the roles have nothing to do on the host.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from lakehouse import inputs


class ActionModule(ActionBase):
    """One call of the module, or none."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the facts, and in check mode each difference as a line of a diff."""
        variables = task_vars or {}
        super().run(tmp, variables)
        if self._task.args["state"] == "inputs":
            run = secrets.token_hex(8)
            facts = {"lakehouse_inputs": self._inputs(variables), "lakehouse_manifest_run": run}
            return {"changed": False, "ansible_facts": facts}
        arguments = {
            "run": variables["ansible_facts"].get("lakehouse_manifest_run", ""),
            "inputs": variables["ansible_facts"].get("lakehouse_inputs", ""),
            **self._task.args,
        }
        result = dict(
            self._execute_module(module_name="lakehouse_manifest", module_args=arguments, task_vars=variables)
        )
        if arguments["state"] != "compared" or result.get("failed"):
            return result
        lines = "".join(f"{line}\n" for line in result["differences"])
        header = {"before_header": f"{variables['inventory_hostname']} as it is", "after_header": "manifest"}
        return {
            **result,
            "changed": bool(lines) and self._task.check_mode,
            "diff": [{"before": lines, "after": "", **header}] if lines else [],
            "ansible_facts": {"lakehouse_settled": result["settled"]},
        }

    def _inputs(self, variables: dict[str, Any]) -> str:
        hostvars = variables["hostvars"]
        hosts = {host: dict(hostvars.raw_get(host)) for host in variables["groups"]["all"]}
        host_here = variables["inventory_hostname"]
        # Of defaults of roles, those that another source than the kit and the inventory decides.
        hosts[host_here] |= {
            name: value
            for name, value in variables.items()
            if isinstance(value, str) and inputs.OUTSIDE.search(value)
        }

        def evaluate(host: str, value: Any) -> Any:
            context = variables if host == host_here else hosts[host]
            templar = self._templar.copy_with_new_env(available_variables=context)
            try:
                return templar.template(value)
            except AnsibleError as error:
                raise ValueError(str(error)) from error

        return inputs.digest(Path(variables["inventory_dir"]), hosts, evaluate)
