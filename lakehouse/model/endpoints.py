"""Where clients reach the services of a cluster: hosts, ports and URIs, from services.yml and an inventory.

Clients reach a service on the hosts of its first group. Ansible has the same by filters,
`plugins/filter/endpoints.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from lakehouse.errors import LakehouseError
from lakehouse.model import services
from lakehouse.model.inventory import Host, Inventory
from lakehouse.model.services import Listener, Service
from plugins.module_utils.lakehouse.nearest import did_you_mean

Row = TypeVar("Row")


class Placed(Protocol):
    """A host with its ports."""

    @property
    def name(self) -> str:
        """Its name in the inventory."""

    @property
    def address(self) -> str:
        """Its `ansible_host`."""

    @property
    def variables(self) -> Mapping[str, Any]:
        """Its variables, with `lakehouse_ports`."""


@dataclass(frozen=True)
class Endpoint:
    """A listener on one host. Hosts of the cluster know that by its name, other machines by its address."""

    listener: str
    host: str
    address: str
    port: int

    @property
    def place(self) -> tuple[str, int]:
        """Address and port."""
        return self.address, self.port

    @property
    def scheme(self) -> str:
        """The scheme of its URI, such as http or, under TLS, https; empty where its protocol has none."""
        return listener(self.listener).uri_scheme

    @property
    def uri(self) -> str:
        """Its URI by the host's address."""
        return uri(self.listener, self.address, self.port)

    @property
    def internal_uri(self) -> str:
        """Its URI by the host's name, for hosts of the cluster."""
        return uri(self.listener, self.host, self.port)


def listener(name: str) -> Listener:
    """Return a listener of the catalogue; LakehouseError suggests a name where there is none of this one."""
    return _row("listener", name, services.load().listeners)


def service(name: str) -> Service:
    """Return a service of the catalogue, and LakehouseError as `listener`."""
    return _row("service", name, services.load().services)


def owner(name: str) -> Service:
    """Return the service that has a listener, and LakehouseError as `listener`."""
    return services.load().owner(listener(name).name)


def _row(kind: str, name: str, rows: Mapping[str, Row]) -> Row:
    if name in rows:
        return rows[name]
    raise LakehouseError(
        f"{services.FILE.name} has no {kind} {name}{did_you_mean(name, rows)}",
        f"use a {kind} of {services.FILE.name}, or add it there",
    )


def uri(name: str, host: str, port: int | str) -> str:
    """Return the URI of a listener at a name or an address; LakehouseError where its protocol has none."""
    scheme = listener(name).uri_scheme
    if not scheme:
        raise LakehouseError(
            f"listener {name} has no URI: its protocol is {listener(name).protocol}",
            f"use host and port, or name its scheme in {services.FILE.name}",
        )
    return f"{scheme}://{host}:{port}"


def on(name: str, host: Placed) -> Endpoint:
    """Return the endpoint of a listener on a host."""
    ports: Mapping[str, Any] = host.variables["lakehouse_ports"]
    return Endpoint(listener(name).name, host.name, host.address, int(ports[name]))


def first(row: Service, hosts: Iterable[Row], where: object = "the inventory") -> Row:
    """Return which of its hosts serves clients of a service: the first, until a service asks who leads.

    Raises LakehouseError where there is none; `where` is the inventory.
    """
    for host in hosts:
        return host
    raise LakehouseError(f"no host of {where} runs {row.name}", f"add one to group {row.groups[0]}")


def active(name: str, inventory: Inventory) -> Host:
    """Return the host of a service that serves clients; LakehouseError where the inventory has none."""
    row = service(name)
    return first(row, inventory.group(row.groups[0]), inventory.path)


def endpoint(name: str, inventory: Inventory) -> Endpoint:
    """Return the endpoint of a listener on the host that serves clients, and LakehouseError as `active`."""
    return on(name, active(owner(name).name, inventory))


def by_listener(
    members: Mapping[str, Sequence[str]], addresses: Mapping[str, str], ports: Mapping[str, Any]
) -> dict[str, Endpoint]:
    """Return the endpoint of each listener on the host that serves clients; of those that have a host.

    `members` are the hosts of each group, `addresses` those of each host.
    """
    hosts = {
        listener.name: host
        for row in services.load().services.values()
        for listener in row.listeners
        for host in members.get(row.groups[0], ())[:1]
    }
    return {name: Endpoint(name, host, addresses[host], int(ports[name])) for name, host in hosts.items()}
