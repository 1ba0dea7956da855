"""Contents of Iceberg, Delta and Hive tables, compared with what other libraries make of the same files."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet as arrow_parquet
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BooleanType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from lakehouse.catalog import avro
from lakehouse.census import collect, contents, delta, iceberg, model
from lakehouse.census.collect import Outcome
from lakehouse.census.delta import Action
from lakehouse.census.files import UnavailableError
from lakehouse.census.iceberg import SpecField
from lakehouse.census.metastore import HivePartition, Table
from lakehouse.census.model import MetadataType
from tests.unit.census_files import FolderFiles, hive_table, table
from tests.unit.iceberg_tables import PLACE, Written

ROWS = pa.table({"id": pa.array(range(9), pa.int64()), "p": ["a", "b", None] * 3})


def collected(
    one: Table, files: FolderFiles, level: MetadataType = model.ROW_GROUP, known: str = ""
) -> Outcome:
    outcome = collect.collect(one, files, level, known)
    assert not outcome.failed
    return outcome


def facts(outcome: Outcome, kind: MetadataType = model.TABLE) -> list[dict[str, Any]]:
    return [
        dict(contents.facts_of(unit.additional_metadata))
        for unit in outcome.units
        if unit.metadata_type == kind
    ]


def counts(outcome: Outcome) -> dict[str, int]:
    kinds = [str(unit.metadata_type) for unit in outcome.units]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


@pytest.mark.parametrize("kind", ["hive", "delta", "iceberg"])
def test_a_table_of_too_many_units_is_a_fault(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MOST_UNITS", 3)
    if kind == "iceberg":
        paths = [(f"hdfs://lake/t/{number}.parquet", "a") for number in range(4)]
        files, described = TestIceberg().files(tmp_path, Written(data=paths)), TestIceberg().table()
    elif kind == "delta":
        TestDelta().write(tmp_path, 4)
        files, described = FolderFiles(tmp_path), table("delta")
    else:
        files, described = TestHive().write(tmp_path, "t", "t/a"), hive_table([])
    outcome = collect.collect(described, files, model.ROW_GROUP)
    assert "more than 3 files and row groups" in outcome.failed


class TestIceberg:
    def files(self, tmp_path: Path, written: Written) -> FolderFiles:
        for path, content in written.files().contents.items():
            (tmp_path / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path.lstrip("/")).write_bytes(content)
        return FolderFiles(tmp_path)

    def table(self) -> Table:
        return table("iceberg", parameters={"metadata_location": PLACE})

    def test_files_and_partitions_come_from_the_manifests(self, tmp_path: Path) -> None:
        schema = [{"id": 1, "name": "id", "type": "int"}, {"id": 2, "name": "p", "type": "string"}]
        written = Written(
            schema, [("hdfs://lake/t/data/1.parquet", "a"), ("hdfs://lake/t/data/2.parquet", "b")]
        )
        outcome = collected(self.table(), self.files(tmp_path, written))
        assert counts(outcome) == {"FILE": 2, "PARTITION": 2, "SEGMENT": 2, "TABLE": 1}
        assert {unit.metadata_key for unit in outcome.units} == {"GENERAL_INFO", "p=a", "p=b"}
        [about] = facts(outcome)
        assert (about["files"], about["rows"], about["snapshots"], about["manifests"]) == (2, 2, 1, 1)

    def test_an_unchanged_table_is_not_read(self, tmp_path: Path) -> None:
        files = self.files(tmp_path, Written())
        version = collected(self.table(), files).version
        files.reads.clear()
        outcome = collected(self.table(), files, known=version)
        assert outcome.unchanged
        assert not files.reads

    @pytest.mark.parametrize("path", ["metadata/1.metadata.json", "metadata/list", "metadata/manifest"])
    @pytest.mark.parametrize("damage", ["missing", "cut", "empty"])
    def test_a_damaged_file_is_a_fault_of_one_line(self, tmp_path: Path, path: str, damage: str) -> None:
        files = self.files(tmp_path, Written())
        place = tmp_path / "t" / path
        content = place.read_bytes()
        place.unlink() if damage == "missing" else place.write_bytes(
            content[: len(content) // 2 * (damage == "cut")]
        )
        outcome = collect.collect(self.table(), files, model.FILE)
        assert outcome.failed
        assert "\n" not in outcome.failed
        assert not outcome.units

    @pytest.mark.parametrize("time", [2**63, -1, 1e30, "1", True])
    @pytest.mark.parametrize("field", ["timestamp-ms", "last-updated-ms", "format-version"])
    def test_a_number_beyond_64_bits_is_a_fault(self, tmp_path: Path, time: Any, field: str) -> None:
        snapshots = Written().metadata()["snapshots"]
        changes = {field: time} if field != "timestamp-ms" else {"snapshots": [{**snapshots[0], field: time}]}
        outcome = collect.collect(self.table(), self.files(tmp_path, Written(changes=changes)), model.FILE)
        assert "is damaged" in outcome.failed
        assert not outcome.units

    def test_a_table_elsewhere_is_a_fault(self, tmp_path: Path) -> None:
        elsewhere = table("iceberg", parameters={"metadata_location": "s3://bucket/1.metadata.json"})
        outcome = collect.collect(elsewhere, FolderFiles(tmp_path), model.FILE)
        assert outcome.failed == "s3://bucket/1.metadata.json is not in HDFS"

    @pytest.mark.parametrize(
        ("transform", "kind", "value"),
        [
            ("year", DateType(), 54), ("month", DateType(), 650), ("month", DateType(), -1),
            ("day", DateType(), 19_000), ("hour", TimestampType(), 480_000), ("hour", TimestampType(), -1),
            ("identity", DateType(), 19_000), ("identity", DateType(), -1), ("bucket[4]", LongType(), 3),
            ("identity", IntegerType(), -5), ("identity", StringType(), "a/b=c"),
            ("identity", BooleanType(), True), ("identity", TimestampType(), 1_700_000_000_000_001),
            ("identity", TimestamptzType(), 1_700_000_000_000_000), ("identity", TimeType(), 3_600_000_001),
            ("truncate[3]", StringType(), "abc"),
        ],
    )  # fmt: skip
    def test_values_have_the_text_that_pyiceberg_gives_them(
        self, transform: str, kind: Any, value: Any
    ) -> None:
        text = SpecField("f", transform, str(kind)).text(value)
        assert text == parse_transform(transform).to_human_string(kind, value)

    def test_a_date_beyond_those_of_python_is_a_number(self) -> None:
        assert SpecField("f", "day", "date").text(10**8) == str(10**8)

    @pytest.mark.parametrize("kind", [StringType(), LongType(), DateType()])
    def test_null_is_no_text(self, kind: Any) -> None:
        texts = {SpecField("f", "identity", str(kind)).text(value) for value in (None, "null", "", "None")}
        assert len(texts) == 4
        assert SpecField("f", "identity", str(kind)).text(None) == "__HIVE_DEFAULT_PARTITION__"

    def test_a_manifest_without_a_field_of_its_partition_spec_is_a_fault(self, tmp_path: Path) -> None:
        specs = [{"spec-id": 1, "fields": [
            {"name": "q", "transform": "identity", "source-id": 2, "field-id": 1000}]}]  # fmt: skip
        files = self.files(tmp_path, Written(changes={"partition-specs": specs}))
        outcome = collect.collect(self.table(), files, model.FILE)
        assert outcome.failed.endswith("its schema has no data_file.partition.q")

    def test_a_decimal_is_exact(self) -> None:
        field = SpecField("f", "identity", "decimal(38, 10)")
        greatest = 10**38 - 1
        texts = [
            field.text(value.to_bytes(16, "big", signed=True))
            for value in (greatest, greatest - 1, -greatest)
        ]
        assert texts == [f"{'9' * 28}.{'9' * 10}", f"{'9' * 28}.{'9' * 9}8", f"-{'9' * 28}.{'9' * 10}"]

    def test_a_type_of_a_partition_that_python_cannot_count_is_a_fault(self, tmp_path: Path) -> None:
        schema = [
            {"id": 1, "name": "id", "type": "int"},
            {"id": 2, "name": "p", "type": "decimal(9, 3000000)"},
        ]
        files = self.files(tmp_path, Written(schema))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(avro, "read", self.of_bytes(avro.read))
            outcome = collect.collect(self.table(), files, model.FILE)
        assert outcome.failed

    @staticmethod
    def of_bytes(read: Any) -> Any:
        """Return a reader of Avro files whose last text is bytes, as that of a decimal."""

        def changed(content: bytes, fields: Any, *more: Any) -> Any:
            for row in read(content, fields, *more):
                yield (*row[:-1], b"\x01") if row[-1] == "a" else row

        return changed

    def test_decimals_uuids_and_bytes_have_a_text(self) -> None:
        assert SpecField("f", "identity", "decimal(9, 2)").text(b"\x96") == "-1.06"
        assert SpecField("f", "identity", "binary").text(b"\x01\x02") == "AQI="
        assert SpecField("f", "identity", "uuid").text(bytes(16)) == "00000000-0000-0000-0000-000000000000"

    @pytest.mark.parametrize(
        ("name", "avro_name"),
        [
            ("a_1", "a_1"),
            ("1a", "_1a"),
            ("a-b", "a_x2Db"),
            ("é", "é"),
            ("😀a", "_xD83D_xDE00a"),
            ("a²½", "a_xB2_xBD"),
            ("٣a٣", "_٣a٣"),
            ("", ""),
        ],
    )
    def test_names_of_partitions_are_those_of_avro(self, name: str, avro_name: str) -> None:
        assert iceberg.avro_name(name) == avro_name


class TestDelta:
    def write(self, root: Path, commits: int = 3, **options: Any) -> DeltaTable:
        for _ in range(commits):
            write_deltalake(root / "t", ROWS, mode="append", **options)
        return DeltaTable(root / "t")

    def test_files_are_those_that_delta_rs_lists(self, tmp_path: Path) -> None:
        written = self.write(tmp_path, partition_by=["p"])
        written.delete("id = 1")
        outcome = collected(table("delta"), FolderFiles(tmp_path))
        actions = pa.table(written.get_add_actions(flatten=True)).to_pylist()
        paths = {f"/t/{row['path']}": (row["size_bytes"], row["num_records"]) for row in actions}
        units = [unit for unit in outcome.units if unit.metadata_type == model.FILE]
        assert {
            str(unit.path): (about["bytes"], about["rows"])
            for unit, about in zip(units, facts(outcome, model.FILE), strict=True)
        } == paths
        [about] = facts(outcome)
        assert about["rows"] == 24
        assert about["table_version"] == 3
        assert {unit.metadata_key for unit in outcome.units} == {
            "GENERAL_INFO",
            "p=a",
            "p=b",
            "p=__HIVE_DEFAULT_PARTITION__",
        }
        assert counts(outcome)["ROW_GROUP"] == len(paths)

    def test_columns_have_numbers_of_nulls_and_no_values_of_cells(self, tmp_path: Path) -> None:
        self.write(tmp_path, 1)
        outcome = collected(table("delta"), FolderFiles(tmp_path))
        [unit] = [unit for unit in outcome.units if unit.metadata_type == model.FILE]
        assert unit.columns_statistics == {"id": '{"nullsCount": 0}', "p": '{"nullsCount": 3}'}

    def test_an_unchanged_table_is_listed_and_not_read(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        files = FolderFiles(tmp_path)
        version = collected(table("delta"), files).version
        files.reads.clear()
        assert collected(table("delta"), files, known=version).unchanged
        assert not files.reads
        self.write(tmp_path, 1)
        assert not collected(table("delta"), files, known=version).unchanged

    def test_a_log_without_its_first_commits_needs_its_checkpoint(self, tmp_path: Path) -> None:
        written = self.write(tmp_path, 3, partition_by=["p"])
        whole = collected(table("delta"), FolderFiles(tmp_path))
        written.create_checkpoint()
        log = tmp_path / "t" / "_delta_log"
        rows = arrow_parquet.read_table(next(log.glob("*.checkpoint.parquet"))).to_pylist(
            maps_as_pydicts="strict"
        )
        for number in range(2):
            (log / f"{number:020}.json").unlink()
        self.write(tmp_path, 1)
        outcome = collect.collect(table("delta"), FolderFiles(tmp_path), model.ROW_GROUP)
        assert outcome.log is not None
        assert (outcome.log.checkpoint, len(outcome.log.checkpoint_files)) == (2, 1)
        checkpoint = delta.Checkpoint(outcome.log, rows)
        outcome = collect.collect(
            table("delta"), FolderFiles(tmp_path), model.ROW_GROUP, checkpoint=checkpoint
        )
        assert not outcome.failed
        before, after = facts(whole)[0], facts(outcome)[0]
        assert after["files"] == before["files"] + 3
        assert after["rows"] == before["rows"] + 9

    def test_a_log_without_a_commit_in_the_middle_is_a_fault(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        (tmp_path / "t" / "_delta_log" / f"{1:020}.json").unlink()
        outcome = collect.collect(table("delta"), FolderFiles(tmp_path), model.FILE)
        assert outcome.failed == "hdfs://lake/t/_delta_log has no commit 1"

    @pytest.mark.parametrize(
        "line",
        [
            "", "{", "[]", "1", '{"add": 1}', '{"add": {"path": "a"}}', '{"add": {"path": "a", "size": "b"}}',
            '{"metaData": {"schemaString": "["}}', '{"metaData": {"schemaString": "{\\"fields\\": [1]}"}}',
            '{"metaData": {"partitionColumns": 5}}', '{"add": {"path": "\\ud800", "size": 1}}',
            '{"add": {"path": "a", "size": 1, "partitionValues": [1]}}',
            '{"add": {"path": "a", "size": 1, "modificationTime": 99999999999999999999}}',
            '{"add": {"path": "a", "size": 1e30}}', '{"add": {"path": "a", "size": -1}}',
            '{"add": {"path": "a", "size": 9223372036854775808}}', '{"add": {"path": "a", "size": true}}',
            '{"add": {"path": "a", "size": 1, "stats": "{\\"numRecords\\": 1e400}"}}',
            '{"add": {"path": "a", "size": 1, "stats": "{\\"numRecords\\": 99999999999999999999}"}}',
            '{"add": {"path": "a", "size": 9223372036854775807}}\n'
            '{"add": {"path": "b", "size": 9223372036854775807}}',
        ],
    )  # fmt: skip
    def test_a_hostile_commit_is_a_fault_of_one_line(self, tmp_path: Path, line: str) -> None:
        self.write(tmp_path, 1)
        (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(line)
        outcome = collect.collect(table("delta"), FolderFiles(tmp_path), model.FILE)
        assert outcome.failed
        assert "\n" not in outcome.failed

    def test_a_data_file_that_is_not_there_is_counted(self, tmp_path: Path) -> None:
        self.write(tmp_path, 2)
        next((tmp_path / "t").glob("*.parquet")).unlink()
        [about] = facts(collected(table("delta"), FolderFiles(tmp_path)))
        assert (about["files"], about["unreadable_files"]) == (2, 1)
        assert about["unreadable_file"].endswith("is not there")

    def test_a_commit_of_fewer_bytes_than_listed_is_a_fault(self, tmp_path: Path) -> None:
        self.write(tmp_path, 2)
        commit = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
        commit.write_text(f"{commit.read_text().rstrip()}\n{json.dumps({'txn': {}})}")
        outcome = collect.collect(table("delta"), FolderFiles(tmp_path, cut="1.json"), model.FILE)
        assert "bytes" in outcome.failed

    def test_replayed_files_have_no_values_of_cells_in_memory(self) -> None:
        state = delta._State()
        stats = json.dumps({"numRecords": 5, "minValues": {"a": "x" * 9}, "nullCount": {"a": 1}})
        state.apply([{"add": {"path": "a", "size": 1, "stats": stats, "tags": {"b": "c"}}}])
        assert list(state.files.values()) == [
            {"path": "a", "size": 1, "stats": {"numRecords": 5, "nullCount": {"a": 1}}}
        ]

    def test_a_path_is_a_uri_in_the_log(self) -> None:
        assert delta._path("hdfs://lake/t", "p=a%20b/1.parquet") == "/t/p=a b/1.parquet"
        assert delta._path("hdfs://lake/t", "hdfs://lake/u/1.parquet") == "/u/1.parquet"

    def test_a_deletion_vector_replaces_its_file(self) -> None:
        state = delta._State()
        vector = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "cardinality": 2}
        add: Action = {"add": {"path": "a", "size": 1, "stats": '{"numRecords": 5}'}}
        state.apply([add, {"remove": {"path": "a"}}, {"add": {**add["add"], "deletionVector": vector}}])
        [file] = [delta._file(table("delta"), action, {}, []) for action in state.files.values()]
        assert file.rows == 3


class TestHive:
    def write(self, root: Path, *folders: str) -> FolderFiles:
        for folder in folders:
            (root / folder).mkdir(parents=True, exist_ok=True)
            arrow_parquet.write_table(ROWS, root / folder / "1.parquet", row_group_size=5)
        return FolderFiles(root)

    def test_files_belong_to_their_partitions(self, tmp_path: Path) -> None:
        files = self.write(tmp_path, "t/ds=1/hr=1", "t/ds=1/hr=2", "t/ds=2/hr=1")
        (tmp_path / "t/ds=1/hr=1/_SUCCESS").touch()
        described = hive_table([("1", "1"), ("1", "2"), ("2", "1")], ("ds", "hr"))
        outcome = collected(described, files)
        assert counts(outcome) == {"FILE": 3, "PARTITION": 3, "ROW_GROUP": 6, "SEGMENT": 2, "TABLE": 1}
        [about] = facts(outcome)
        size = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
        assert (about["files"], about["rows"], about["bytes"]) == (3, 27, size)

    def test_partitions_without_directory_and_directories_without_partition_are_named(
        self, tmp_path: Path
    ) -> None:
        files = self.write(tmp_path, "t/ds=1", "t/ds=3")
        [about] = facts(collected(hive_table([("1",), ("2",)], ("ds",)), files))
        assert about["partitions_without_directory_names"] == ["/t/ds=2"]
        assert about["directories_without_partition_names"] == ["ds=3"]
        assert about["files"] == 1

    def test_a_partition_may_be_elsewhere(self, tmp_path: Path) -> None:
        files = self.write(tmp_path, "t", "elsewhere")
        described = hive_table([("1",)], ("ds",))
        [partition] = described.partitions
        moved = Table(
            **{**vars(described), "partitions": (type(partition)(("1",), "hdfs://lake/elsewhere"),)}
        )
        [about] = facts(collected(moved, files))
        assert (about["files"], about["partitions_without_directory"]) == (1, 0)

    def test_a_file_that_is_no_parquet_hides_no_other(self, tmp_path: Path) -> None:
        files = self.write(tmp_path, "t")
        (tmp_path / "t/2.parquet").write_bytes(b"none")
        (tmp_path / "t/3.parquet").touch()
        outcome = collected(hive_table([]), files)
        [about] = facts(outcome)
        assert (about["files"], about["unreadable_files"]) == (3, 2)
        assert "rows" not in about
        assert counts(outcome)["ROW_GROUP"] == 2
        # The next run reads the files again.
        assert not outcome.version
        assert not about["version"]

    def test_a_file_that_hdfs_refuses_is_a_fault_that_the_next_run_tries_again(self, tmp_path: Path) -> None:
        files = self.write(tmp_path, "t")
        files.refused = "1.parquet"
        outcome = collect.collect(hive_table([]), files, model.ROW_GROUP)
        assert outcome.failed == "OPEN /t/1.parquet: Connection refused"
        assert not outcome.version

    def test_an_unchanged_table_is_listed_and_not_read(self, tmp_path: Path) -> None:
        files = self.write(tmp_path, "t/ds=1")
        described = hive_table([("1",)], ("ds",))
        version = collected(described, files).version
        files.reads.clear()
        assert collected(described, files, known=version).unchanged
        assert not files.reads
        os.utime(tmp_path / "t/ds=1/1.parquet", (1, 1))
        assert not collected(described, files, known=version).unchanged

    @pytest.mark.parametrize(
        "changes",
        [
            {"parameters": {"numFiles": "2"}}, {"parameters": {"numRows": "2"}}, {"input_format": "a.Orc"},
            {"partitions": (HivePartition(("1",), "hdfs://lake/t/ds=1", {"numFiles": "2"}),)},
            {"partitions": (HivePartition(("1",), "hdfs://lake/t/ds=1", input_format="a.Orc"),)},
        ],
    )  # fmt: skip
    def test_what_the_report_reads_changes_the_version(self, tmp_path: Path, changes: dict[str, Any]) -> None:
        files = self.write(tmp_path, "t/ds=1")
        described = hive_table([("1",)], ("ds",))
        version = collected(described, files).version
        assert collected(Table(**{**vars(described), **changes}), files).version != version

    def test_a_new_file_of_the_same_size_and_time_changes_the_version(self, tmp_path: Path) -> None:
        files = self.write(tmp_path, "t")
        os.utime(tmp_path / "t/1.parquet", (1, 1))
        version = collected(hive_table([]), files).version
        (tmp_path / "copy").write_bytes((tmp_path / "t/1.parquet").read_bytes())
        (tmp_path / "copy").rename(tmp_path / "t/1.parquet")
        os.utime(tmp_path / "t/1.parquet", (1, 1))
        assert collected(hive_table([]), files).version != version

    def test_a_partition_has_the_format_of_its_own(self, tmp_path: Path) -> None:
        files = self.write(tmp_path, "t/ds=1", "t/ds=2")
        described = hive_table([("1",), ("2",)], ("ds",))
        first, second = described.partitions
        mixed = Table(
            **{**vars(described), "partitions": (replace(first, input_format="a.OrcInputFormat"), second)}
        )
        outcome = collected(mixed, files)
        assert [about["format"] for about in facts(outcome, model.FILE)] == ["orc", "parquet"]
        assert facts(outcome)[0]["file_formats"] == ["orc", "parquet"]
        assert facts(outcome)[0]["unreadable_files"] == 0

    @pytest.mark.parametrize("folder", ["_private", ".hidden", "a/_b/c"])
    def test_a_partition_may_be_in_a_hidden_folder(self, tmp_path: Path, folder: str) -> None:
        files = self.write(tmp_path, "t", f"t/{folder}/more")
        described = hive_table([("1",)], ("ds",))
        moved = Table(
            **{**vars(described), "partitions": (HivePartition(("1",), f"hdfs://lake/t/{folder}"),)}
        )
        [about] = facts(collected(moved, files))
        assert (about["files"], about["partitions_without_directory"]) == (1, 0)

    @pytest.mark.parametrize("text", ["--5", "-5", "99999999999999999999", "1e5", "", "٣"])
    def test_text_in_place_of_a_statistic_is_ignored(self, tmp_path: Path, text: str) -> None:
        described = hive_table([], parameters={"numFiles": text, "numRows": text})
        [about] = facts(collected(described, self.write(tmp_path, "t")))
        assert (about["statistics_files"], about["statistics_rows"]) == (None, None)

    def test_a_table_without_its_folder_is_a_fault(self, tmp_path: Path) -> None:
        outcome = collect.collect(hive_table([]), FolderFiles(tmp_path), model.FILE)
        assert outcome.failed == "hdfs://lake/t is not there"

    def test_partitions_that_could_not_be_listed_are_a_fault(self, tmp_path: Path) -> None:
        files = self.write(tmp_path, "t")
        outcome = collect.collect(hive_table([], failed="too many"), files, model.FILE)
        assert outcome.failed == "its partitions could not be listed: too many"

    def test_a_silent_file_system_is_no_fault_of_a_table(self, tmp_path: Path) -> None:
        with pytest.raises(UnavailableError):
            collect.collect(hive_table([]), FolderFiles(tmp_path, down=True), model.FILE)
