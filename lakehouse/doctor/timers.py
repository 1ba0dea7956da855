"""Checks of timers, and of the units that they start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from lakehouse.doctor.model import Case, Fault, Snapshot, judged
from lakehouse.status import reading


@dataclass(frozen=True)
class Timer:
    """A timer and its service, by the part of a host's reply that has their `units`.

    `idle` is what is not done without the timer, `last` is its last result.
    """

    part: str
    units: tuple[str, str]
    idle: str
    last: str


def cases(snapshot: Snapshot, hosts: Iterable[str], timer: Timer) -> Iterator[Case]:
    """Yield a case for each host: whether the timer is active, and how its service has ended."""
    for host in hosts:
        blocks = snapshot.part(host, timer.part).then(reading.units)
        yield Case(host, judged(blocks, partial(_faults, snapshot, host, timer)))


def _faults(snapshot: Snapshot, host: str, timer: Timer, blocks: list[dict[str, str]]) -> Iterator[Fault]:
    timer_state, service_state = map({block["Id"]: block for block in blocks}.__getitem__, timer.units)
    if timer_state["ActiveState"] != "active":
        yield Fault(
            f"{timer.units[0]} is {timer_state['ActiveState']}: {timer.idle}", snapshot.site, "active"
        )
    if service_state["Result"] not in {"success", "exit-code"}:
        unit = timer.units[1].removesuffix(".service")
        action = snapshot.on(host, f"systemctl start {unit}")
        yield Fault(f"{timer.last} was ended ({service_state['Result']})", action)


def started(snapshot: Snapshot, host: str, timer: Timer) -> float:
    """Return when a timer was started, or the current time where that is unknown."""
    blocks = snapshot.part(host, timer.part).then(reading.units).value or []
    stamp = next(
        (block.get("ActiveEnterTimestamp", "") for block in blocks if block["Id"] == timer.units[0]), ""
    )
    return float(stamp.removeprefix("@")) if stamp.removeprefix("@") not in {"", "0"} else snapshot.status.at
