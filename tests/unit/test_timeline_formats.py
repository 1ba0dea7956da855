"""Commits of Iceberg, Delta, Hive and Hudi tables, compared with what other libraries read of these."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from lakehouse.census.files import DamagedError
from lakehouse.timeline import commits, delta, hive, hudi, iceberg
from lakehouse.timeline.commits import Commit, File, Seen
from tests.unit.timeline_tables import NOW, FolderTree, table

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()))
BY_P = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))


def rows(*numbers: int, p: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "p": [p] * len(numbers)})


def replayed(files: dict[str, File], made: Iterable[Commit]) -> dict[str, File]:
    """Return the files of a table after commits, as the database keeps them."""
    for commit in made:
        assert commit.files is not None, commit
        if commit.files.whole:
            files = {}
        files = {path: file for path, file in files.items() if path not in commit.files.removed}
        files |= {file.path: file for file in commit.files.added}
    return files


class InFolder(NoopCatalog):
    """A catalog of one table, whose metadata files lie in a folder beside its data."""

    def __init__(self, folder: Path) -> None:
        super().__init__("test")
        self.io, self.folder, self.commits = PyArrowFileIO(), folder.as_uri(), 0
        self.metadata = new_table_metadata(SCHEMA, BY_P, UNSORTED_SORT_ORDER, self.folder)
        self.write()

    @property
    def place(self) -> str:
        return f"{self.folder}/metadata/{self.commits:05}.metadata.json"

    def write(self) -> None:
        ToOutputFile.table_metadata(self.metadata, self.io.new_output(self.place))

    def load_table(self, identifier: Any) -> IcebergTable:
        return IcebergTable(identifier, self.metadata, self.place, self.io, self)

    def commit_table(self, table: Any, _requirements: Any, updates: Any) -> CommitTableResponse:
        self.metadata = update_table_metadata(table.metadata, updates, enforce_validation=True)
        self.commits += 1
        self.write()
        return CommitTableResponse.model_validate(
            {"metadata": self.metadata, "metadata-location": self.place}
        )


@pytest.fixture
def own(tmp_path: Path) -> IcebergTable:
    return InFolder(tmp_path).load_table(("x", "t"))


class TestIceberg:
    def look(self, own: IcebergTable, state: str = "") -> Seen:
        place = own.refresh().metadata_location
        return iceberg.look(table("iceberg", parameters={"metadata_location": place}), FolderTree(), state)

    def live(self, own: IcebergTable) -> dict[str, tuple[int, int]]:
        files = own.refresh().inspect.files().to_pylist()
        return {row["file_path"]: (row["record_count"], row["file_size_in_bytes"]) for row in files}

    def test_each_snapshot_is_a_commit_and_only_once(self, own: IcebergTable) -> None:
        own.append(rows(1))
        first = self.look(own)
        own.append(rows(2, p="b"), snapshot_properties={"lakehouse.run": "r1", "engine-name": "mine"})
        own.delete("id = 1")
        second = self.look(own, first.state)
        assert [commit.action for commit in first.commits] == ["append"]
        assert [commit.action for commit in second.commits] == ["append", "delete"]
        assert [commit.id for commit in (*first.commits, *second.commits)] == [
            str(snapshot.snapshot_id) for snapshot in own.refresh().metadata.snapshots
        ]
        commit = second.commits[0]
        assert (commit.author, commit.engine, commit.facts["run"]) == ("ann", "mine", "r1")
        assert commit.facts["added_records"] == 1
        assert commit.files is not None
        assert [file.partition for file in commit.files.added] == ["p=b"]
        assert self.look(own, second.state) == Seen(second.state)

    def test_files_of_random_commits_are_those_of_the_table(self, own: IcebergTable) -> None:
        draw, state, files = random.Random(7), "", dict[str, File]()  # noqa: S311 -- the same tables each time
        kinds: list[Callable[[int, str], Any]] = [
            lambda key, p: own.append(rows(key, key + 1, p=p)),
            lambda key, _: own.delete(f"id = {key}"),
            lambda key, p: own.overwrite(rows(key, p=p), f"p == '{p}'"),
            lambda _, p: own.delete(f"p == '{p}'"),
            lambda key, _: own.transaction().set_properties({"n": str(key)}).commit_transaction(),
        ]
        for _ in range(40):
            for _ in range(draw.choice((1, 1, 3))):
                draw.choice(kinds)(draw.randrange(20), draw.choice("abc"))
            result = self.look(own, state)
            files, state = replayed(files, result.commits), result.state
            assert {path: (file.rows, file.bytes) for path, file in files.items()} == self.live(own)

    def test_a_table_that_went_back_has_all_its_files_read(self, own: IcebergTable) -> None:
        own.append(rows(1))
        [first] = own.metadata.snapshots
        own.append(rows(2))
        result = self.look(own)
        own.manage_snapshots().set_current_snapshot(first.snapshot_id).commit()
        rollback = self.look(own, result.state)
        [commit] = rollback.commits
        assert commit.action == "set current"
        assert commit.id.startswith(f"{first.snapshot_id}@")
        assert set(replayed({}, rollback.commits)) == set(self.live(own))
        own.append(rows(3))
        after = self.look(own, rollback.state)
        assert set(replayed(replayed({}, rollback.commits), after.commits)) == set(self.live(own))

    def test_a_change_without_a_snapshot_is_a_commit(self, own: IcebergTable) -> None:
        own.append(rows(1))
        result = self.look(own)
        with own.update_schema() as update:
            update.add_column("more", StringType())
        [commit] = self.look(own, result.state).commits
        assert (commit.action, commit.author) == ("alter", "bob")
        assert commit.files == commits.Files()

    def test_a_commit_on_a_branch_changes_no_file_of_the_table(self, own: IcebergTable) -> None:
        own.append(rows(1))
        own.manage_snapshots().create_branch(own.metadata.snapshots[0].snapshot_id, "b").commit()
        result = self.look(own)
        own.append(rows(2), branch="b")
        [commit] = self.look(own, result.state).commits
        assert commit.facts["branch"] is True
        assert commit.files == commits.Files()

    def test_a_long_history_is_seen_from_its_newest_commits(
        self, own: IcebergTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(iceberg, "MOST_COMMITS", 2)
        for number in range(4):
            own.append(rows(number))
        result = self.look(own)
        assert [commit.files is not None for commit in result.commits] == [False, True]
        assert set(replayed({}, result.commits[1:])) == set(self.live(own))

    def test_a_table_of_too_many_files_has_commits_alone(
        self, own: IcebergTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(iceberg, "MOST_FILES", 1)
        own.append(rows(1))
        own.append(rows(2))
        result = self.look(own)
        assert "more than 1 files" in result.fault
        assert [commit.files for commit in result.commits] == [None, None]

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"current-snapshot-id": 5}', b"\x1f\x8bzip"])
    def test_damaged_metadata_is_one_line(self, own: IcebergTable, content: bytes) -> None:
        own.append(rows(1))
        Path(own.metadata_location.removeprefix("file://")).write_bytes(content)
        with pytest.raises(DamagedError) as error:
            iceberg.look(
                table("iceberg", parameters={"metadata_location": own.metadata_location}), FolderTree(), ""
            )
        assert "\n" not in str(error.value)

    def test_a_manifest_that_is_gone_leaves_the_commits(self, own: IcebergTable) -> None:
        own.append(rows(1))
        Path(own.metadata.snapshots[0].manifest_list.removeprefix("file://")).unlink()
        result = self.look(own)
        assert "is not there" in result.fault
        assert [commit.files for commit in result.commits] == [None]
        with pytest.raises(DamagedError, match="metadata_location is not set"):
            iceberg.look(table("iceberg"), FolderTree(), "")


class TestDelta:
    def look(self, folder: Path, state: str = "") -> Seen:
        return delta.look(table("delta", folder), FolderTree(), state, NOW)

    def live(self, folder: Path) -> set[str]:
        return {uri.removeprefix("file://") for uri in DeltaTable(folder).file_uris()}

    def test_each_version_is_a_commit_and_only_once(self, tmp_path: Path) -> None:
        write_deltalake(tmp_path, rows(1, 2))
        first = self.look(tmp_path)
        write_deltalake(tmp_path, rows(3), mode="append")
        DeltaTable(tmp_path).delete("id = 1")
        second = self.look(tmp_path, first.state)
        assert [(commit.id, commit.action) for commit in (*first.commits, *second.commits)] == [
            ("0", "write"), ("1", "write"), ("2", "delete"),
        ]  # fmt: skip
        commit = second.commits[0]
        assert commit.author == "ann"
        assert commit.engine.startswith("delta-rs")
        assert commit.files is not None
        assert [file.rows for file in commit.files.added] == [1]
        assert self.look(tmp_path, second.state) == Seen(second.state)

    def test_files_of_random_commits_are_those_of_the_table(self, tmp_path: Path) -> None:
        draw, state, files = random.Random(7), "", dict[str, File]()  # noqa: S311 -- the same tables each time
        write_deltalake(tmp_path, rows(1), partition_by=["p"])
        kinds: list[Callable[[int, str], Any]] = [
            lambda key, p: write_deltalake(tmp_path, rows(key, key + 1, p=p), mode="append"),
            lambda key, _: DeltaTable(tmp_path).delete(f"id = {key}"),
            lambda key, p: write_deltalake(tmp_path, rows(key, p=p), mode="overwrite"),
            lambda *_: DeltaTable(tmp_path).optimize.compact(),
            lambda *_: DeltaTable(tmp_path).create_checkpoint(),
        ]
        for _ in range(60):
            draw.choice(kinds)(draw.randrange(20), draw.choice(["a", "b/c", "ü %"]))
            result = self.look(tmp_path, state)
            files, state = replayed(files, result.commits), result.state
            assert set(files) == self.live(tmp_path)

    def test_a_log_that_begins_later_has_commits_without_files(self, tmp_path: Path) -> None:
        for number in range(3):
            write_deltalake(tmp_path, rows(number), mode="append")
        (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
        result = self.look(tmp_path)
        assert [commit.id for commit in result.commits] == ["1", "2"]
        assert "begins with version 1" in result.fault
        assert [commit.files for commit in result.commits] == [None, None]

    def test_a_folder_that_has_just_changed_is_listed_again(self, tmp_path: Path) -> None:
        write_deltalake(tmp_path, rows(1))
        modified = FolderTree().names(str(tmp_path))[0].modified
        result = delta.look(table("delta", tmp_path), FolderTree(), "", modified + 100)
        assert json.loads(result.state)["modified"] == 0
        assert not delta.look(table("delta", tmp_path), FolderTree(), result.state, modified + 200).commits

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"commitInfo": 5}', '{"add": {"path": "a"}}'])
    def test_a_damaged_commit_is_one_line_and_the_next_ones_are_there(
        self, tmp_path: Path, content: str
    ) -> None:
        for number in range(3):
            write_deltalake(tmp_path, rows(number), mode="append")
        (tmp_path / "_delta_log" / f"{1:020}.json").write_text(content)
        result = self.look(tmp_path)
        assert [commit.id for commit in result.commits] == ["0", "1", "2"]
        assert not content or "is damaged" in result.fault

    def test_a_table_without_a_log_is_damaged(self, tmp_path: Path) -> None:
        with pytest.raises(DamagedError, match="_delta_log is not there"):
            self.look(tmp_path)


class TestHive:
    def look(self, partitions: dict[str, str], state: str = "", changed: int = 100) -> Seen:
        digest = f"{len(partitions)}:{sorted(partitions.values())}"
        parameters = {"transient_lastDdlTime": str(changed)}
        described = table("hive", created=50, partitions=digest, parameters=parameters)
        return hive.look(described, lambda _: partitions, state, NOW)

    def test_changes_of_partitions_are_commits(self) -> None:
        first = self.look({"d=1": "1:110"})
        assert [(commit.action, commit.time_ms, commit.author) for commit in first.commits] == [
            ("create", 50_000, "bob")
        ]
        larger = self.look({"d=1": "1:110", "d=2": "2:120"}, first.state)
        [commit] = larger.commits
        assert (commit.action, commit.time_ms, commit.facts["partitions_added"]) == (
            "add partitions", 120_000, ["d=2"],
        )  # fmt: skip
        less = self.look({"d=2": "2:130"}, larger.state)
        [commit] = less.commits
        assert commit.facts["partitions_dropped"] == ["d=1"]
        assert commit.facts["partitions_changed_count"] == 1
        assert self.look({"d=2": "2:130"}, less.state) == Seen(less.state)

    def test_a_change_of_the_table_is_a_commit(self) -> None:
        first = self.look({})
        [commit] = self.look({}, first.state, changed=200).commits
        assert (commit.action, commit.time_ms) == ("alter", 200_000)

    def test_a_time_of_a_client_that_is_no_number_is_now(self) -> None:
        described = table("hive", parameters={"transient_lastDdlTime": "9" * 40})
        first = hive.look(described, lambda _: {}, "", NOW)
        odd = replace(described, parameters={"transient_lastDdlTime": "soon"})
        [commit] = hive.look(odd, lambda _: {}, first.state, NOW).commits
        assert commit.time_ms == NOW


class TestHudi:
    def look(self, folder: Path, state: str = "", **parameters: str) -> Seen:
        return hudi.look(table("hudi", folder, parameters=parameters), FolderTree(), state)

    def write(self, folder: Path, *names: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).touch()

    @pytest.mark.parametrize(
        ("below", "complete"), [(".hoodie", "{}.commit"), (".hoodie/timeline", "{}_20260102030409000.commit")]
    )
    def test_instants_of_both_layouts(self, tmp_path: Path, below: str, complete: str) -> None:
        done, started = "20260102030405000", "20260102030406000"
        self.write(tmp_path / below, f"{done}.commit.requested", f"{done}.inflight", complete.format(done))
        self.write(
            tmp_path / below, f"{started}.commit.requested", f"{started}.commit.inflight", "hoodie.properties"
        )
        result = self.look(tmp_path)
        assert [(commit.id, commit.action, commit.time_ms) for commit in result.commits] == [
            (done, "commit", 1767323045000)
        ]
        assert [(commit.instant, commit.state) for commit in result.open] == [(int(started), "inflight")]
        assert not self.look(tmp_path, result.state).commits

    def test_a_metastore_that_is_behind_is_a_lag(self, tmp_path: Path) -> None:
        times = ["20260102030405000", "20260102030406000"]
        self.write(tmp_path / ".hoodie", *(f"{time}.commit" for time in times))
        assert self.look(tmp_path, last_commit_time_sync=times[1]).lag == ""
        assert self.look(tmp_path, last_commit_time_sync=times[0]).lag == (
            f"the metastore has {times[0]}, 1 before {times[1]}"
        )

    def test_a_table_without_instants_is_damaged(self, tmp_path: Path) -> None:
        with pytest.raises(DamagedError, match="has no instant"):
            self.look(tmp_path)


def test_what_a_writer_says_is_bounded_and_in_one_line() -> None:
    facts: dict[str, Any] = {"added-records": "12", "bad": "x", "lakehouse.a\nb": "c\0d" * 100}
    assert commits.numbers(facts, ["added-records", "bad"]) == {"added_records": 12}
    [(name, value)] = commits.own_facts(facts).items()
    assert (name, len(value), "\0" in value) == ("a b", 200, False)


def test_a_time_beyond_all_years_is_the_last_one() -> None:
    assert Commit("1", "write", 1 << 62).document()["details"]["time_ms"] == 253402300799999
