"""The steps of a rolling change in order: one unit of one host at a time. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.errors import UsageError
from lakehouse.model import placement, selectors, services
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.model.services import Service
from lakehouse.next_command import command

ALL = "all"


@dataclass(frozen=True)
class Step:
    """A unit of a host, with what its users notice.

    `invocation` is systemd's invocation ID of the current process: empty without one, None where unknown.
    """

    service: str
    unit: str
    host: str
    noticed: str
    invocation: str | None = ""

    def __str__(self) -> str:
        return f"{self.service} on {self.host}"


def read(row: Mapping[str, Any]) -> Step:
    """Return the step of a row in a journal."""
    return Step(**row)


def order(rows: Iterable[Service]) -> tuple[Service, ...]:
    """Return services in rolling order: as in the catalogue, but followers before the leader they name.

    Redundant services go first: if one does not come back, the run ends while the others serve, and before
    it touches the leader.
    """
    catalogue = list(rows)
    names = [row.name for row in catalogue]

    def position(row: Service) -> tuple[int, bool]:
        leads = row.leader is None or row.leader not in names
        return names.index(row.name if row.leader is None or leads else row.leader), leads

    return tuple(sorted(catalogue, key=position))


def plan(cluster: Cluster, target: str, only: str | None = None) -> tuple[Step, ...]:
    """Return the steps for a service, or all of them, on all hosts that are not in maintenance, or on one.

    Raises UsageError where the service or host does not exist, or the service does not run there.
    """
    if target != ALL:
        selectors.service(target)
    if only is not None:
        selectors.host(cluster, only)
    steps = tuple(
        Step(row.name, placement.unit(row), host.name, noticed(row, host))
        for row in order(services.load().services.values())
        if target in {ALL, row.name}
        for host in members_first(row, cluster.hosts)
        if row in cluster.services[host.name]
        and (host.name == only if only else host.name not in cluster.away)
    )
    if not steps:
        absent = ", ".join(sorted(cluster.away))
        where = (
            f"on {only}"
            if only
            else f"in this cluster{f' but for {absent}, in maintenance' if absent else ''}"
        )
        raise UsageError(f"{target} does not run {where}", command("status", cluster.inventory.path))
    return steps


def members_first(row: Service, hosts: Iterable[Host]) -> list[Host]:
    """Return hosts with those of the leading group last: the first, where a service has several groups."""
    return sorted(hosts, key=lambda host: leads(row, host))


def leads(row: Service, host: Host) -> bool:
    """Return whether a host is in the leading group: the first, where a service has several groups."""
    return len(row.groups) > 1 and row.groups[0] in host.groups


def leaders_last(steps: Iterable[Step], leaders: Mapping[str, Collection[str]]) -> tuple[Step, ...]:
    """Return steps with the leaders of each service after its other hosts.

    One of the others, restarted by then, takes over.
    """
    planned = tuple(steps)
    services = [step.service for step in planned]
    ordered = sorted(planned, key=lambda step: step.host in leaders.get(step.service, ()))
    by_service = {name: iter([step for step in ordered if step.service == name]) for name in {*services}}
    return tuple(next(by_service[name]) for name in services)


def noticed(row: Service, host: Host) -> str:
    """Return what users notice while a host is without a service; empty where they notice nothing."""
    return row.notice if len(row.groups) == 1 or leads(row, host) else ""
