"""Checks of backups: their age and state, and the archiving of PostgreSQL's WAL."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.doctor import timers
from lakehouse.doctor.model import Case, Check, Fault, Snapshot, judged
from lakehouse.doctor.probes import BACKUP
from lakehouse.status import judge, questions
from lakehouse.status.model import LastGood
from lakehouse.validation.finding import Level
from plugins.module_utils.lakehouse.counting import counted

# A nightly run and some hours; a week and a day where the inventory has its own calendar.
HOURS, _OWN_CALENDAR_HOURS = 30, 8 * 24
_HOUR = 3600
_TIMER = timers.Timer("backup_units", BACKUP, "no backups are made", "the last backup")
# Waiting segments of 16 MiB: half a gibibyte on the disk of the database.
_WAITING = 32


def _keeper(snapshot: Snapshot) -> Iterator[str]:
    yield from (host.name for host in snapshot.cluster.hosts if questions.backups(host))


def _run(snapshot: Snapshot) -> str:
    return snapshot.lakehouse("backup")


def _age(snapshot: Snapshot) -> Iterator[Case]:
    for host in _keeper(snapshot):
        has_calendar = snapshot.variable(host, "backup_calendar") is not None
        hours = _OWN_CALENDAR_HOURS if has_calendar else HOURS

        def old(last: LastGood | None, host: str = host, hours: int = hours) -> Iterator[Fault]:
            since = timers.started(snapshot, host, _TIMER)
            good = last.good if last else None
            # Before the timer was started no backup was due.
            age = snapshot.status.at - max(good or 0.0, since if good is None else 0.0)
            if age > hours * _HOUR:
                fact = f"no good backup for {age / _HOUR:.0f} h"
                yield Fault(fact, _run(snapshot), f"one in {hours} h", Level.WARNING)
            if last and last.why and last.why != INTERRUPTED:
                yield Fault(f"the last backup has failed: {last.why}", _run(snapshot))

        yield Case(host, judged(snapshot.status.backup, old))


def _damaged(snapshot: Snapshot) -> Iterator[Case]:
    def damaged(last: LastGood | None) -> Iterator[Fault]:
        if last and last.damaged:
            fact = f"{last.damaged[0]}, the newest backup, is damaged, and nothing newer is good"
            yield Fault(fact, _run(snapshot), "a good one")

    for host in _keeper(snapshot):
        yield Case(host, judged(snapshot.status.backup, damaged))


# The reason in the result of an unfinished run, which may still be active.
INTERRUPTED = "it was interrupted"


def _timer(snapshot: Snapshot) -> Iterator[Case]:
    return timers.cases(snapshot, _keeper(snapshot), _TIMER)


def _archive(snapshot: Snapshot) -> Iterator[Case]:
    if not any(_keeper(snapshot)):
        return
    placed = snapshot.active("postgresql")

    def behind(rows: dict[str, str]) -> Iterator[Fault]:
        waiting = counted(int(rows["waiting"]), "segment waits", "segments wait")
        action = snapshot.on(placed.host, "runuser -u postgres -- pgbackrest --stanza=lakehouse check")
        if rows["mode"] != "on":
            yield Fault("archive_mode is off: nothing leaves the host", snapshot.site, "on")
        elif rows["failing"] == "true":
            yield Fault(
                f"the repository takes no WAL: {waiting} in pg_wal",
                action,
                "0",
            )
        elif int(rows["waiting"]) > _WAITING:
            fact = f"{waiting} in pg_wal"
            yield Fault(fact, action, f"at most {_WAITING}", Level.WARNING)

    rows = snapshot.part(placed.host, "archive").then(
        lambda text: dict(line.split("|") for line in text.split())
    )
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
