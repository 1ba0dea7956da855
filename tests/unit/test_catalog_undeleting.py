"""Which snapshot has the files of a dropped table, and when none of them does."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import pytest

from lakehouse.catalog import snapshots
from lakehouse.catalog.names import Name
from lakehouse.catalog.restoring import Copy
from lakehouse.catalog.store import Entry
from lakehouse.clients import Files
from lakehouse.cluster_catalog.undeleting import Undeleting
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

ROOT, TABLE = "/lake", "/lake/d/t"
OWN, OTHER = "a" * 40, "b" * 40
FIRST, SECOND = snapshots.of(OWN, 1_795_000_000), snapshots.of(OTHER, 1_795_003_600)
NAME = Name("hive", "d", "t")
ENTRY = Entry(OWN, "", (), "eve", FIRST.time, "")
HIVE = {"type": "MANAGED_TABLE", "created": 7, "storage": {"location": f"hdfs://lake{TABLE}"}}
DELTA = HIVE | {"parameters": {"spark.sql.sources.provider": "delta"}, "data": {"version": "1"}}


class Hdfs(WebHdfs):
    """The files of HDFS by path; each file is in all folders above it."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__("", "dfsadmin")
        self.files = files

    def sizes(self, path: str) -> dict[str, int]:
        below = [(one.removeprefix(f"{path}/"), content) for one, content in self.files.items()]
        found = {one.partition("/")[0]: len(content) * ("/" not in one) for one, content in below}
        return {name: size for name, size in found.items() if not name.startswith("/")}

    def status(self, path: str) -> dict[str, Any] | None:
        if path in self.files:
            return {"length": len(self.files[path])}
        return {"length": 0} if any(one.startswith(f"{path}/") for one in self.files) else None

    def read(self, path: str) -> bytes:
        return self.files[path]


def kept(snapshot: snapshots.Snapshot, *paths: str) -> dict[str, bytes]:
    """Return files as a snapshot has them."""
    return {f"{ROOT}/.snapshot/{snapshot}{path.removeprefix(ROOT)}": b"1" for path in paths}


def found(
    files: Mapping[str, bytes],
    *documents: Mapping[str, Any],
    others: Mapping[str, Mapping[str, Any]] | None = None,
    **lack: Any,
) -> Copy | str:
    """Return what is found for a table; `others` are what other commits say of it."""

    @contextmanager
    def node(_: str, asked: Mapping[str, Any]) -> Iterator[tuple[bytes, IO[bytes]]]:
        one = {"files": 1, "bytes": 3, "stranger": "", **lack}
        yield json.dumps({"room": 10, "lacks": [one] * len(asked["tables"])}).encode(), io.BytesIO()

    said = others or {}
    undo = Undeleting(
        node, Files(Hdfs(files), "lakehouse status"), ROOT, ENTRY, lambda commit, _: said.get(commit)
    )
    return undo({NAME: documents})[NAME]


def snapshot_of(answer: Copy | str) -> str:
    assert isinstance(answer, Copy), answer
    return answer.snapshot


def test_the_commits_own_snapshot_has_it() -> None:
    there = kept(FIRST, f"{TABLE}/1") | kept(SECOND, f"{TABLE}/2")
    assert found(there, HIVE) == Copy(str(FIRST), TABLE, exclusive=True, files=1, bytes=3)


def test_a_table_that_was_made_anew_under_its_name_is_another_one() -> None:
    there = kept(SECOND, f"{TABLE}/1")
    commit = OTHER[:12]
    assert snapshot_of(found(there, HIVE, others={commit: HIVE})) == str(SECOND)
    moved = HIVE | {"storage": {"location": "hdfs://lake/lake/d/t2"}}
    for other in ({}, {commit: HIVE | {"created": 8}}, {commit: moved}):
        assert str(found(there, HIVE, others=other)).startswith("no snapshot has it; the oldest is of ")


def test_a_delta_table_needs_the_log_of_its_version() -> None:
    log = [f"{TABLE}/_delta_log/{number:020}.json" for number in range(2)]
    assert snapshot_of(found(kept(FIRST, *log), DELTA)) == str(FIRST)
    assert str(found(kept(FIRST, log[0]), DELTA)).startswith("no snapshot has it")


def test_a_partition_that_is_nowhere_stays_away_alone() -> None:
    days = [{"location": f"hdfs://lake{TABLE}/ds={day}"} for day in range(3)]
    there = kept(FIRST, f"{TABLE}/ds=0/1", f"{TABLE}/ds=2/1")
    answer = found(there, HIVE, *days)
    assert isinstance(answer, Copy)
    assert answer.absent == (days[1]["location"],)
    # One elsewhere may be another table's by now: it is looked for where it is.
    elsewhere = {"location": f"hdfs://lake{ROOT}/d/other/ds=0"}
    there |= kept(FIRST, f"{ROOT}/d/other/ds=0/1")
    answer = found(there, HIVE, elsewhere)
    assert isinstance(answer, Copy)
    assert answer.absent == (elsewhere["location"],)
    answer = found(there | {f"{ROOT}/d/other/ds=0/1": b"1"}, HIVE, elsewhere)
    assert isinstance(answer, Copy)
    assert answer.absent == ()


def test_the_snapshot_with_the_most_partitions_is_taken() -> None:
    days = [{"location": f"hdfs://lake{TABLE}/ds={day}"} for day in range(2)]
    there = kept(FIRST, f"{TABLE}/ds=0/1") | kept(SECOND, f"{TABLE}/ds=0/1", f"{TABLE}/ds=1/1")
    assert snapshot_of(found(there, HIVE, *days, others={OTHER[:12]: HIVE})) == str(SECOND)


def test_an_iceberg_table_with_files_outside_of_its_folder_does_not_come_back() -> None:
    pointer = f"hdfs://lake{ROOT}/elsewhere/1.metadata.json"
    ice = HIVE | {"parameters": {"table_type": "ICEBERG", "metadata_location": pointer}}
    there = kept(FIRST, f"{TABLE}/data/1", f"{ROOT}/elsewhere/1.metadata.json")
    assert found(there, ice) == f"only {TABLE} comes back, and {pointer} is not in it"


def test_a_table_outside_of_the_root_is_in_no_snapshot() -> None:
    other = {"storage": {"location": "hdfs://lake/user/eve/t"}}
    assert found(kept(FIRST, f"{TABLE}/1"), other) == f"snapshots are of {ROOT}, and /user/eve/t is not in it"


def test_a_file_in_the_way_and_too_little_room_are_said() -> None:
    there = kept(FIRST, f"{TABLE}/1")
    said = found(there, HIVE, stranger=f"{TABLE}/new")
    assert said == f"{TABLE}/new is not in {FIRST}: move it away first"
    with pytest.raises(LakehouseError, match=r"the files that come back take 11 B .* HDFS has 10 B left"):
        found(there, HIVE, bytes=11)
