"""Documents of a commit are Thrift's objects, and what these have no place for is told."""

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore import ttypes as hive
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from lakehouse.catalog.bindings import objects, statistics
from lakehouse.catalog.bindings.constraints import constraints
from lakehouse.catalog.names import Name

TABLE = Name("hive", "sales", "orders")


class Lost:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def __call__(self, name: str, field: str) -> None:
        self.told.append((name, field))


@pytest.fixture
def lost() -> Lost:
    return Lost()


def column(name: str, **more: str) -> dict[str, str]:
    return {"name": name, "type": "int", **more}


def test_a_field_of_a_newer_commit_is_told_wherever_it_stands(lost: Lost) -> None:
    said = {
        "type": "MANAGED_TABLE",
        "write_id": 7,
        "data": {"format": "hive"},
        "partition_keys": [column("ds", masked="yes")],
        "storage": {"tier": "cold", "columns": [column("id")], "serde": {"library": "l", "version": 2}},
    }
    found = objects.table(TABLE, said, lost)
    assert (found.tableType, [one.name for one in found.sd.cols]) == ("MANAGED_TABLE", ["id"])
    assert lost.told == [
        ("hive.sales.orders storage serde", "version"),
        ("hive.sales.orders storage", "tier"),
        ("hive.sales.orders partition_keys", "masked"),
        ("hive.sales.orders", "write_id"),
    ]
    lost.told.clear()
    objects.database(Name("hive", "sales"), {"location": "l", "managed_location": "m"}, lost)
    objects.catalog(Name("hive"), {"created": 1}, lost)
    objects.function(Name("hive", "sales", function="f"), {"class": "c", "body": "b"}, lost)
    objects.partition(
        Name("hive", "sales", "orders", "ds=1"), {"name": "ds=1", "values": ["1"], "x": 1}, lost
    )
    assert lost.told == [
        ("hive.sales", "managed_location"),
        ("hive", "created"),
        ("hive.sales.f()", "body"),
        ("hive.sales.orders/ds=1", "x"),
    ]


def test_what_a_document_does_not_say_is_what_the_database_had(lost: Lost) -> None:
    """A commit leaves zero, false and no text out."""
    found = objects.table(TABLE, {"type": "VIRTUAL_VIEW"}, lost)
    assert (found.retention, found.rewriteEnabled, found.createTime, found.parameters) == (0, False, 0, {})
    assert (found.sd.cols, found.sd.compressed, found.sd.numBuckets, found.partitionKeys) == (
        [],
        False,
        0,
        [],
    )
    assert lost.told == []


def test_a_table_has_what_is_volatile_only_where_it_is_wanted(lost: Lost) -> None:
    said = {"parameters": {"a": "1"}}
    beside = {"parameters": {"numRows": "9"}, "last_access": 5}
    assert objects.table(TABLE, said, lost).parameters == {"a": "1"}
    found = objects.table(TABLE, said, lost, beside)
    assert (found.parameters, found.lastAccessTime) == ({"a": "1", "numRows": "9"}, 5)


def test_skewed_places_can_be_written(lost: Lost) -> None:
    skew = {
        "skewed_columns": ["city"],
        "skewed_values": [["Rome"]],
        "skewed_locations": [[["Rome"], "hdfs://a"]],
    }
    buffer = TMemoryBuffer()
    objects.table(TABLE, {"storage": skew}, lost).write(TBinaryProtocolAccelerated(buffer))
    assert b"hdfs://a" in buffer.getvalue()
    assert lost.told == []


@pytest.mark.parametrize(
    ("number", "kind", "value"),
    [
        (0, "primary_keys", None),
        (2, "unique", None),
        (3, "not_null", None),
        (4, "default", "7"),
        (5, "check", "a > 0"),
    ],
)
def test_each_kind_of_constraint_has_its_type(lost: Lost, number: int, kind: str, value: str | None) -> None:
    one = {"name": "c", "type": number, "position": 1, "column": "id", "flags": 5, "value": value}
    said = {"constraints": [{key: text for key, text in one.items() if text}]}
    made = constraints(TABLE, said, lost)
    [found] = getattr(made, kind)
    assert (found.column_name, found.enable_cstr, found.validate_cstr, found.rely_cstr) == (
        "id", True, False, True,
    )  # fmt: skip
    assert value in {None, getattr(found, "default_value", None), getattr(found, "check_expression", None)}
    assert sum(map(len, vars(made).values())) == 1
    assert lost.told == []


def test_a_constraint_of_another_kind_is_told(lost: Lost) -> None:
    made = constraints(TABLE, {"constraints": [{"name": "c", "type": 9, "column": "id"}]}, lost)
    assert not any(vars(made).values())
    assert lost.told == [("hive.sales.orders constraint c", "type 9")]


@pytest.mark.parametrize(
    ("kind", "row", "word", "expected"),
    [
        ("bigint", {"LONG_LOW_VALUE": -5, "LONG_HIGH_VALUE": 9, "NUM_DISTINCTS": 3}, "longStats", (-5, 9, 3)),
        ("double", {"DOUBLE_LOW_VALUE": 0.5}, "doubleStats", (0.5, None, 0)),
        ("date", {"LONG_LOW_VALUE": 19000}, "dateStats", (hive.Date(19000), None, 0)),
        (
            "decimal(9,2)",
            {"BIG_DECIMAL_LOW_VALUE": "-1.28", "BIG_DECIMAL_HIGH_VALUE": "300"},
            "decimalStats",
            (hive.Decimal(unscaled=b"\x80", scale=2), hive.Decimal(unscaled=b"\x01\x2c", scale=0), 0),
        ),
    ],
)
def test_statistics_have_the_type_of_their_column(
    lost: Lost, kind: str, row: dict[str, Any], word: str, expected: tuple[Any, ...]
) -> None:
    said = {"columns": [{"COLUMN_NAME": "c", "COLUMN_TYPE": kind, "NUM_NULLS": 2, **row}]}
    [one] = statistics.columns(TABLE, said, ["C"], lost)
    data = getattr(one.statsData, word)
    assert (data.lowValue, data.highValue, data.numDVs, data.numNulls) == (*expected, 2)
    assert lost.told == []


def test_lengths_counts_and_bits_are_kept(lost: Lost) -> None:
    said = {
        "columns": [
            {"COLUMN_NAME": "s", "COLUMN_TYPE": "varchar(9)", "MAX_COL_LEN": 7, "AVG_COL_LEN": 2.5}
            | {"BIT_VECTOR": "\\x00ff"},
            {"COLUMN_NAME": "b", "COLUMN_TYPE": "boolean", "NUM_TRUES": 4},
            {"COLUMN_NAME": "m", "COLUMN_TYPE": "map<int,int>"},
        ]
    }  # fmt: skip
    text, flag = statistics.columns(TABLE, said, ["s", "b", "m"], lost)
    found = text.statsData.stringStats
    assert (found.maxColLen, found.avgColLen, found.bitVectors) == (7, 2.5, b"\x00\xff")
    assert (flag.statsData.booleanStats.numTrues, flag.statsData.booleanStats.numFalses) == (4, 0)
    assert lost.told == [("hive.sales.orders statistics of m", "type map<int,int>")]
