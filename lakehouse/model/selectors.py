"""Resolve names of hosts, groups and services; UsageError with similar names for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse.errors import UsageError
from lakehouse.model import services
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.model.services import Service
from plugins.module_utils.lakehouse.nearest import did_you_mean


def service(name: str) -> Service:
    """Return a service of the catalogue; UsageError names the nearest, and lists all."""
    rows = services.load().services
    _require("service", name, rows)
    return rows[name]


def running(cluster: Cluster, service: Service) -> tuple[Host, ...]:
    """Return the hosts on which the inventory places a service; UsageError where no host runs it."""
    placed = tuple(host for host in cluster.hosts if service in cluster.services[host.name])
    if not placed:
        switch = f"; {service.switch} is off" if service.switch else ""
        names = " ".join(dict.fromkeys(row.name for rows in cluster.services.values() for row in rows))
        raise UsageError(
            f"no host of {cluster.inventory.path} runs {service.name}{switch}; these run: {names}"
        )
    return placed


def host(cluster: Cluster, name: str, among: Iterable[Host] | None = None) -> Host:
    """Return a host of the cluster, or of `among`, by its name; UsageError for an unknown one."""
    places = {place.name: place for place in (cluster.hosts if among is None else among)}
    _require("host", name, places, f" in {cluster.inventory.path}" if among is None else "")
    return places[name]


def hosts(cluster: Cluster, *, name: str | None, group: str | None, of: str | None) -> tuple[Host, ...]:
    """Return a named host, the hosts of a group or of a service, or by default all."""
    if name:
        return (host(cluster, name),)
    if group:
        _require("group", group, {label: None for place in cluster.hosts for label in sorted(place.groups)})
        return cluster.inventory.group(group)
    return running(cluster, service(of)) if of else cluster.hosts


def _require(kind: str, name: str, names: Iterable[str], where: str = "") -> None:
    choices = list(names)
    if name not in choices:
        raise UsageError(
            f"there is no {kind} {name}{where}{did_you_mean(name, choices)}", f"one of: {' '.join(choices)}"
        )
