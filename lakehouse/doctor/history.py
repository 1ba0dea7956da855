"""Checks of the history of the catalog: age and state of commits."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.doctor import timers
from lakehouse.doctor.model import Case, Check, Fault, Snapshot, judged
from lakehouse.doctor.probes import HISTORY
from lakehouse.status import questions
from lakehouse.status.model import LastGood
from lakehouse.validation.finding import Level

# An hourly run and two hours; a week and a day where the inventory has its own calendar.
_HOURS, _OWN_CALENDAR_HOURS = 3, 8 * 24
_HOUR = 3600
_TIMER = timers.Timer(
    "history_units", HISTORY, "the catalog is not committed", "the last commit of the catalog"
)


def _keeper(snapshot: Snapshot) -> Iterator[str]:
    yield from (host.name for host in snapshot.cluster.hosts if questions.commits(host))


def _age(snapshot: Snapshot) -> Iterator[Case]:
    for host in _keeper(snapshot):
        hours = _HOURS if snapshot.variable(host, "catalog_calendar") is None else _OWN_CALENDAR_HOURS

        def old(last: LastGood | None, host: str = host, hours: int = hours) -> Iterator[Fault]:
            # While the machine was off, or had no timer, no commit was due.
            since = timers.started(snapshot, host, _TIMER)
            age = snapshot.status.at - max((last and last.good) or 0.0, since)
            if last and last.why:
                yield Fault(f"the last commit of the catalog has failed: {last.why}", _run(snapshot))
            elif age > hours * _HOUR:
                fact = f"the catalog was not looked at for {age / _HOUR:.0f} h"
                yield Fault(fact, _run(snapshot), f"each {hours} h", Level.WARNING)

        yield Case(host, judged(snapshot.status.history, old))


def _timer(snapshot: Snapshot) -> Iterator[Case]:
    return timers.cases(snapshot, _keeper(snapshot), _TIMER)


def _run(snapshot: Snapshot) -> str:
    return snapshot.lakehouse("catalog commit")


CHECKS = (
    Check("catalog.commits", "no commit was made for long, or the last has failed", _age),
    Check("catalog.timer", "no timer commits the catalog", _timer),
)
