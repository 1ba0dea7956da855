"""Run the module ``lakehouse_preflight`` on a host and turn what it found into lines.

Takes the module's options, and ``max_clock_offset_seconds``. Sizes in the inventory are compared with the
memory that the module found. The result is failed if there is a finding; the caller decides whether that
ends the play at once or is collected first. A host that cannot be reached, or has no Python, is a finding
like any other, so that one run shows all there is to mend.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleUndefinedVariable
from ansible.plugins.action import ActionBase

from lakehouse.next_command import PROGRAM, command
from lakehouse.validation import Finding, identity, memory, report


def clock_offset(before: float, started: float, finished: float, after: float) -> float:
    """Return by how many seconds a remote clock is certainly ahead (negative: behind), 0 if it may be right.

    The remote clock was read as ``started`` and ``finished`` between the local ``before`` and ``after``;
    the travel times are part of the uncertainty and never taken for an offset.
    """
    least, most = finished - after, started - before
    return max(least, 0.0) + min(most, 0.0)


class ActionModule(ActionBase):
    """One module call per host."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the findings as ``msg`` and ``lines``, failed if there are any."""
        variables = task_vars or {}
        super().run(tmp, variables)
        options = dict(self._task.args)
        tolerance = float(options.pop("max_clock_offset_seconds", 1))
        host = str(variables["inventory_hostname"])
        findings, module_result = self._look(host, options, tolerance, variables)
        lines = [str(finding) for finding in findings]
        result = {"changed": False, "failed": bool(lines), "msg": report(findings), "lines": lines}
        # Facts that the following play would otherwise gather.
        read = {"lakehouse_differences": "differences", "lakehouse_manifest_inputs": "inputs"}
        facts = (
            {fact: module_result[name] for fact, name in read.items()} | module_result["facts"]
            if module_result
            else {}
        )
        return {**result, "ansible_facts": facts, "datanodes": module_result.get("datanodes", [])}

    def _look(
        self, host: str, options: dict[str, Any], tolerance: float, variables: dict[str, Any]
    ) -> tuple[list[Finding], dict[str, Any]]:
        """Return the findings, and the module's result, which is empty if the module could not run."""
        before = time.time()
        try:
            result = self._execute_module(
                module_name="lakehouse_preflight", module_args=options, task_vars=variables
            )
        except AnsibleConnectionFailure as error:
            advice = f"check the address, the key and the machine: ansible {host} -m ansible.builtin.ping"
            return [Finding("net.ssh", host, f"unreachable: {_last_line(str(error))}", advice)], {}
        after = time.time()
        if result.get("failed"):
            reason = _last_line(str(result.get("module_stderr") or result.get("msg")))
            advice = f"check Python and sudo: ansible {host} --become -m ansible.builtin.ping"
            return [Finding("node.python", host, f"cannot run a module: {reason}", advice)], {}
        findings = [Finding(**{"host": host, **_pasted(row, variables)}) for row in result["findings"]]
        set_sizes = self._sizes(options.get("services", []), variables, result["memory_mb"])
        findings += memory.sizes(host, set_sizes, result["memory_mb"])
        if result["formats"]:
            findings += identity.example(host, options.get("cluster_id", ""), options["addresses"].values())
        offset = clock_offset(before, result["started"], result["finished"], after)
        if abs(offset) > tolerance:
            side = "ahead of" if offset > 0 else "behind"
            fact = f"the clock is {abs(offset):.1f} s {side} the control machine's"
            advice = "set both clocks by NTP: timedatectl set-ntp true"
            findings.append(Finding("time.offset", host, fact, advice, f"at most {tolerance:g} s"))
        return findings, dict(result)

    def _sizes(
        self, services: list[dict[str, Any]], variables: dict[str, Any], memory_mb: int
    ) -> dict[str, int]:
        """Return the set sizes of this host's services; shares refer to the machine's memory."""
        available = variables | {"ansible_facts": {"memtotal_mb": memory_mb}}
        templar = self._templar.copy_with_new_env(available_variables=available)
        sizes = {}
        for name in memory.variables(services):
            if name in variables:
                with suppress(AnsibleUndefinedVariable):  # it refers to another fact
                    sizes[name] = int(templar.template(variables[name]))
        return sizes


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no reason given"


def _pasted(row: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding with the inventory in its command, which the host cannot name."""
    action = str(row["action"])
    if not action.startswith(PROGRAM):
        return dict(row)
    return {**row, "action": command(action.removeprefix(PROGRAM).strip(), variables["inventory_dir"])}
