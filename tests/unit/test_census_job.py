"""A run of the census commits one consistent state of each table, whatever changes in the meantime."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from lakehouse.census import contents, job, model
from lakehouse.census.java_errors import Py4JError
from lakehouse.census.job import Counts
from lakehouse.census.metastore import Table
from tests.unit.census_files import FolderFiles, hive_table, table
from tests.unit.census_spark import FakeSpark, FakeStore

PROTOCOL = {"protocol": {"minReaderVersion": 1}}
METADATA = {"metaData": {"schemaString": '{"type":"struct","fields":[]}', "partitionColumns": []}}


def add(name: str) -> dict[str, Any]:
    return {"add": {"path": name, "size": 5, "modificationTime": 1, "partitionValues": {}}}


def run(
    tables: list[Table], root: Path, spark: FakeSpark, store: FakeStore, level: Any = model.FILE
) -> Counts:
    return job.run(cast("Any", spark), cast("Any", store), tables, lambda: FolderFiles(root), level)


def log_of(root: Path, name: str, *commits: int) -> Path:
    """Write a Delta log with commits that add a file each."""
    log = root / name / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    for number in commits:
        (log / f"{number:020}.json").write_text(json.dumps(add(f"{number}.parquet")))
    return log


def paths(store: FakeStore) -> set[str]:
    return {row["path"] for row in store.rows if row["metadata_type"] == model.FILE}


class TestCheckpoints:
    def test_no_commit_is_lost_when_a_checkpoint_is_written_during_the_run(self, tmp_path: Path) -> None:
        log = log_of(tmp_path, "t", 5, 6)
        (log / f"{5:020}.checkpoint.parquet").touch()

        def read(path: str) -> list[Mapping[str, Any]]:
            # While the checkpoint 5 is read, commits 7 and 8 and the checkpoint 8 are written.
            assert path.endswith(f"{5:020}.checkpoint.parquet")
            log_of(tmp_path, "t", 7, 8)
            (log / f"{8:020}.checkpoint.parquet").touch()
            return [PROTOCOL, METADATA, add("5.parquet")]

        store = FakeStore()
        counts = run([table("delta")], tmp_path, FakeSpark(read), store)
        assert not counts.failed
        assert paths(store) == {"/t/5.parquet", "/t/6.parquet"}
        # The version is that of the log that was read: the next run reads the new commits.
        assert run([table("delta")], tmp_path, FakeSpark(lambda _: [
            PROTOCOL, METADATA, *(add(f"{number}.parquet") for number in (5, 6, 7, 8))
        ]), store).changed == 1  # fmt: skip
        assert len(paths(store)) == 4

    @pytest.mark.parametrize("letter", "[]{}*?")
    def test_a_location_with_a_pattern_reads_no_other_table(self, tmp_path: Path, letter: str) -> None:
        name = f"t{letter}"
        (log_of(tmp_path, name, 5) / f"{5:020}.checkpoint.parquet").touch()

        def read(path: str) -> list[Mapping[str, Any]]:
            raise AssertionError(path)

        counts = run([table("delta", name)], tmp_path, FakeSpark(read), FakeStore())
        assert counts.failed[f"x.{name}"].startswith("Spark cannot read its checkpoint")

    def test_a_failure_of_the_jvm_is_a_fault_of_its_table(self, tmp_path: Path) -> None:
        (log_of(tmp_path, "bad", 5) / f"{5:020}.checkpoint.parquet").touch()
        log_of(tmp_path, "good", 0)
        (tmp_path / "good/_delta_log" / f"{0:020}.json").write_text(
            "\n".join(map(json.dumps, (PROTOCOL, METADATA, add("a"))))
        )

        def fail(_: str) -> list[Mapping[str, Any]]:
            raise Py4JError("an error occurred\n\tat java")

        store = FakeStore()
        counts = run([table("delta", "bad"), table("delta", "good")], tmp_path, FakeSpark(fail), store)
        assert counts.failed == {"x.bad": "its checkpoint 5 cannot be read: an error occurred"}
        assert paths(store) == {"/good/a"}


def test_units_are_those_of_the_decision_when_files_change_in_the_meantime(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/0").touch()

    class GrowingFiles(FolderFiles):
        """Files of which there is one more for each listing."""

        def entries(self, uri: str) -> Any:
            entries = super().entries(uri)
            (self.root / "t" / str(len(entries or ()))).touch()
            return entries

    store = FakeStore()
    spark = FakeSpark()
    counts = job.run(
        cast("Any", spark), cast("Any", store), [hive_table([])], lambda: GrowingFiles(tmp_path), model.FILE
    )
    assert counts.units == len(store.rows)
    assert {contents.facts_of(row["additional_metadata"])["files"] for row in store.rows
            if row["metadata_type"] == model.TABLE} == {1}  # fmt: skip
