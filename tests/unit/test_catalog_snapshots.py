"""Snapshots of HDFS that belong to commits: which are kept, and in which a commit's files are looked for."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from lakehouse import locks
from lakehouse.catalog import snapshots
from lakehouse.catalog.hosted import __main__ as hosted
from lakehouse.catalog.hosted.layout import Settings
from lakehouse.catalog.hosted.warehouse import Warehouse as RealWarehouse
from lakehouse.catalog.snapshots import Snapshot
from lakehouse.catalog.store import Entry, Store
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

HOUR, DAY = 3600, 86400
NOW = 1_795_000_000 // DAY * DAY + 12 * HOUR
COMMIT, OTHER, THIRD = (letter * 40 for letter in "abc")


def at(hours: float, commit: str = COMMIT) -> Snapshot:
    """Return a snapshot of so many hours ago."""
    return snapshots.of(commit, NOW - hours * HOUR)


def test_a_name_says_all() -> None:
    one = snapshots.of(COMMIT, 1_795_752_441.9)
    assert str(one) == "history-20261127T040721Z-aaaaaaaaaaaa"
    assert snapshots.known([str(one)]) == [one]


@pytest.mark.parametrize(
    "name",
    ["20261127T041632Z", "s1", "history-20261127T040721Z-xyz", "history-1-aaaaaaaaaaaa",
     "history-20261340T040721Z-aaaaaaaaaaaa", "history-", "",
     "history-20261127T040721Z-aaaaaaaaaaaa/..", "\nhistory-20261127T040721Z-aaaaaaaaaaaa"],
)  # fmt: skip
def test_names_of_others_are_left_alone(name: str) -> None:
    assert snapshots.known([name]) == []


def test_those_of_the_last_hours_stay_and_one_a_day_before() -> None:
    every = sorted(at(hours) for hours in range(24 * 12))
    gone = snapshots.expired(every, NOW, hours=24, days=7)
    kept = [one for one in every if one not in gone]
    assert len(kept) == 24 + 7
    assert [one for one in kept if one.time > NOW - DAY] == every[-24:]
    # The newest of each day that is over, and of the one that began before these hours.
    assert [(one.time // DAY, one.time % DAY) for one in kept[:7]] == [
        (NOW // DAY - days, 23 * HOUR if days > 1 else 12 * HOUR) for days in range(7, 0, -1)
    ]


def test_one_of_a_person_stays_as_long_as_those_of_the_clock_beside_it() -> None:
    every = sorted([at(2), at(1.5), at(1)])
    assert snapshots.expired(every, NOW, hours=24, days=0) == []


@pytest.mark.parametrize(("hours", "days"), [(24, 7), (1, 0), (0, 1)])
def test_the_newest_stays_however_old_it_is(hours: int, days: int) -> None:
    every = sorted([at(9000), at(8000)])
    assert every[-1] not in snapshots.expired(every, NOW, hours=hours, days=days)


def test_none_stays_where_none_is_wanted() -> None:
    assert snapshots.expired([at(1)], NOW, hours=0, days=0) == [at(1)]


@pytest.mark.parametrize("seed", range(20))
def test_what_has_gone_once_would_have_gone_later(seed: int) -> None:
    """A clock that looks each hour ends with what one look at the end keeps of what there was."""
    dice = random.Random(seed)  # noqa: S311 -- moments of a test
    every: list[Snapshot] = []
    for hour in range(24 * 10):
        now = NOW + hour * HOUR
        if dice.random() < 0.8:
            every.append(snapshots.of(COMMIT, now - dice.randrange(HOUR)))
        every = sorted(set(every) - set(snapshots.expired(sorted(every), now, hours=24, days=7)))
    fresh = [one for one in every if one.time > NOW + 24 * 9 * HOUR]
    assert len({one.time // DAY for one in every if one not in fresh}) >= 7
    assert len(every) <= 24 + 8


def test_the_newest_of_a_commit_is_asked_first() -> None:
    """Rows may be written without a commit: the last of its own has them."""
    before, own, newer, after = at(5, THIRD), at(4), at(3), at(1, OTHER)
    moment = NOW - 4 * HOUR - 5
    assert snapshots.places([before, own, newer, after], COMMIT, moment) == [newer, own, after, before]


def test_a_commit_without_a_snapshot_is_looked_for_around_it() -> None:
    before, long_before, after, long_after = at(5), at(9), at(1), at(0)
    every = sorted([before, long_before, after, long_after])
    assert snapshots.places(every, OTHER, NOW - 4 * HOUR) == [after, long_after, before, long_before]


class Warehouse:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def make(self, commit: str) -> str:
        self.asked.append(f"make {commit}")
        return "made"

    def forget(self, *, hours: int, days: int, served: object) -> None:
        self.asked.append(f"forget {hours} {days} {served}")


class Hdfs:
    """Snapshots by name."""

    def __init__(self, every: Sequence[Snapshot]) -> None:
        self.every = [str(one) for one in every]

    def names(self, _: str) -> list[str]:
        return self.every

    def call(self, _: str, operation: str, __: str, *, snapshotname: str) -> None:
        assert operation == "DELETESNAPSHOT"
        self.every = [one for one in self.every if one != snapshotname]


@pytest.mark.parametrize(("hours", "kept"), [(1, [0, 2]), (0, [])])
def test_the_snapshot_of_a_served_commit_stays_while_any_are_kept(hours: int, kept: list[int]) -> None:
    every = [snapshots.of(COMMIT, 100), snapshots.of(OTHER, 200), snapshots.of(OTHER, time.time())]
    hdfs = Hdfs(every)
    served = Entry(COMMIT, "", (), "", 100, "")
    RealWarehouse(cast(WebHdfs, hdfs), "/r").forget(hours=hours, days=0, served=served)
    assert hdfs.every == [str(every[number]) for number in kept]


@pytest.mark.parametrize("hours", [0, 24])
def test_no_snapshot_goes_while_files_are_copied_out_of_one(
    hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse()
    monkeypatch.setattr(hosted, "_warehouse", lambda *_: warehouse)
    settings = Settings(
        cluster="kit", folder=str(tmp_path), keep_days=1, psql=[], namenode="", superuser="", root="/r",
        owner="hive", snapshot_hours=hours, snapshot_days=0, past_commit="gone", past_address="", past_port=0,
    )  # fmt: skip
    made = ["make c"] if hours else []
    with hosted._copying(settings).open("w") as copying:
        assert locks.hold(copying, 0)
        hosted._snapshots(settings, Store.made(settings.repository), "c")
        assert warehouse.asked == made
    hosted._snapshots(settings, Store.made(settings.repository), "c")
    assert warehouse.asked == [*made, *made, f"forget {hours} 0 None"]
