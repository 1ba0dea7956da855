"""Odd tables are drawn of all parts, with statements and rows that belong together."""

from __future__ import annotations

import re

import pytest
from hypothesis import find, given, settings

from lakehouse.tables.features import OF_HIVE, OF_ICEBERG
from suites.matrix.cross import canonical
from suites.matrix.cross.odd_tables import CATALOGS, READERS, TABLES, OddTable, tables

NAMES = {"short": "d.t", "database": "d", "name": "t"}


def check(table: OddTable) -> None:
    """See that the statements name the table, and that each row has a value of its type for each column."""
    assert table.readers == READERS[table.of]
    for engine, statement in table.steps:
        text = statement.format(**NAMES)
        assert re.search(r"\bd\.t\b|'d', 't'", text)
        assert {*CATALOGS[OF_ICEBERG].values(), *CATALOGS[OF_HIVE].values()} & set(re.findall(r"\w+", text))
        assert engine in {"spark", "trino", "flink"}
    spelt = canonical.rows(table.rows, table.columns.values())
    assert len(spelt) == len(table.rows) > 0


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_the_known_ones_are_whole(table: OddTable) -> None:
    check(table)
    assert table.effects.keys() <= set(table.readers)


def test_each_kind_is_known_once() -> None:
    titles = [table.title for table in TABLES]
    assert len(titles) == len(set(titles))


@settings(max_examples=300)
@given(tables())
def test_any_drawn_one_is_whole(table: OddTable) -> None:
    check(table)


@pytest.mark.parametrize(
    "part",
    [
        "DROP PARTITION FIELD", "rewrite_data_files", "content-type", "TIME(6)", "ROW(", "migrate",
        "STORED AS ORC", "USING parquet", "CAST(NULL", "ADD COLUMN note", "ADD COLUMN secret",
        "STRUCT<A", "%2F",
    ],
)  # fmt: skip
def test_every_part_is_drawn(part: str) -> None:
    found = find(tables(), lambda table: any(part in statement for _, statement in table.steps))
    assert part in str(found.steps)
