"""A run writes the keys that differ, in one modification whose operations keep their order."""

from __future__ import annotations

import json
from typing import Any, cast
from unittest.mock import Mock, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.census import changes, contents, filters, model, store
from lakehouse.census.changes import Summary
from lakehouse.census.collect import Outcome
from lakehouse.census.contents import Contents, DataFile, TableName
from lakehouse.census.java_errors import Py4JError
from lakehouse.census.job import Counts, collect_all
from lakehouse.census.metastore import MetastoreError, parse_partitions, parse_tables
from lakehouse.census.model import Key, MetadataType
from lakehouse.census.store import (
    ConflictError,
    Delete,
    Modify,
    Overwrite,
    RequestError,
    Store,
    UnknownCommitError,
)
from tests.unit.census_files import FolderFiles, hive_table, table

NAME = TableName("hive", "x", "t")


def key(metadata_key: str, name: str = "t") -> Key:
    return Key("hive", "x", name, metadata_key)


def summary(name: str = "t", **digests: str) -> Summary:
    return Summary(TableName("hive", "x", name), digests=digests)


def test_only_changed_keys_are_overwritten_and_lost_ones_deleted() -> None:
    stored = {key("GENERAL_INFO"): "0", key("a"): "1", key("b"): "1", key("gone"): "1"}
    difference = changes.changes(
        [summary(GENERAL_INFO="0", a="1", b="2", c="1")], {NAME}, {NAME: "v1"}, stored
    )
    assert difference.overwritten == {key("GENERAL_INFO"), key("b"), key("c")}
    assert difference.deleted == {key("gone")}
    assert not difference.dropped


def test_a_table_that_is_read_again_without_a_difference_is_not_written() -> None:
    stored = {key("GENERAL_INFO"): "0", key("a"): "1"}
    difference = changes.changes([summary(GENERAL_INFO="0", a="1")], {NAME}, {NAME: ""}, stored)
    assert not difference


def test_an_unchanged_and_a_failed_table_keep_their_units() -> None:
    summaries = [Summary(NAME, unchanged=True), Summary(TableName("hive", "x", "u"), failed="why")]
    difference = changes.changes(summaries, {NAME, TableName("hive", "x", "u")}, {NAME: ""}, {})
    assert not difference


def test_a_table_that_is_gone_is_dropped_with_all_its_keys() -> None:
    difference = changes.changes([], set(), {NAME: ""}, {})
    [condition] = difference.delete_filters()
    assert filters.matches(condition, key("any")._asdict())
    assert not filters.matches(condition, key("any", "u")._asdict())


def test_what_was_stored_is_read_back() -> None:
    listed = contents.units(Contents(NAME, "HIVE", "/t", files=[DataFile("/t/1", 1)]), model.FILE, "v1")
    rows = [dict(zip(model.COLUMNS, unit.row(), strict=True)) for unit in listed]
    assert changes.versions(rows[:1]) == {NAME: "v1"}
    outcome = changes.summary(Outcome(NAME, units=tuple(listed)))
    assert {
        stored.metadata_key: digest for stored, digest in changes.digests(rows[:2]).items()
    } == outcome.digests
    assert outcome.units == 3


