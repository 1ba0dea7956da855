"""A table is read as it was, by version and by time, and set back to it."""

from __future__ import annotations

import pytest

from suites.testbed.databases import Table
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, ICEBERG
from suites.testbed.tables import ORDERS, history

RESTORE = {
    ICEBERG: "CALL iceberg.system.rollback_to_snapshot('{short}', {version})",
    DELTA: "RESTORE TABLE {table} TO VERSION AS OF {version}",
}


@pytest.fixture
def table(spark: Spark, table: Table) -> Table:
    """The table of three orders after one was deleted and one added."""
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"INSERT INTO {table} VALUES (4, 'fay', DATE '2024-03-01', 40)")
    return table


@pytest.mark.operation("time travel")
def test_by_version_and_by_timestamp(spark: Spark, table: Table) -> None:
    first, second, third = history(spark, table)
    spark.expect(f"SELECT * FROM {table} VERSION AS OF {first.id} ORDER BY id", ORDERS)
    spark.expect(f"SELECT id FROM {table} VERSION AS OF {third.id} ORDER BY id", [(2,), (3,), (4,)])
    spark.expect(f"SELECT * FROM {table} TIMESTAMP AS OF '{first.committed}' ORDER BY id", ORDERS)
    spark.expect(f"SELECT id FROM {table} TIMESTAMP AS OF '{second.committed}' ORDER BY id", [(2,), (3,)])


@pytest.mark.operation("rollback, restore")
def test_restore(spark: Spark, table: Table) -> None:
    first, *_ = history(spark, table)
    spark.sql(table.statement(RESTORE[table.format], version=first.id))
    spark.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)
