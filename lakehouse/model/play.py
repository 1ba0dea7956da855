"""The hosts of a play, as readiness and gates count them, from the variables that Ansible gives a lookup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.template import Templar

from lakehouse.errors import LakehouseError
from lakehouse.model import endpoints, services

# Variables of probes. They are the same on all hosts.
SHARED = (
    "hdfs_replication",
    "lakehouse_ports",
    "lakehouse_target",
    "lakehouse_tls_authority",
    "lakehouse_users",
    "trino_catalog_properties",
)
PROFILE = "lakehouse_profile"


@dataclass(frozen=True)
class Host:
    """A host of the play. Most hosts are only counted: an address is read on demand."""

    name: str
    groups: frozenset[str]
    variables: Mapping[str, Any]
    hostvars: Any

    @property
    def address(self) -> str:
        """Its `ansible_host`."""
        return str(self.hostvars[self.name]["ansible_host"])


@dataclass(frozen=True)
class Cluster:
    """The play's hosts by group, and the current one. Preflight refuses hosts in maintenance mode."""

    host: Host
    groups: Mapping[str, tuple[Host, ...]]
    away: frozenset[str] = frozenset()

    def active(self, service: str) -> Host:
        """Return the host of a service that serves clients; LakehouseError if the play has none."""
        row = endpoints.service(service)
        return endpoints.first(row, self.running(row.groups[0]))

    def running(self, group: str) -> tuple[Host, ...]:
        """Return the hosts of a group; none if the profile excludes its services."""
        return self.groups.get(group, ())

    serving = running


def cluster(variables: Mapping[str, Any], templar: Templar) -> Cluster:
    """Return the hosts of the play; all of them have the variables of this one."""
    raw = {name: variables[name] for name in (*SHARED, PROFILE) if name in variables}
    values = templar.copy_with_new_env(available_variables=variables).template(raw)
    members = variables["groups"]
    hosts = {
        name: Host(
            name,
            frozenset(group for group, names in members.items() if name in names),
            values,
            variables["hostvars"],
        )
        for name in members["all"]
    }
    placed = services.load().placed(small=values[PROFILE] != services.FULL)
    groups = {
        group: tuple(map(hosts.__getitem__, names)) for group, names in members.items() if group in placed
    }
    return Cluster(hosts[variables["inventory_hostname"]], groups)


def row(name: str) -> services.Service:
    """Return the row of a service; AnsibleLookupError where there is none."""
    try:
        return endpoints.service(name)
    except LakehouseError as error:
        raise AnsibleLookupError(str(error)) from error
