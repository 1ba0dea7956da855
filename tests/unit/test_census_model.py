"""Units have the published columns and scopes, and keys that a folder of HDFS can have."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import text

from lakehouse.census import contents, model
from lakehouse.census.contents import Contents, DataFile, Partition, TableName
from lakehouse.census.model import COLUMNS, SCOPES, MetadataType, MetadataUnit, UnitError

# Apache Drill, TableMetadataUnit: the fields in their order, with their scopes.
PUBLISHED = {
    "storagePlugin": "ALL", "workspace": "ALL", "tableName": "ALL", "owner": "TABLE", "tableType": "TABLE",
    "metadataType": "ALL", "metadataKey": "ALL", "location": "TABLE SEGMENT FILE ROW_GROUP",
    "interestingColumns": "TABLE", "schema": "ALL", "columnsStatistics": "ALL", "metadataStatistics": "ALL",
    "lastModifiedTime": "ALL", "partitionKeys": "TABLE", "additionalMetadata": "ALL",
    "metadataIdentifier": "SEGMENT FILE ROW_GROUP PARTITION", "column": "SEGMENT PARTITION",
    "locations": "SEGMENT PARTITION", "partitionValues": "SEGMENT PARTITION",
    "path": "SEGMENT FILE ROW_GROUP", "rowGroupIndex": "ROW_GROUP", "hostAffinity": "ROW_GROUP",
}  # fmt: skip
UNIT: dict[str, Any] = {"storage_plugin": "iceberg", "workspace": "x", "table_name": "t"}
VALUES: dict[str, Any] = {
    **dict.fromkeys(COLUMNS, "a"), "last_modified_time": 1, "row_group_index": 0, "host_affinity": {"a": 1.0},
    "columns_statistics": {"a": "b"}, "partition_keys": {"a": "b"}, "metadata_statistics": ["a"],
    "locations": ["a"], "partition_values": ["a"], "interesting_columns": ["a"],
}  # fmt: skip


def test_the_columns_and_scopes_are_the_published_ones() -> None:
    names = {re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name): name for name in PUBLISHED}
    assert list(names) == list(COLUMNS)
    assert len(COLUMNS) == 22
    for column, name in names.items():
        scope = set(PUBLISHED[name].split())
        assert SCOPES[column] == (model.UNIT_TYPES if scope == {"ALL"} else scope)


@pytest.mark.parametrize("kind", sorted(model.UNIT_TYPES))
@pytest.mark.parametrize("column", [name for name in COLUMNS if SCOPES[name] != model.UNIT_TYPES])
def test_a_value_out_of_scope_is_rejected(kind: MetadataType, column: str) -> None:
    key = model.GENERAL_INFO if kind == model.TABLE else model.DEFAULT_SEGMENT
    values = {**UNIT, "metadata_type": kind, "metadata_key": key, column: VALUES[column]}
    if kind in SCOPES[column]:
        assert getattr(MetadataUnit(**values), column) == VALUES[column]
    else:
        with pytest.raises(UnitError, match=f"{column} is a column of .*; the unit has the type {kind}"):
            MetadataUnit(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"metadata_type": "TABLE", "metadata_key": "DEFAULT_SEGMENT"},
        {"metadata_type": "FILE", "metadata_key": "GENERAL_INFO"},
        {"metadata_type": "ALL", "metadata_key": "GENERAL_INFO"},
        {"metadata_type": "FILE", "metadata_key": ""},
    ],
)
def test_a_type_has_its_key(values: dict[str, str]) -> None:
    kind, key = MetadataType(values["metadata_type"]), values["metadata_key"]
    with pytest.raises(UnitError):
        MetadataUnit(**UNIT, metadata_type=kind, metadata_key=key)


def test_a_time_beyond_64_bits_is_rejected() -> None:
    values = {**UNIT, "metadata_type": model.FILE, "metadata_key": "a"}
    with pytest.raises(UnitError, match="64 bits"):
        MetadataUnit(**values, last_modified_time=2**63)


def test_an_unpartitioned_table_has_two_keys() -> None:
    listed = units(files=[DataFile("/t/1", 5, rows=2)])
    assert {unit.metadata_key for unit in listed} == {"GENERAL_INFO", "DEFAULT_SEGMENT"}
    assert [unit.metadata_type for unit in listed] == ["TABLE", "SEGMENT", "FILE"]


def test_a_table_has_a_key_for_each_top_level_partition() -> None:
    files = [
        DataFile(f"/t/{day}{hour}", 1, (("ds", str(day)), ("hr", str(hour))))
        for day in range(3)
        for hour in range(2)
    ]
    listed = units(files=files, partition_keys={"ds": "identity", "hr": "identity"})
    assert sorted({unit.metadata_key for unit in listed}) == ["GENERAL_INFO", "ds=0", "ds=1", "ds=2"]
    partitions = [unit.metadata_identifier for unit in listed if unit.metadata_type == model.PARTITION]
    assert partitions == [f"ds={day}/hr={hour}" for day in range(3) for hour in range(2)]


def test_a_partition_without_files_has_a_segment() -> None:
    partition = Partition((("ds", "1"),), "hdfs://lake/t/ds=1")
    listed = units(partitions=[partition], partition_keys={"ds": "identity"})
    assert [(unit.metadata_type, unit.metadata_key) for unit in listed] == [
        ("TABLE", "GENERAL_INFO"), ("SEGMENT", "ds=1"), ("PARTITION", "ds=1"),
    ]  # fmt: skip


@pytest.mark.parametrize("level", contents.LEVELS)
def test_a_level_has_the_units_above_it(level: MetadataType) -> None:
    file = DataFile("/t/ds=1/a", 9, (("ds", "1"),), row_groups=(contents.RowGroup(4, 5, 6),))
    listed = units(level, files=[file], partition_keys={"ds": "identity"})
    expected = contents.LEVELS[: contents.LEVELS.index(level) + 1]
    assert {unit.metadata_type for unit in listed} == set(expected)


def test_a_changed_file_changes_the_digest_of_its_key_alone() -> None:
    files = [DataFile(f"/t/ds={day}/a", 9, (("ds", str(day)),)) for day in range(3)]
    changed = [*files[:2], DataFile("/t/ds=2/b", 9, (("ds", "2"),))]
    for level in contents.LEVELS[1:]:
        before = contents.digests(units(level, files=files))
        after = contents.digests(units(level, files=changed))
        assert {key for key in before if before[key] != after[key]} == {"ds=2"}


PAIRS = st.tuples(st.sampled_from(["x", "y", "X"]), st.text("1/=y%2~", max_size=6))


@given(st.lists(st.lists(PAIRS, min_size=1, max_size=3).map(tuple), min_size=2, max_size=4, unique=True))
@example([(("x", "1/y=2"), ("y", "3")), (("x", "1"), ("y", "2/y=3"))])
def test_partitions_of_other_values_have_other_identifiers(partitions: Any) -> None:
    files = [DataFile(f"/t/{number}", 1, partition) for number, partition in enumerate(partitions)]
    listed = units(files=files, partition_keys={"x": "identity"})
    identifiers = [unit.metadata_identifier for unit in listed if unit.metadata_type == model.PARTITION]
    assert len(set(identifiers)) == len(partitions)
    keys = {unit.metadata_key for unit in listed if unit.metadata_type == model.SEGMENT}
    assert len(keys) == len({partition[0] for partition in partitions})


@given(text())
def test_any_partition_has_a_key_that_is_the_name_of_a_folder(name: str) -> None:
    key = model.partition_key(name)
    assert model.fits(key)
    assert key
    assert key not in {"GENERAL_INFO", "DEFAULT_SEGMENT"}
    if model.fits(name) and name not in {"", "GENERAL_INFO", "DEFAULT_SEGMENT"}:
        assert key == name


@pytest.mark.parametrize(("letter", "letters"), [("~", 3), ("*", 1), (" ", 1), ("ä", 6), ("=", 3), ("_", 1)])
def test_a_key_is_measured_as_java_encodes_it(letter: str, letters: int) -> None:
    assert model.fits(letter * (model.MOST_KEY_BYTES // letters))
    assert not model.fits(letter * (model.MOST_KEY_BYTES // letters + 1))


def test_long_keys_of_one_beginning_differ() -> None:
    assert model.partition_key("ä" * 500) != model.partition_key("ä" * 501)


def test_a_row_gives_the_unit_back() -> None:
    for unit in units(files=[DataFile("/t/1", 5, rows=2, columns_statistics={"a": "{}"})]):
        assert MetadataUnit.of_row(dict(zip(COLUMNS, unit.row(), strict=True))) == unit


def units(level: MetadataType = model.ROW_GROUP, **values: Any) -> list[MetadataUnit]:
    described = Contents(TableName("hive", "x", "t"), "HIVE", "hdfs://lake/t", **values)
    return contents.units(described, level, "1")
