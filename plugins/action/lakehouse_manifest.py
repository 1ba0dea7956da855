"""Run the module ``lakehouse_manifest``, or answer from what preflight has read.

``state: inputs`` sets the fact ``lakehouse_inputs``, the digest of all that the roles are given, and
``lakehouse_manifest_run``, which names this run. A second time in a run it sets ``lakehouse_inputs_same``:
whether the files are the same. ``state: compared`` sets ``lakehouse_settled``: whether the roles have nothing
to do on the host. Where they have, a run of all roles begins; check mode shows the differences instead.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from lakehouse.model import inputs


class ActionModule(ActionBase):
    """One call of the module, or none."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the facts, and in check mode each difference as a line of a diff."""
        variables = task_vars or {}
        super().run(tmp, variables)
        state = self._task.args["state"]
        if state == "inputs":
            return {"changed": False, "ansible_facts": self._inputs(variables)}
        if state == "compared":
            return self._compared(variables)
        return self._call(variables)

    def _compared(self, variables: dict[str, Any]) -> dict[str, Any]:
        lines = variables["ansible_facts"]["lakehouse_differences"]
        # Of a host whose roles need what those of another one register, the other one, too.
        together = self._templar.template(variables["lakehouse_compared_together"])
        hosts = [variables["hostvars"].raw_get(host)["ansible_facts"] for host in together]
        inputs_now = variables["ansible_facts"]["lakehouse_inputs"]
        settled = all(
            not facts.get("lakehouse_differences", [""])
            and facts.get("lakehouse_manifest_inputs") == inputs_now
            for facts in hosts
        )
        if not settled and not self._task.check_mode:
            result = self._call(variables, state="begun")
            if result.get("failed"):
                return result
        header = {"before_header": f"{variables['inventory_hostname']} as it is", "after_header": "manifest"}
        text = "".join(f"{line}\n" for line in lines)
        return {
            "changed": bool(lines) and self._task.check_mode,
            "diff": [{"before": text, "after": "", **header}] if lines else [],
            "ansible_facts": {"lakehouse_settled": settled},
        }

    def _call(self, variables: dict[str, Any], **arguments: str) -> dict[str, Any]:
        facts = variables["ansible_facts"]
        options = {
            "run": facts.get("lakehouse_manifest_run", ""),
            "inputs": facts.get("lakehouse_inputs", ""),
            **self._task.args,
            **arguments,
        }
        return dict(
            self._execute_module(module_name="lakehouse_manifest", module_args=options, task_vars=variables)
        )

    def _inputs(self, variables: dict[str, Any]) -> dict[str, Any]:
        earlier = variables["ansible_facts"]
        bill = str(variables.get("lakehouse_bill") or "")
        files = inputs.files(Path(variables["inventory_dir"]), bill)
        if before := earlier.get("lakehouse_inputs_files"):
            # The roles have set variables meanwhile: what may have been edited is a file.
            return {"lakehouse_inputs_same": files == before}
        return {
            "lakehouse_inputs_files": files,
            "lakehouse_inputs": f"{files} {self._variables(variables)}",
            "lakehouse_manifest_run": secrets.token_hex(8),
        }

    def _variables(self, variables: dict[str, Any]) -> str:
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

        return inputs.variables(hosts, evaluate)
