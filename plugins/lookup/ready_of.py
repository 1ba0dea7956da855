"""Look up the readiness probes of a service on this host, from its row of services.yml.

``query('ready_of', 'metastore')`` is what `lakehouse_daemon` asks before the play goes on. Questions whose
answer depends on processes that the play starts later are left out. With ``joined=true`` they are among them,
and ``settled=true`` gives those that have to be right when every host of the play has started its daemons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from lakehouse import readiness, services
from lakehouse.nearest import did_you_mean

# Variables that probes are made of. They are the same on all hosts.
SHARED = ("lakehouse_ports", "lakehouse_users", "lakehouse_target", "trino_catalog_properties")
PROFILE = "lakehouse_profile"


@dataclass(frozen=True)
class Host:
    """A host of the play."""

    name: str
    address: str
    groups: frozenset[str]
    variables: Mapping[str, Any]


@dataclass(frozen=True)
class Cluster:
    """The play's hosts by group. Preflight has refused a run over hosts in maintenance."""

    hosts: tuple[Host, ...]
    groups: Mapping[str, tuple[Host, ...]]
    away: frozenset[str] = frozenset()

    def running(self, group: str) -> tuple[Host, ...]:
        """Return the hosts of a group; none where the profile leaves its services out."""
        return self.groups.get(group, ())

    serving = running


class LookupModule(LookupBase):
    """The probes of all terms, one after the other."""

    def run(
        self,
        terms: list[str],
        variables: Mapping[str, Any] | None = None,
        *,
        joined: bool = False,
        settled: bool = False,
        **_options: Any,
    ) -> list[readiness.Probe]:
        """Return the probes of the services that ``terms`` name."""
        known = variables or {}
        cluster = self._cluster(known)
        here = next(host for host in cluster.hosts if host.name == known["inventory_hostname"])
        found: list[readiness.Probe] = []
        for service in map(row, terms):
            questions = service.settled if settled else readiness.ready(service, alone=not joined)
            found += readiness.probes(cluster, service, questions, here)
        return found

    def _cluster(self, known: Mapping[str, Any]) -> Cluster:
        """Return the hosts of the play; all of them have the variables of this one."""
        raw = {name: known[name] for name in (*SHARED, PROFILE) if name in known}
        values = self._templar.copy_with_new_env(available_variables=known).template(raw)
        members = known["groups"]
        hosts = {
            name: Host(
                name,
                str(known["hostvars"][name]["ansible_host"]),
                frozenset(group for group, names in members.items() if name in names),
                values,
            )
            for name in members["all"]
        }
        placed = {
            group.name
            for group in services.load().groups.values()
            if values[PROFILE] == services.FULL or group.profile == services.CORE
        }
        groups = {
            group: tuple(map(hosts.__getitem__, names)) for group, names in members.items() if group in placed
        }
        return Cluster(tuple(hosts.values()), groups)


def row(name: str) -> services.Service:
    """Return the row of a service; AnsibleLookupError where there is none."""
    catalogue = services.load().services
    if name not in catalogue:
        raise AnsibleLookupError(
            f"services.yml has no service {name}{did_you_mean(name, catalogue)};"
            " next: correct the name in the role"
        )
    return catalogue[name]
