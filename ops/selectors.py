"""Resolve names of hosts, groups and services; UsageError with similar names for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse import services
from lakehouse.errors import UsageError
from lakehouse.inventory import Host
from lakehouse.nearest import did_you_mean
from lakehouse.services import Service
from ops.status.placement import Cluster


def service(name: str) -> Service:
    """Return a service of the catalogue; UsageError names the nearest, and lists all."""
    rows = services.load().services
    _require("service", name, rows)
    return rows[name]


def running(cluster: Cluster, wanted: Service) -> tuple[Host, ...]:
    """Return the hosts on which the inventory places a service; UsageError where there is none."""
    found = tuple(host for host in cluster.hosts if wanted in cluster.services[host.name])
    if not found:
        off = f"; {wanted.switch} is off" if wanted.switch else ""
        here = {row.name: None for rows in cluster.services.values() for row in rows}
        raise UsageError(
            f"no host of {cluster.inventory.path} runs {wanted.name}{off}; these run: {' '.join(here)}"
        )
    return found


def host(cluster: Cluster, name: str, among: Iterable[Host] | None = None) -> Host:
    """Return a host by its name, of those among which it has to be."""
    places = {place.name: place for place in (cluster.hosts if among is None else among)}
    _require("host", name, places, f" in {cluster.inventory.path}" if among is None else "")
    return places[name]


def hosts(cluster: Cluster, *, name: str | None, group: str | None, of: str | None) -> tuple[Host, ...]:
    """Return the hosts that are named: one, those of a group, or of a service; all where nothing is named."""
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
