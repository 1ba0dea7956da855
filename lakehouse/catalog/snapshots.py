"""The HDFS snapshots of commits: their names, their retention, and the order in which to search them.

A snapshot is created after its commit, so it has the files that the commit refers to. Pure.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"history-(\d{8}T\d{6}Z)-([0-9a-f]{12})")
_TIME = "%Y%m%dT%H%M%SZ"
_HOUR, _DAY = 3600, 24 * 3600


@dataclass(frozen=True, order=True)
class Snapshot:
    """A snapshot: its time of creation, in seconds since the epoch, and the first 12 digits of its commit."""

    time: int
    commit: str

    def __str__(self) -> str:
        return f"history-{time.strftime(_TIME, time.gmtime(self.time))}-{self.commit}"


def of(commit: str, moment: float) -> Snapshot:
    """Return the snapshot that is created at a moment for the commit with this id."""
    return Snapshot(int(moment), commit[:12])


def known(names: Iterable[str]) -> list[Snapshot]:
    """Return the snapshots of the history among these names, the oldest first."""
    return sorted(snapshot for name in names if (snapshot := _read(name)))


def _read(name: str) -> Snapshot | None:
    if not (match := _NAME.fullmatch(name)):
        return None
    try:
        return Snapshot(calendar.timegm(time.strptime(match[1], _TIME)), match[2])
    except ValueError:
        return None


def expired(snapshots: Sequence[Snapshot], now: float, *, hours: int, days: int) -> list[Snapshot]:
    """Return the snapshots beyond the retention; `snapshots` has the oldest first.

    The retention has the snapshots of the last `hours` and, of the older ones, the newest of each of the
    last `days` that have any. The newest snapshot stays while either number is above 0.
    """
    if not (hours or days):
        return list(snapshots)
    retained = set(snapshots[-1:]) | {
        snapshot for snapshot in snapshots if snapshot.time > now - hours * _HOUR
    }
    newest = {snapshot.time // _DAY: snapshot for snapshot in snapshots if snapshot not in retained}
    retained |= {newest[day] for day in sorted(newest)[len(newest) - min(days, len(newest)) :]}
    return [snapshot for snapshot in snapshots if snapshot not in retained]


def places(snapshots: Sequence[Snapshot], commit: str, moment: int) -> list[Snapshot]:
    """Return the snapshots in the order in which to search them for the files of a commit at a moment.

    First those of the commit, the newest first, since rows may be written without a commit. Then the later
    ones in ascending order, and the earlier ones in descending order.
    """
    of_commit = [snapshot for snapshot in snapshots if snapshot.commit == commit[:12]]
    rest = [snapshot for snapshot in snapshots if snapshot not in of_commit]
    later = [snapshot for snapshot in rest if snapshot.time >= moment]
    earlier = [snapshot for snapshot in rest if snapshot.time < moment]
    return [*reversed(of_commit), *later, *reversed(earlier)]
