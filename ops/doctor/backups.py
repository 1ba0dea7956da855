"""Checks of backups: that they are made, and that PostgreSQL's WAL leaves its host."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.validation.finding import Level
from ops.doctor import timers
from ops.doctor.model import Case, Check, Fault, Seen, judged
from ops.doctor.probes import BACKUP
from ops.status import judge, questions
from ops.status.model import Kept
from plugins.module_utils.lakehouse.counting import counted

# Its nightly run and some hours; a week and a day where an inventory has a calendar of its own.
HOURS, _OWN_CALENDAR_HOURS = 30, 8 * 24
_HOUR = 3600
_TIMER = timers.Timer("backup_units", BACKUP, "no backups are made", "the last backup")
# Segments of 16 MiB that wait: half a gibibyte of a disk that the database shares.
_WAITING = 32


def _keeper(seen: Seen) -> Iterator[str]:
    yield from (host.name for host in seen.cluster.hosts if questions.backups(host))


def _run(seen: Seen) -> str:
    return seen.lakehouse("backup")


def _age(seen: Seen) -> Iterator[Case]:
    for host in _keeper(seen):
        own = seen.variable(host, "backup_calendar") is not None
        hours = _OWN_CALENDAR_HOURS if own else HOURS

        def old(kept: Kept | None, host: str = host, hours: int = hours) -> Iterator[Fault]:
            since = timers.started(seen, host, _TIMER)
            good = kept.good if kept else None
            # What could not be made before there was a timer is not missed.
            age = seen.status.at - max(good or 0.0, since if good is None else 0.0)
            if age > hours * _HOUR:
                fact = f"no good backup for {age / _HOUR:.0f} h"
                yield Fault(fact, _run(seen), f"one in {hours} h", Level.WARNING)
            if kept and kept.why and kept.why != INTERRUPTED:
                yield Fault(f"the last backup has failed: {kept.why}", _run(seen))

        yield Case(host, judged(seen.status.backup, old))


def _damaged(seen: Seen) -> Iterator[Case]:
    def found(kept: Kept | None) -> Iterator[Fault]:
        if kept and kept.damaged:
            fact = f"{kept.damaged[0]}, the newest backup, is damaged, and nothing newer is good"
            yield Fault(fact, _run(seen), "a good one")

    for host in _keeper(seen):
        yield Case(host, judged(seen.status.backup, found))


# What a run says of itself until it is at its end: it may still be at work.
INTERRUPTED = "it was interrupted"


def _timer(seen: Seen) -> Iterator[Case]:
    return timers.cases(seen, _keeper(seen), _TIMER)


def _archive(seen: Seen) -> Iterator[Case]:
    if not any(_keeper(seen)):
        return
    placed = seen.active("postgresql")

    def behind(rows: dict[str, str]) -> Iterator[Fault]:
        waiting = counted(int(rows["waiting"]), "segment waits", "segments wait")
        action = seen.on(placed.host, "runuser -u postgres -- pgbackrest --stanza=lakehouse check")
        if rows["mode"] != "on":
            yield Fault("archive_mode is off: nothing leaves the host", seen.site, "on")
        elif rows["failing"] == "true":
            yield Fault(
                f"the repository takes no WAL: {waiting} in pg_wal",
                action,
                "0",
            )
        elif int(rows["waiting"]) > _WAITING:
            fact = f"{waiting} in pg_wal"
            yield Fault(fact, action, f"at most {_WAITING}", Level.WARNING)

    rows = seen.part(placed.host, "archive").then(lambda text: dict(line.split("|") for line in text.split()))
    if judge.is_full(rows.why):
        return
    yield Case(placed.host, judged(rows, behind), placed)


CHECKS = (
    Check("backup.age", "no backup was made for long, or the last has failed", _age),
    Check("backup.damaged", "a verification found the newest backup damaged", _damaged),
    Check("backup.timer", "no timer makes backups", _timer),
    Check(
        "backup.archive",
        "PostgreSQL's WAL does not leave its host",
        _archive,
        "correct what pgBackRest says of the repository",
    ),
)
