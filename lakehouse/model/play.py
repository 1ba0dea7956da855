"""The hosts of a play, as readiness and gates count them, from the variables that Ansible gives a plugin."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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
    """Return the hosts of the play from a lookup's variables, which are templates."""
    raw = {name: variables[name] for name in (*SHARED, PROFILE) if name in variables}
    values = templar.copy_with_new_env(available_variables=variables).template(raw)
    return evaluated(values, variables["groups"], variables["hostvars"], variables["inventory_hostname"])


def evaluated(
    values: Mapping[str, Any], members: Mapping[str, Collection[str]], hostvars: Any, current: str
) -> Cluster:
    """Return the hosts of the play; all of them have the ``values`` of the current one."""
    hosts = {
        name: Host(
            name, frozenset(group for group, names in members.items() if name in names), values, hostvars
        )
        for name in members["all"]
    }
    placed = services.load().placed(small=values[PROFILE] != services.FULL)
    groups = {
        group: tuple(map(hosts.__getitem__, names)) for group, names in members.items() if group in placed
    }
    return Cluster(hosts[current], groups)


class Variables(Protocol):
    """Variables of a play: a mapping, or the context of a filter."""

    def __getitem__(self, name: str, /) -> Any:
        """Return a value."""

    def get(self, name: str, default: Any, /) -> Any:
        """Return a value, or the default."""


def running(variables: Variables, host: str) -> list[services.Service]:
    """Return the services of a host; a switch that its inventory leaves unsaid has the play's own value."""
    catalogue, host_variables = services.load(), variables["hostvars"][host]
    switches = {
        row.switch: host_variables.get(row.switch, variables.get(row.switch, False))
        for row in catalogue.services.values()
        if row.switch
    }
    small = variables[PROFILE] == services.CORE
    names = catalogue.running(host_variables["group_names"], switches, small=small)
    return [row for row in catalogue.services.values() if row.name in names]


def row(name: str) -> services.Service:
    """Return the row of a service; AnsibleLookupError where there is none."""
    try:
        return endpoints.service(name)
    except LakehouseError as error:
        raise AnsibleLookupError(str(error)) from error
