"""The snapshots of HDFS that belong to commits: their names, which are kept, and where a commit's files are.

A snapshot is made after its commit: it then has the files that the commit names. Pure.
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
    """A snapshot by when it was made, in seconds since the epoch, and the first 12 digits of its commit."""

    time: int
    commit: str

    def __str__(self) -> str:
        return f"history-{time.strftime(_TIME, time.gmtime(self.time))}-{self.commit}"


def of(commit: str, moment: float) -> Snapshot:
    """Return the snapshot that is made of HDFS at a moment for a commit by its id."""
    return Snapshot(int(moment), commit[:12])


def known(names: Iterable[str]) -> list[Snapshot]:
    """Return those of the history among names of snapshots, the oldest first."""
    return sorted(one for name in names if (one := _read(name)))


def _read(name: str) -> Snapshot | None:
    if not (found := _NAME.fullmatch(name)):
        return None
    try:
        return Snapshot(calendar.timegm(time.strptime(found[1], _TIME)), found[2])
    except ValueError:
        return None


def expired(every: Sequence[Snapshot], now: float, *, hours: int, days: int) -> list[Snapshot]:
    """Return the snapshots that need not be kept; `every` has the oldest first.

    Kept are those of so many last hours and, of the older ones, the newest of each day, so many of them. The
    newest of all stays while either number is above 0.
    """
    if not (hours or days):
        return list(every)
    kept = set(every[-1:]) | {one for one in every if one.time > now - hours * _HOUR}
    newest = {one.time // _DAY: one for one in every if one not in kept}
    kept |= {newest[day] for day in sorted(newest)[len(newest) - min(days, len(newest)) :]}
    return [one for one in every if one not in kept]


def places(every: Sequence[Snapshot], commit: str, moment: int) -> list[Snapshot]:
    """Return the snapshots in the order in which the files of a commit of a moment are looked for.

    The commit's own come first, its newest before the others: rows may be written without a commit. Then
    come later ones, the next first, and earlier ones, the last first.
    """
    own = [one for one in every if one.commit == commit[:12]]
    later = [one for one in every if one.time >= moment and one not in own]
    earlier = [one for one in every if one.time < moment and one not in own]
    return [*reversed(own), *later, *reversed(earlier)]
