"""Columns are added, renamed, widened and dropped, and old rows stay readable."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from suites.testbed.databases import Table
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, ICEBERG
from suites.testbed.tables import Tables

# How a table says beforehand that its columns may be renamed, widened and dropped.
EVOLVABLE = {
    ICEBERG: "",
    DELTA: "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')",
}


@pytest.fixture
def table(tables: Tables) -> Table:
    return tables.new(EVOLVABLE[tables.format])


@pytest.mark.operation("add column")
def test_add(spark: Spark, table: Table) -> None:
    spark.sql(f"ALTER TABLE {table} ADD COLUMN (note STRING)")
    spark.sql(f"INSERT INTO {table} VALUES (4, 'fay', DATE '2024-03-01', 40, 'gift')")
    spark.expect(f"SELECT id, note FROM {table} ORDER BY id", [(1, None), (2, None), (3, None), (4, "gift")])


@pytest.mark.operation("rename column")
def test_rename(spark: Spark, table: Table) -> None:
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN customer TO buyer")
    spark.expect(f"SELECT id, buyer FROM {table} ORDER BY id", [(1, "ada"), (2, "bob"), (3, "eve")])


@pytest.mark.operation("widen column")
def test_widen(spark: Spark, table: Table) -> None:
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN amount TYPE DECIMAL(20, 2)")
    spark.sql(f"INSERT INTO {table} VALUES (5000000000, 'fay', NULL, 123456789012345678.90)")
    spark.expect(
        f"SELECT id, amount FROM {table} WHERE id <> 2 ORDER BY id",
        [(1, Decimal("10.00")), (3, Decimal("30.00")), (5_000_000_000, Decimal("123456789012345678.90"))],
    )


@pytest.mark.operation("drop column")
def test_drop(spark: Spark, table: Table) -> None:
    spark.sql(f"ALTER TABLE {table} DROP COLUMN amount")
    spark.expect(
        f"SELECT * FROM {table} ORDER BY id LIMIT 2",
        [(1, "ada", dt.date(2024, 1, 15)), (2, "bob", dt.date(2024, 2, 15))],
    )


@pytest.mark.operation("safe defaults")
@pytest.mark.parametrize("fmt", [DELTA], ids=str)
def test_what_other_engines_misread_is_off(spark: Spark, tables: Tables) -> None:
    """Column mapping, type widening and deletion vectors are asked for by a table, never given to all."""
    plain = tables.new()
    spark.refuses(f"ALTER TABLE {plain} RENAME COLUMN customer TO buyer", "(?i)column mapping")
    features = spark.frame(f"DESCRIBE DETAIL {plain}").select("tableFeatures").first()
    assert features is not None
    assert set(features[0]) <= {"appendOnly", "invariants"}, features