ALL = {MetadataType.ALL}
KEYS = st.builds(key, st.sampled_from("abc"), st.sampled_from("tu"))
OPERATIONS = st.lists(
    st.one_of(
        st.builds(Overwrite, st.frozensets(KEYS, min_size=1, max_size=3), st.just(cast("Any", None))),
        st.builds(Delete, KEYS.map(lambda row: filters.equal("metadata_key", row.metadata_key))),
        st.builds(Delete, KEYS.map(lambda row: filters.equal("table_name", row.table_name))),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


@given(OPERATIONS, st.frozensets(KEYS))
def test_one_commit_leaves_what_the_operations_in_order_would(
    operations: list[store.Operation], before: frozenset[Key]
) -> None:
    """A state is the number of the operation that has written a key."""
    expected = dict.fromkeys(before, -1)
    for number, operation in enumerate(operations):
        if isinstance(operation, Delete):
            expected = {row: by for row, by in expected.items() if not matches(operation.filter, row)}
        else:
            expected |= dict.fromkeys(operation.keys, number)
    condition = store.condition(operations)
    state = {row: -1 for row in before if not matches(condition, row)}
    written = [operation for operation in operations if isinstance(operation, Overwrite)]
    for operation, step in zip(written, store.steps(operations), strict=True):
        remaining = [row for row in operation.keys if not (step.replaced and matches(step.replaced, row))]
        assert not state.keys() & set(remaining)
        # The same overwrite may come twice; the later one has replaced the rows of the first.
        number = next(index for index, row in enumerate(operations) if row is operation)
        state |= dict.fromkeys(remaining, number)
    assert state == expected


def matches(condition: filters.Filter, row: Key) -> bool | None:
    return filters.matches(condition, row._asdict())


def modify() -> Modify:
    return Modify(cast("Store", None))


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (lambda: modify().delete(filters.equal("last_modified_time", 1), ALL), "not by last_mod"),
        (lambda: modify().delete(filters.equal("table_name", "t"), {model.FILE}), "ALL or TABLE, not FILE"),
        (lambda: modify().delete(filters.equal("table_name", "t"), set()), "takes the types"),
        (lambda: modify().purge().purge(), "cannot be combined"),
        (lambda: modify().purge().delete(filters.equal("table_name", "t"), ALL), "be combined"),
        (lambda: modify().delete(filters.equal("table_name", "t"), ALL).purge(), "be combined"),
        (lambda: modify().overwrite([]), "no units"),
        (lambda: store.type_condition(set()), "needs metadata types"),
        (lambda: store.type_condition({MetadataType.NONE}), "does not support the types NONE"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_before_it_reads_or_writes(request_: Any, reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        request_()


@pytest.mark.parametrize(
    ("java", "kind", "fact"),
    [
        ("Caused by: org.apache.iceberg.exceptions.ValidationException: Found conflicting", ConflictError,
         "nothing was written"),
        ("org.apache.iceberg.exceptions.CommitFailedException: Requirement", ConflictError, "another run"),
        ("org.apache.iceberg.exceptions.CommitStateUnknownException", UnknownCommitError, "may have been"),
        ("java.io.IOException", Py4JError, "IOException"),
    ],
)  # fmt: skip
def test_a_failed_commit_is_an_error_of_one_line(java: str, kind: type[Exception], fact: str) -> None:
    error = store.commit_error(Py4JError(f"An error occurred\n{java}"), "iceberg.x.units")
    assert type(error) is kind
    assert fact in str(error)


def test_a_modification_validates_from_the_snapshot_that_it_has_begun_with() -> None:
    writer = Mock()
    writer.option.return_value = writer
    frame = Mock()
    frame.writeTo.return_value = writer
    condition = filters.equal("table_name", "t")
    with patch.object(store, "spark_functions"):
        Modify(Mock(), 7)._overwrite(frame, condition)
    assert [call.args for call in writer.option.call_args_list] == [
        ("isolation-level", "serializable"), ("validate-from-snapshot-id", "7")
    ]  # fmt: skip


def test_types_prune_where_a_key_says_them() -> None:
    assert store.type_condition(ALL) is None
    assert store.type_condition({model.TABLE}) == filters.equal("metadata_key", "GENERAL_INFO")
    assert filters.sql(store.type_condition({model.FILE, model.SEGMENT}) or filters.equal("path", "")) == (
        "metadata_type IN ('FILE', 'SEGMENT')"
    )


def test_keys_of_many_tables_make_a_short_filter() -> None:
    keys = frozenset(key(name, f"t{number}") for number in range(1000) for name in ("GENERAL_INFO", "a"))
    assert filters.sql(store.condition([Overwrite(keys, cast("Any", None))])).count("OR") == 0


def test_the_schema_has_the_columns_of_a_unit() -> None:
    assert store.SCHEMA.names == list(model.COLUMNS)
    needed = [field.name for field in store.SCHEMA.fields if not field.nullable]
    assert needed == [*model.KEYS[:3], "metadata_type", "metadata_key"]


def test_a_name_that_no_folder_can_have_is_a_fault_of_its_table(tmp_path: Any) -> None:
    [outcome] = collect_all([(table("delta", "ä" * 100), "")], lambda: FolderFiles(tmp_path), model.FILE)
    assert outcome.failed == "its name is longer than a folder's of HDFS may be"


def test_after_a_failure_of_hdfs_no_table_is_tried(tmp_path: Any) -> None:
    work = [(hive_table([]), ""), (table("delta"), "")]
    outcomes = list(collect_all(work, lambda: FolderFiles(tmp_path, down=True), model.FILE))
    assert [outcome.unavailable for outcome in outcomes] == ["the NameNode does not answer"] * 2


def test_the_result_has_its_counts_and_faults() -> None:
    counts = Counts(2, 1, 0, 0, 0, 0, {"x.t": "why"}, 7, False, 1.23)
    assert counts.document() == {
        "tables": 2, "skipped": 1, "changed": 0, "dropped": 0, "unsupported": 0, "units": 0,
        "failed": [{"table": "x.t", "reason": "why"}], "version": 7, "written": False, "seconds": 1.2,
    }  # fmt: skip


def test_tables_of_the_metastore_are_parsed_by_format() -> None:
    storage = {"location": "hdfs://lake/t", "inputFormat": "a.Orc", "cols": [{"name": "a", "type": "int"}]}
    rows = [
        {"dbName": "x", "tableName": "h", "owner": "ann", "sd": storage, "tableType": "EXTERNAL_TABLE",
         "partitionKeys": [{"name": "ds", "type": "string"}]},
        {"dbName": "x", "tableName": "i", "sd": storage, "parameters": {"table_type": "ICEBERG"}},
        {"dbName": "x", "tableName": "d", "parameters": {"spark.sql.sources.provider": "delta"},
         "sd": {**storage, "serdeInfo": {"parameters": {"path": "hdfs://lake/d"}}}},
        {"dbName": "x", "tableName": "v", "tableType": "VIRTUAL_VIEW"},
    ]  # fmt: skip
    hive, iceberg, delta = parse_tables(json.dumps({"tables": rows}))
    assert (hive.format, hive.owner, hive.partition_keys) == ("hive", "ann", (("ds", "string"),))
    assert iceberg.name == TableName("iceberg", "x", "i")
    assert delta.location == "hdfs://lake/d"
    [partition] = parse_partitions(json.dumps({"partitions": [{"values": ["1"], "sd": storage}]}))
    assert (partition.values, partition.location) == (("1",), "hdfs://lake/t")


@pytest.mark.parametrize("reply", ["", "[]", "{", '{"tables": [1]}'])
def test_another_reply_of_the_metastore_is_an_error(reply: str) -> None:
    with pytest.raises(MetastoreError):
        parse_tables(reply)
