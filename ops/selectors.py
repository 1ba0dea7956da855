"""Which hosts and which service a person means; an unknown name is one line with the nearest name."""

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
    known = services.load().services
    _known("service", name, known)
    return known[name]


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
    known = {one.name: one for one in (cluster.hosts if among is None else among)}
    _known("host", name, known)
    return known[name]


def hosts(cluster: Cluster, *, name: str | None, group: str | None, of: str | None) -> tuple[Host, ...]:
    """Return the hosts that are named: one, those of a group, or of a service; all where nothing is named."""
    if name:
        return (host(cluster, name),)
    if group:
        _known("group", group, {one: None for each in cluster.hosts for one in sorted(each.groups)})
        return cluster.inventory.group(group)
    return running(cluster, service(of)) if of else cluster.hosts


def _known(kind: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        raise UsageError(f"no {kind} {name}{did_you_mean(name, names)}; there are: {' '.join(names)}")
