"""One engine changes columns and partitions of a table; all others read old and new rows as they are now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Field
from deltalake.schema import PrimitiveType
from pyiceberg.types import DecimalType, DoubleType, IntegerType, LongType, StringType

from suites.matrix.cross.engines import (
    DELTA_RS,
    FLINK,
    PYICEBERG,
    READERS,
    SPARK,
    SQL_ENGINES,
    TRINO,
    Engines,
)
from suites.testbed.databases import Table
from suites.testbed.engines.facade import Row
from suites.testbed.formats import DELTA, ICEBERG, Format
from suites.testbed.tables import Tables

# SQL behind ALTER TABLE, or a function of PyIceberg's table.
Change = str | Callable[[Any], Any]
# By engine: what adds a column, renames one, drops one, makes another of the same name, widens three, and
# partitions the rows that come (Flink cannot).
CHANGES: Mapping[str, tuple[Change, ...]] = {
    SPARK: (
        "ADD COLUMN note STRING",
        "RENAME COLUMN name TO title",
        "DROP COLUMN gone",
        "ADD COLUMN gone INT",
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN ratio TYPE DOUBLE",
        "ALTER COLUMN amount TYPE DECIMAL(9, 2)",
        "ADD PARTITION FIELD note",
    ),
    TRINO: (
        "ADD COLUMN note VARCHAR",
        "RENAME COLUMN name TO title",
        "DROP COLUMN gone",
        "ADD COLUMN gone INTEGER",
        "ALTER COLUMN id SET DATA TYPE BIGINT",
        "ALTER COLUMN ratio SET DATA TYPE DOUBLE",
        "ALTER COLUMN amount SET DATA TYPE DECIMAL(9, 2)",
        "SET PROPERTIES partitioning = ARRAY['note']",
    ),
    FLINK: (
        "ADD note STRING",
        "RENAME name TO title",
        "DROP gone",
        "ADD gone INT",
        "MODIFY id BIGINT",
        "MODIFY ratio DOUBLE",
        "MODIFY amount DECIMAL(9, 2)",
    ),
    PYICEBERG: (
        lambda table: table.update_schema().add_column("note", StringType()).commit(),
        lambda table: table.update_schema().rename_column("name", "title").commit(),
        lambda table: table.update_schema().delete_column("gone").commit(),
        lambda table: table.update_schema().add_column("gone", IntegerType()).commit(),
        lambda table: table.update_schema().update_column("id", LongType()).commit(),
        lambda table: table.update_schema().update_column("ratio", DoubleType()).commit(),
        lambda table: table.update_schema().update_column("amount", DecimalType(9, 2)).commit(),
        lambda table: table.update_spec().add_identity("note").commit(),
    ),
}
SCHEMA = pa.schema({
    "id": pa.int64(), "title": pa.string(), "ratio": pa.float64(), "amount": pa.decimal128(9, 2),
    "note": pa.string(), "gone": pa.int32(),
})  # fmt: skip
COLUMNS = SCHEMA.names
_OLD = """
SELECT 1 AS id, 'old' AS name, CAST(0.5 AS FLOAT) AS ratio, CAST(999.99 AS DECIMAL(5, 2)) AS amount,
  'lost' AS gone
"""
ROWS: list[Row] = [
    (1, "old", 0.5, Decimal("999.99"), None, None),
    (2**40, "new", 1e300, Decimal("9999999.99"), "added", 7),
]
PAIRS = [
    pytest.param(ICEBERG, changer, reader, id=f"iceberg-{changer}-{reader}")
    for changer in CHANGES
    for reader in READERS[ICEBERG]
]


@pytest.fixture(scope="module")
def changed(_engines: Engines, iceberg: Tables) -> Callable[[str], Table]:
    """Give the table that an engine has changed: one row is older than the change, one is newer."""

    @cache
    def change(engine: str) -> Table:
        table = iceberg.new("", _OLD)
        for step in CHANGES[engine]:
            if isinstance(step, str):
                _engines.sql(engine, f"ALTER TABLE {table.full(engine)} {step}")
            else:
                step(_engines.clients.iceberg.load_table(table.short))
        if engine in SQL_ENGINES:
            _engines.sql(
                engine,
                f"INSERT INTO {table.full(engine)} ({', '.join(COLUMNS)})"
                f" VALUES ({2**40}, 'new', 1e300, 9999999.99, 'added', 7)",
            )
        else:
            new = pa.Table.from_pylist([dict(zip(COLUMNS, ROWS[-1], strict=True))], SCHEMA)
            _engines.clients.append(f"iceberg.{table.short}", new)
        return table

    return change


@pytest.mark.operation("columns and partitions changed by {changer}", engine="{reader}")
@pytest.mark.parametrize(("fmt", "changer", "reader"), PAIRS)
def test_iceberg(
    fmt: Format, changer: str, reader: str, changed: Callable[[str], Table], engines: Engines
) -> None:
    assert fmt is ICEBERG
    assert sorted(engines.columns(reader, changed(changer))) == sorted(COLUMNS)
    assert sorted(engines.read(reader, changed(changer), COLUMNS)) == ROWS


@pytest.fixture(scope="module")
def extended(_engines: Engines, delta: Tables) -> Callable[[str], Table]:
    """Give a Delta table with a new column: the one change that asks for no feature which others misread."""

    @cache
    def extend(engine: str) -> Table:
        table = delta.new("", "SELECT 1 AS id")
        if engine == SPARK:
            _engines.spark.sql(f"ALTER TABLE {table} ADD COLUMN note STRING")
            _engines.spark.sql(f"INSERT INTO {table} VALUES (2, 'added')")
        else:
            clients = _engines.clients
            clients.delta(table.short).alter.add_columns(Field("note", PrimitiveType("string")))
            clients.append(
                f"delta.{table.short}", pa.table({"id": pa.array([2], pa.int32()), "note": ["added"]})
            )
        return table

    return extend


@pytest.mark.operation("column added by {changer}", engine="{reader}")
@pytest.mark.parametrize("fmt", [DELTA], ids=str)
@pytest.mark.parametrize("changer", [SPARK, DELTA_RS])
@pytest.mark.parametrize("reader", READERS[DELTA])
def test_delta(
    fmt: Format, changer: str, reader: str, extended: Callable[[str], Table], engines: Engines
) -> None:
    assert extended(changer).format is fmt
    assert sorted(engines.read(reader, extended(changer), ["id", "note"])) == [(1, None), (2, "added")]
