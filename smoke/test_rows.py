"""Rows are written, read back, changed and removed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from suites.testbed.databases import Table
from suites.testbed.engines.spark import Spark
from suites.testbed.namenode import NameNode
from suites.testbed.tables import ORDERS, Tables


@pytest.mark.operation("create, insert, read")
def test_insert(spark: Spark, tables: Tables) -> None:
    table = tables.name()
    columns = "id BIGINT, customer STRING, day DATE, amount DECIMAL(10, 2)"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING {table.format}")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'ada', DATE '2024-01-15', 10), (2, 'bob', NULL, 1234567.89)")
    spark.sql(f"INSERT INTO {table} (customer, id) VALUES ('eve', 3)")
    spark.expect(
        f"SELECT * FROM {table} ORDER BY id",
        [
            (1, "ada", dt.date(2024, 1, 15), Decimal("10.00")),
            (2, "bob", None, Decimal("1234567.89")),
            (3, "eve", None, None),
        ],
    )


@pytest.mark.operation("create, insert, read")
def test_create_from_query(spark: Spark, table: Table) -> None:
    spark.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)


@pytest.mark.operation("update")
def test_update(spark: Spark, table: Table) -> None:
    spark.sql(
        f"UPDATE {table} SET amount = amount + 1, customer = upper(customer) WHERE day >= DATE '2024-02-01'"
    )
    spark.expect(
        f"SELECT id, customer, amount FROM {table} ORDER BY id",
        [(1, "ada", Decimal("10.00")), (2, "BOB", Decimal("21.00")), (3, "EVE", Decimal("31.00"))],
    )


@pytest.mark.operation("delete")
def test_delete(spark: Spark, table: Table) -> None:
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    spark.expect(f"SELECT id, customer FROM {table} ORDER BY id", [(1, "ada"), (3, "eve")])


@pytest.mark.operation("merge")
def test_merge(spark: Spark, table: Table) -> None:
    spark.sql(f"""
        MERGE INTO {table} AS t
        USING (
          SELECT * FROM VALUES (1, 'drop', 0), (2, 'keep', 5), (9, 'keep', 90) AS s (id, fate, amount)
        ) AS s
        ON t.id = s.id
        WHEN MATCHED AND s.fate = 'drop' THEN DELETE
        WHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount
        WHEN NOT MATCHED THEN INSERT (id, customer, amount) VALUES (s.id, 'new', s.amount)
    """)
    spark.expect(
        f"SELECT id, customer, amount FROM {table} ORDER BY id",
        [(2, "bob", Decimal("25.00")), (3, "eve", Decimal("30.00")), (9, "new", Decimal("90.00"))],
    )


@pytest.mark.operation("drop")
def test_drop(spark: Spark, namenode: NameNode, table: Table) -> None:
    """What is dropped past the trash leaves neither a name nor a file."""
    spark.sql(f"DROP TABLE {table} PURGE")
    spark.refuses(f"SELECT * FROM {table}", "TABLE_OR_VIEW_NOT_FOUND")
    assert not namenode.files(table.path)


@pytest.mark.operation("view")
def test_view(spark: Spark, table: Table) -> None:
    view = f"{table}_view"
    spark.sql(
        f"CREATE VIEW {view} AS SELECT day, sum(amount) AS total FROM {table} WHERE id > 1 GROUP BY day"
    )
    try:
        spark.expect(f"SELECT sum(total) FROM {view}", [(Decimal("50.00"),)])
    finally:
        spark.sql(f"DROP VIEW {view}")


@pytest.mark.operation("statistics")
def test_statistics_answer_without_reading_data(spark: Spark, table: Table) -> None:
    query = f"SELECT min(id), max(id), count(*) FROM {table}"
    assert "LocalTableScan [min(id)" in (plan := spark.plan(query)), plan
    spark.expect(query, [(1, 3, 3)])


@pytest.mark.operation("visibility")
def test_a_fresh_session_sees_the_same(spark: Spark, table: Table) -> None:
    """Each sees what the other committed: the new one at once, the old one in a table it has open."""
    spark.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)
    other = spark.fresh()
    try:
        other.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)
        other.sql(f"DELETE FROM {table} WHERE id = 1")
        spark.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS[1:])
    finally:
        other.session.stop()
