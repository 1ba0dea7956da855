"""Sizes of every service on every host, by the model in lakehouse/sizing/: ``lookup('sizes')``.

Takes no terms and returns a dict by host, of values by the names of variables (MiB, cores, counts). Only the
inventory's own values count as set, so that a role's default may use this lookup. It reads every host's
variables: a play calls it once and stores the result (playbooks/tasks/shared.yml).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible.errors import AnsibleTemplateError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.lookup import LookupBase

from lakehouse.model import services
from lakehouse.sizing import placed, plan
from lakehouse.validation import Finding
from lakehouse.validation.sizes import judged

SWITCHES = {row.switch for row in services.load().services.values() if row.switch}
# A task on a host is a process of its own, in which no fact changes: the first answer is every answer.
_ANSWER: list[dict[str, dict[str, int]]] = []


class LookupModule(LookupBase):
    """One answer for all hosts."""

    def run(self, _terms: list[Any], variables: dict[str, Any] | None = None, **_options: Any) -> list[Any]:
        """Return the sizes as the one element of a list."""
        if not _ANSWER:
            answer, findings = self._sizes(variables or {})
            if multiprocessing.parent_process() is None:
                return [answer]
            for finding in findings:
                self._display.display(str(finding), color=constants.COLOR_WARN)
            _ANSWER.append(answer)
        return [_ANSWER[0]]

    def _sizes(self, variables: Mapping[str, Any]) -> tuple[dict[str, dict[str, int]], list[Finding]]:
        """Return the sizes by host, and the findings on them if every machine is known."""
        hostvars, groups = variables["hostvars"], variables["groups"]
        # Shared variables of the cluster may be defaults, which only a play has.
        shared = {name: value for name, value in variables.items() if name.startswith("lakehouse_")}
        machines = {}
        settings: dict[str, Any] = {}
        for name in groups["all"]:
            value = self._reader(shared | dict(hostvars.raw_get(name)))
            settings = settings or {key: value(key) for key in placed.SETTINGS}
            member = {group for group, members in groups.items() if name in members}
            machines[name] = _machine(member, value)
        cluster = placed.cluster(machines, settings)
        size_plan = plan(cluster)
        all_known = all(machine.memory_mb for machine in machines.values())
        findings = judged(cluster, size_plan) if all_known else []
        return {name: dict(sizes) for name, sizes in size_plan.sizes.items()}, findings

    def _reader(self, raw: Mapping[str, Any]) -> Any:
        """Return a function from a name to the host's value, None if the inventory does not set it."""
        facts = raw.get("ansible_facts") or {}
        hardware = {"node_memory_mb": facts.get("memtotal_mb"), "node_cores": facts.get("processor_vcpus")}
        variables = {name: size for name, size in hardware.items() if size} | dict(raw)
        templar = self._templar.copy_with_new_env(available_variables=variables)

        def value(name: str) -> Any:
            if name not in variables:
                return None
            try:
                return (
                    templar.template(variables[name]) if isinstance(variables[name], str) else variables[name]
                )
            except (
                AnsibleTemplateError
            ):  # it refers to a fact or to a role's default, which is not available here
                return None

        return value


def _machine(groups: set[str], value: Any) -> placed.Machine:
    sizes = {name: size for name in placed.VARIABLES if (size := value(name)) is not None}
    switches = {name: boolean(value(name) or False) for name in SWITCHES}
    disk = value("node_disk_gb")
    if not disk:
        facts = value("ansible_facts") or {}
        disk = placed.disk_gb(facts.get("mounts") or [], value("lakehouse_datanode_dirs") or [])
    memory, cores = value("node_memory_mb"), value("node_cores")
    return placed.Machine(groups, sizes | switches, memory and int(memory), cores and int(cores), int(disk))
