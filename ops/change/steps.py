"""What a rolling change does, in which order: one unit of one host after the other. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse import services
from lakehouse.errors import UsageError
from lakehouse.inventory import Host
from lakehouse.next_command import command
from lakehouse.services import Service
from ops import selectors
from ops.status import placement
from ops.status.placement import Cluster

ALL = "all"


@dataclass(frozen=True)
class Step:
    """A unit of a host, with what its users notice.

    `invocation` is systemd's word for the process now: empty where there is none, None where unknown.
    """

    service: str
    unit: str
    host: str
    noticed: str
    invocation: str | None = ""

    def __str__(self) -> str:
        return f"{self.service} on {self.host}"


def read(row: Mapping[str, Any]) -> Step:
    """Return the step that a journal holds."""
    return Step(**row)


def order(rows: Iterable[Service]) -> tuple[Service, ...]:
    """Return services as they are changed: as in the catalogue, but followers before the leader they name.

    What there are several of goes first: if it does not come back, the run ends with the others serving, and
    before the one that all need was touched.
    """
    found = list(rows)
    names = [row.name for row in found]

    def place(row: Service) -> tuple[int, bool]:
        leads = row.leader is None or row.leader not in names
        return names.index(row.name if row.leader is None or leads else row.leader), leads

    return tuple(sorted(found, key=place))


def plan(cluster: Cluster, target: str, only: str | None = None) -> tuple[Step, ...]:
    """Return the steps for a service, or all of them, on all hosts that are not in maintenance, or on one.

    Raises UsageError where there is no such service or host, or nothing of it there.
    """
    if target != ALL:
        selectors.service(target)
    if only is not None:
        selectors.host(cluster, only)
    steps = tuple(
        Step(row.name, placement.unit(row), one.name, noticed(row, one))
        for row in order(services.load().services.values())
        if target in {ALL, row.name}
        for one in members_first(row, cluster.hosts)
        if row in cluster.services[one.name] and (one.name == only if only else one.name not in cluster.away)
    )
    if not steps:
        left = ", ".join(sorted(cluster.away))
        where = (
            f"on {only}" if only else f"in this cluster{f' but for {left}, in maintenance' if left else ''}"
        )
        raise UsageError(f"{target} does not run {where}", command("status", cluster.inventory.path))
    return steps


def members_first(row: Service, hosts: Iterable[Host]) -> list[Host]:
    """Return hosts with those last that are in the leading one, the first, of several groups of a service."""
    return sorted(hosts, key=lambda one: leads(row, one))


def leads(row: Service, one: Host) -> bool:
    """Whether a host is in the leading group, the first, of several groups of a service."""
    return len(row.groups) > 1 and row.groups[0] in one.groups


def leaders_last(steps: Iterable[Step], leaders: Mapping[str, Collection[str]]) -> tuple[Step, ...]:
    """Return steps with those of each service in an order by which hosts that lead, by service, come last.

    The others serve then, and one of them takes over.
    """
    planned = tuple(steps)
    places = [step.service for step in planned]
    ordered = sorted(planned, key=lambda step: step.host in leaders.get(step.service, ()))
    by_service = {name: iter([step for step in ordered if step.service == name]) for name in {*places}}
    return tuple(next(by_service[name]) for name in places)


def noticed(row: Service, one: Host) -> str:
    """Return what users notice while a host is without a service; empty where they notice nothing."""
    return row.notice if len(row.groups) == 1 or leads(row, one) else ""
