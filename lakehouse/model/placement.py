"""The placement of services on the hosts of an inventory, and their endpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from jinja2 import Template

from lakehouse import yamlfile
from lakehouse.errors import LakehouseError
from lakehouse.model import defaults, endpoints, services
from lakehouse.model.endpoints import Endpoint
from lakehouse.model.inventory import Host, Inventory
from lakehouse.model.services import Service
from lakehouse.run import ROOT


@dataclass(frozen=True)
class Cluster:
    """An inventory, with the services of each host in the order of the catalogue.

    `away` are the hosts in maintenance, where that was read.
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
        """The allowed difference of clocks in seconds."""
        name = "node_max_clock_offset_seconds"
        return float(self.hosts[0].variables.get(name, defaults.role("node")[name]))

    def running(self, group: str) -> tuple[Host, ...]:
        """Return the hosts of a group on which its services are placed: none in a profile without them."""
        return tuple(
            host
            for host in self.inventory.group(group)
            if any(group in service.groups for service in self.services[host.name])
        )

    def serving(self, group: str) -> tuple[Host, ...]:
        """Return the hosts of a group on which its services run, without hosts in maintenance."""
        return tuple(host for host in self.running(group) if host.name not in self.away)

    def active(self, service: str) -> Host:
        """Return the active host of a service; LakehouseError where no host runs it."""
        row = endpoints.service(service)
        return endpoints.first(row, self._members(row), self.inventory.path)

    def endpoints(self, listener: str) -> tuple[Endpoint, ...]:
        """Return the endpoints of a listener on the hosts where clients reach it; none if no host runs it."""
        return tuple(endpoints.on(listener, host) for host in self._members(endpoints.owner(listener)))

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of a listener on its active host; None where no host runs it."""
        return next(iter(self.endpoints(listener)), None)

    def urls(self, pages: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield name and URL of each page (listener, path) of a placed service."""
        for name, (listener, path) in pages.items():
            if endpoint := self.endpoint(listener):
                yield name, f"{endpoint.uri}{path}"

    def _members(self, service: Service) -> tuple[Host, ...]:
        """Return the hosts on which clients reach a service: those of its first group that run it."""
        return tuple(
            host
            for host in self.inventory.group(service.groups[0])
            if any(row.name == service.name for row in self.services[host.name])
        )


def read(inventory: Inventory) -> Cluster:
    """Return the cluster of an inventory; LakehouseError for one of docker compose."""
    first = inventory.hosts[0].variables
    if first.get("lakehouse_target", "nodes") != "nodes":
        raise LakehouseError(
            f"{inventory.path} is a stack of docker compose, which has no hosts to log in to",
            "docker compose ps",
        )
    catalogue = services.load()
    small = first["lakehouse_profile"] == services.CORE
    names_by_host = {
        host.name: catalogue.running(host.groups, host.variables, small=small) for host in inventory.hosts
    }
    rows = {
        host: tuple(row for row in catalogue.services.values() if row.name in host_services)
        for host, host_services in names_by_host.items()
    }
    return Cluster(inventory, rows)


def without(cluster: Cluster, names: Collection[str]) -> Cluster:
    """Return the cluster without some hosts."""
    hosts = tuple(host for host in cluster.hosts if host.name not in names)
    return replace(cluster, inventory=replace(cluster.inventory, hosts=hosts))


def unit(service: Service) -> str:
    """Return the full name of a service's unit: systemd matches patterns with loaded units only."""
    if not service.instance:
        return service.unit
    return service.unit.replace("*", Template(service.instance).render(lakehouse_bom=bill()))


def logs(service: Service, host: Host) -> list[str]:
    """Return the log files of a service on a host, beside the journal; a star matches any name."""
    words = {"lakehouse_bom": bill(), "lakehouse_data_dir": host.variables["lakehouse_data_dir"]}
    return [Template(path).render(words) for path in service.logs]


def account(service: Service, host: Host) -> str:
    """Return the Unix account that a service runs as."""
    return service.account or str(host.variables["lakehouse_users"][service.user])


@cache
def bill() -> Any:
    """Return the bill of materials, without the overrides of an inventory."""
    return yamlfile.read(ROOT / "versions.yml")


def needed(service: Service) -> bool:
    """Return whether the cluster is down without a service: single-instance storage or catalog."""
    groups = services.load().groups
    # A service with a switch is optional.
    return service.switch is None and any(
        groups[name].hosts == services.ONE and groups[name].band != "compute" for name in service.groups
    )
