"""What the inventory and the catalogue say of a cluster: who runs what, and where it is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from jinja2 import Template

from lakehouse import defaults, endpoints, services, yamlfile
from lakehouse.endpoints import Endpoint
from lakehouse.errors import LakehouseError
from lakehouse.inventory import Host, Inventory
from lakehouse.run import ROOT
from lakehouse.services import Service
from lakehouse.sizing import placed


@dataclass(frozen=True)
class Cluster:
    """An inventory, with the services of each host in the order of the catalogue.

    `away` are the hosts in maintenance, as far as they were asked for.
    """

    inventory: Inventory
    services: Mapping[str, tuple[Service, ...]]
    away: frozenset[str] = frozenset()

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts."""
        return self.inventory.hosts

    def variable(self, name: str) -> Any:
        """A variable that is the same on all hosts."""
        return self.hosts[0].variables[name]

    @property
    def clock_limit(self) -> float:
        """By how many seconds a clock may differ."""
        name = "node_max_clock_offset_seconds"
        return float(self.hosts[0].variables.get(name, defaults.role("node")[name]))

    def running(self, group: str) -> tuple[Host, ...]:
        """Hosts of a group on which its services are placed: none where the profile leaves them out."""
        return tuple(
            host
            for host in self.inventory.group(group)
            if any(group in service.groups for service in self.services[host.name])
        )

    def serving(self, group: str) -> tuple[Host, ...]:
        """Hosts of a group on which its services run now: none of those in maintenance."""
        return tuple(host for host in self.running(group) if host.name not in self.away)

    def active(self, service: str) -> Host:
        """Return the host of a service that serves clients; LakehouseError where none runs it."""
        row = endpoints.service(service)
        return endpoints.first(row, self._members(row), self.inventory.path)

    def endpoints(self, listener: str) -> tuple[Endpoint, ...]:
        """Return the endpoints of a listener on the hosts where clients reach it; none if no host runs it."""
        return tuple(endpoints.on(listener, host) for host in self._members(endpoints.owner(listener)))

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of a listener on the host that serves clients; None where no host runs it."""
        return next(iter(self.endpoints(listener)), None)

    def urls(self, pages: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Give name and URL of each page (listener, path) of a service that some host runs."""
        for name, (listener, path) in pages.items():
            if found := self.endpoint(listener):
                yield name, f"{found.uri}{path}"

    def _members(self, service: Service) -> tuple[Host, ...]:
        """Hosts on which clients reach a service: those of its first group that run it."""
        return tuple(
            host
            for host in self.inventory.group(service.groups[0])
            if any(row.name == service.name for row in self.services[host.name])
        )


def read(inventory: Inventory) -> Cluster:
    """Return who runs what; LakehouseError where the hosts are containers of docker compose."""
    first = inventory.hosts[0].variables
    if first.get("lakehouse_target", "nodes") != "nodes":
        raise LakehouseError(
            f"{inventory.path} is a stack of docker compose, which has no hosts to log in to",
            "docker compose ps",
        )
    catalogue = services.load()
    small = first["lakehouse_profile"] == services.CORE
    names = {
        host.name: placed.services(placed.Machine(host.groups, host.variables), small=small)
        for host in inventory.hosts
    }
    rows = {
        host: tuple(row for row in catalogue.services.values() if row.name in there)
        for host, there in names.items()
    }
    return Cluster(inventory, rows)


def without(cluster: Cluster, names: Collection[str]) -> Cluster:
    """Return the cluster with some hosts left out, as if the inventory did not name them."""
    hosts = tuple(host for host in cluster.hosts if host.name not in names)
    return replace(cluster, inventory=replace(cluster.inventory, hosts=hosts))


def unit(service: Service) -> str:
    """Return a service's unit by its whole name: systemd shows nothing of a pattern whose unit is stopped."""
    if not service.instance:
        return service.unit
    return service.unit.replace("*", Template(service.instance).render(lakehouse_bom=bill()))


def logs(service: Service, host: Host) -> list[str]:
    """Return the files that a service writes on a host beside the journal; a star stands for any name."""
    words = {"lakehouse_bom": bill(), "lakehouse_data_dir": host.variables["lakehouse_data_dir"]}
    return [Template(path).render(words) for path in service.logs]


def account(service: Service, host: Host) -> str:
    """Return the Unix account that a service's files belong to; PostgreSQL's is Debian's."""
    return str(host.variables["lakehouse_users"][service.user]) if service.user else "postgres"


@cache
def bill() -> Any:
    """The bill of materials, as it stands: only its versions are wanted."""
    return yamlfile.read(ROOT / "versions.yml")


def needed(service: Service) -> bool:
    """Tell whether nothing works without it: it stores or catalogues, on the one host of its group."""
    groups = services.load().groups
    # What can be switched off is not waited for.
    return service.switch is None and any(
        groups[name].hosts == services.ONE and groups[name].band != "compute" for name in service.groups
    )
