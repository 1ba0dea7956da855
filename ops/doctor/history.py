"""Checks of the history of the catalog: that commits are made."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.validation.finding import Level
from ops.doctor import timers
from ops.doctor.model import Case, Check, Fault, Seen, judged
from ops.doctor.probes import HISTORY
from ops.status import questions
from ops.status.model import Kept

# Its hourly run and some more; a week and a day where an inventory has a calendar of its own.
_HOURS, _OWN_CALENDAR_HOURS = 3, 8 * 24
_HOUR = 3600
_TIMER = timers.Timer(
    "history_units", HISTORY, "the catalog is not committed", "the last commit of the catalog"
)


def _keeper(seen: Seen) -> Iterator[str]:
    yield from (host.name for host in seen.cluster.hosts if questions.commits(host))


def _age(seen: Seen) -> Iterator[Case]:
    for host in _keeper(seen):
        hours = _HOURS if seen.variable(host, "catalog_calendar") is None else _OWN_CALENDAR_HOURS

        def old(kept: Kept | None, host: str = host, hours: int = hours) -> Iterator[Fault]:
            # A machine that was off, or had no timer, has missed nothing.
            since = timers.started(seen, host, _TIMER)
            age = seen.status.at - max((kept and kept.good) or 0.0, since)
            if kept and kept.why:
                yield Fault(f"the last commit of the catalog has failed: {kept.why}", _run(seen))
            elif age > hours * _HOUR:
                fact = f"the catalog was not looked at for {age / _HOUR:.0f} h"
                yield Fault(fact, _run(seen), f"each {hours} h", Level.WARNING)

        yield Case(host, judged(seen.status.history, old))


def _timer(seen: Seen) -> Iterator[Case]:
    return timers.cases(seen, _keeper(seen), _TIMER)


def _run(seen: Seen) -> str:
    return seen.lakehouse("catalog commit")


CHECKS = (
    Check("catalog.commits", "no commit was made for long, or the last has failed", _age),
    Check("catalog.timer", "no timer commits the catalog", _timer),
)
