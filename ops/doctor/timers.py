"""What is done by the clock: a timer, and the unit that it starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from ops.doctor.model import Case, Fault, Seen, judged
from ops.status import reading


@dataclass(frozen=True)
class Timer:
    """A timer and its work, by the part of a host's answer in which their `units` are.

    `idle` says what is not done without it, `last` is what it has made last.
    """

    part: str
    units: tuple[str, str]
    idle: str
    last: str


def cases(seen: Seen, hosts: Iterable[str], timer: Timer) -> Iterator[Case]:
    """Judge on each host whether the timer runs, and how its work has ended."""
    for host in hosts:
        blocks = seen.part(host, timer.part).then(reading.units)
        yield Case(host, judged(blocks, partial(_faults, seen, host, timer)))


def _faults(seen: Seen, host: str, timer: Timer, blocks: list[dict[str, str]]) -> Iterator[Fault]:
    clock, work = map({one["Id"]: one for one in blocks}.__getitem__, timer.units)
    if clock["ActiveState"] != "active":
        yield Fault(f"{timer.units[0]} is {clock['ActiveState']}: {timer.idle}", seen.site, "active")
    if work["Result"] not in {"success", "exit-code"}:
        unit = timer.units[1].removesuffix(".service")
        action = seen.on(host, f"systemctl start {unit}")
        yield Fault(f"{timer.last} was ended ({work['Result']})", action)


def started(seen: Seen, host: str, timer: Timer) -> float:
    """Return when a timer was started; now, where that is not known."""
    blocks = seen.part(host, timer.part).then(reading.units).value or []
    stamp = next((one.get("ActiveEnterTimestamp", "") for one in blocks if one["Id"] == timer.units[0]), "")
    return float(stamp.removeprefix("@")) if stamp.removeprefix("@") not in {"", "0"} else seen.status.at
