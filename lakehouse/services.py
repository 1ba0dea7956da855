"""The catalogue of services, `services.yml`, as immutable data: who runs what, as whom, on which ports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lakehouse import yamlfile
from lakehouse.errors import LakehouseError
from lakehouse.run import ROOT

FILE = ROOT / "services.yml"
KEY = "lakehouse_catalogue"
ONE, SOME, OPTIONAL = "one", "some", "optional"
CORE, FULL = "core", "full"
# In a condition it stands first.
_VARIABLE = re.compile(r"\b[a-z]\w*")


@dataclass(frozen=True)
class User:
    """Whom daemons run as: a key of `lakehouse_users`, with the account where an inventory names no other."""

    name: str
    account: str
    description: str


@dataclass(frozen=True)
class Group:
    """A group of the inventory: `hosts` is ONE, SOME or OPTIONAL; `band` and `label` are the picture's."""

    name: str
    hosts: str
    profile: str
    band: str
    label: str


@dataclass(frozen=True)
class Port:
    """A key of `lakehouse_ports`, with the number where an inventory names no other."""

    name: str
    number: int
    description: str


@dataclass(frozen=True)
class Service:
    """A systemd unit (a pattern, without `.service`) that the hosts of `groups` run.

    `instance` is what the pattern's star stands for, a template of the bill of materials. `user` is None
    where the package brings its own; `switch` is the variable that switches it on, None where it always runs;
    `leader` is the service to which its hosts report, None where they do not. `logs` are files beside the
    journal: templates of paths in which a star stands for any name.
    """

    name: str
    groups: tuple[str, ...]
    role: str
    unit: str
    instance: str
    user: str | None
    ports: tuple[Port, ...]
    memory: tuple[str, ...]
    switch: str | None
    http: str | None
    leader: str | None
    logs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catalogue:
    """All rows, each by its name and in the order of the file."""

    users: Mapping[str, User]
    groups: Mapping[str, Group]
    services: Mapping[str, Service]

    @property
    def ports(self) -> dict[str, Port]:
        """The ports of all services, by name."""
        return {port.name: port for service in self.services.values() for port in service.ports}

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """What `lakehouse_ports` and `lakehouse_users` hold where an inventory says nothing."""
        return {
            "lakehouse_ports": {name: port.number for name, port in self.ports.items()},
            "lakehouse_users": {name: user.account for name, user in self.users.items()},
        }

    @property
    def options(self) -> dict[str, dict[str, dict[str, str]]]:
        """The members of the two tables as options of an argument specification."""
        return {
            "lakehouse_ports": {
                name: {"type": "int", "description": f"{port.description} Default: {port.number}"}
                for name, port in self.ports.items()
            },
            "lakehouse_users": {
                name: {"type": "str", "description": f"{user.description} Default: {user.account}"}
                for name, user in self.users.items()
            },
        }

    def sized(self, *hosts: str) -> tuple[str, ...]:
        """Return the groups with that many hosts: ONE, SOME or OPTIONAL."""
        return tuple(name for name, group in self.groups.items() if group.hosts in hosts)

    @property
    def engines(self) -> tuple[str, ...]:
        """Roles of the services that the small profile leaves out."""
        found = [
            service.role
            for service in self.services.values()
            if all(self.groups[group].profile == FULL for group in service.groups)
        ]
        return tuple(dict.fromkeys(found))


@cache
def load(path: Path = FILE) -> Catalogue:
    """Read the catalogue; LakehouseError names the row that is wrong."""
    rows = yamlfile.read(path)[KEY]
    catalogue = Catalogue(
        users={name: _row(User, path, name, row) for name, row in rows["users"].items()},
        groups={name: _row(Group, path, name, row) for name, row in rows["groups"].items()},
        services={name: _service(path, name, row) for name, row in rows["services"].items()},
    )
    for fault in _faults(catalogue):
        raise LakehouseError(f"{path.name}: {fault}", f"correct {path}")
    return catalogue


def _row(kind: Any, path: Path, name: str, row: Mapping[str, Any]) -> Any:
    try:
        return kind(name=name, **row)
    except TypeError as error:
        reason = str(error).rpartition("() ")[2]
        raise LakehouseError(
            f"{path.name}: {kind.__name__.lower()} {name}: {reason}", f"correct {path}"
        ) from None


def _service(path: Path, name: str, row: Mapping[str, Any]) -> Service:
    # What Ansible alone needs to know.
    known = {key: value for key, value in row.items() if key not in {"enabled", "storage"}}
    ports = tuple(_row(Port, path, port, entry) for port, entry in row.get("ports", {}).items())
    lists = {key: tuple(row.get(key, ())) for key in ("groups", "memory", "logs")}
    switch = _VARIABLE.search(str(row.get("enabled", "")))
    own = (
        {"instance": "", "user": None, "http": None, "leader": None, "switch": switch and switch[0]}
        | known
        | {"ports": ports}
        | lists
    )
    service: Service = _row(Service, path, name, own)
    return service


def _faults(catalogue: Catalogue) -> Iterable[str]:
    """Say what no row may say."""
    for group in catalogue.groups.values():
        if group.hosts not in {ONE, SOME, OPTIONAL} or group.profile not in {CORE, FULL}:
            yield f"group {group.name}: hosts is one, some or optional; profile is core or full"
    for service in catalogue.services.values():
        names = [port.name for port in service.ports]
        if not service.groups or not set(service.groups) <= catalogue.groups.keys():
            yield f"service {service.name}: each of its groups stands under groups"
        if service.user is not None and service.user not in catalogue.users:
            yield f"service {service.name}: its user {service.user} stands under users"
        if service.leader is not None and service.leader not in catalogue.services:
            yield f"service {service.name}: its leader {service.leader} stands under services"
        if service.http is not None and service.http not in names:
            yield f"service {service.name}: http names one of its ports"
    ports = [port for service in catalogue.services.values() for port in service.ports]
    for what in (Counter(port.name for port in ports), Counter(port.number for port in ports)):
        yield from (f"port {value} is there {count} times" for value, count in what.items() if count > 1)
