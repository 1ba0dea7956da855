"""Rows are written, read back, changed and removed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from testbed.databases import Table
from testbed.lake import Lake
from testbed.namenode import NameNode
from testbed.tables import ORDERS, Tables


@pytest.mark.operation("create, insert, read")
def test_insert(lake: Lake, tables: Tables) -> None:
    table = tables.name()
    columns = "id BIGINT, customer STRING, day DATE, amount DECIMAL(10, 2)"
    lake.sql(f"CREATE TABLE {table} ({columns}) USING {table.format}")
    lake.sql(f"INSERT INTO {table} VALUES (1, 'ada', DATE '2024-01-15', 10), (2, 'bob', NULL, 1234567.89)")
    lake.sql(f"INSERT INTO {table} (customer, id) VALUES ('eve', 3)")
    lake.expect(
        f"SELECT * FROM {table} ORDER BY id",
        [
            (1, "ada", dt.date(2024, 1, 15), Decimal("10.00")),
            (2, "bob", None, Decimal("1234567.89")),
            (3, "eve", None, None),
        ],
    )


@pytest.mark.operation("create, insert, read")
def test_create_from_query(lake: Lake, table: Table) -> None:
    lake.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)


@pytest.mark.operation("update")
def test_update(lake: Lake, table: Table) -> None:
    lake.sql(
        f"UPDATE {table} SET amount = amount + 1, customer = upper(customer) WHERE day >= DATE '2024-02-01'"
    )
    lake.expect(
        f"SELECT id, customer, amount FROM {table} ORDER BY id",
        [(1, "ada", Decimal("10.00")), (2, "BOB", Decimal("21.00")), (3, "EVE", Decimal("31.00"))],
    )


@pytest.mark.operation("delete")
def test_delete(lake: Lake, table: Table) -> None:
    lake.sql(f"DELETE FROM {table} WHERE id = 2")
    lake.expect(f"SELECT id, customer FROM {table} ORDER BY id", [(1, "ada"), (3, "eve")])


@pytest.mark.operation("merge")
def test_merge(lake: Lake, table: Table) -> None:
    lake.sql(f"""
        MERGE INTO {table} AS t
        USING (
          SELECT * FROM VALUES (1, 'drop', 0), (2, 'keep', 5), (9, 'keep', 90) AS s (id, fate, amount)
        ) AS s
        ON t.id = s.id
        WHEN MATCHED AND s.fate = 'drop' THEN DELETE
        WHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount
        WHEN NOT MATCHED THEN INSERT (id, customer, amount) VALUES (s.id, 'new', s.amount)
    """)
    lake.expect(
        f"SELECT id, customer, amount FROM {table} ORDER BY id",
        [(2, "bob", Decimal("25.00")), (3, "eve", Decimal("30.00")), (9, "new", Decimal("90.00"))],
    )


@pytest.mark.operation("drop")
def test_drop(lake: Lake, namenode: NameNode, table: Table) -> None:
    """What is dropped past the trash leaves neither a name nor a file."""
    lake.sql(f"DROP TABLE {table} PURGE")
    lake.refuses(f"SELECT * FROM {table}", "TABLE_OR_VIEW_NOT_FOUND")
    assert not namenode.files(table.path)


@pytest.mark.operation("view")
def test_view(lake: Lake, table: Table) -> None:
    view = f"{table}_view"
    lake.sql(f"CREATE VIEW {view} AS SELECT day, sum(amount) AS total FROM {table} WHERE id > 1 GROUP BY day")
    try:
        lake.expect(f"SELECT sum(total) FROM {view}", [(Decimal("50.00"),)])
    finally:
        lake.sql(f"DROP VIEW {view}")


@pytest.mark.operation("statistics")
def test_statistics_answer_without_reading_data(lake: Lake, table: Table) -> None:
    query = f"SELECT min(id), max(id), count(*) FROM {table}"
    assert "LocalTableScan [min(id)" in (plan := lake.plan(query)), plan
    lake.expect(query, [(1, 3, 3)])


@pytest.mark.operation("visibility")
def test_a_fresh_session_sees_the_same(lake: Lake, table: Table) -> None:
    """Each sees what the other committed: the new one at once, the old one in a table it has open."""
    lake.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)
    other = lake.fresh()
    try:
        other.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)
        other.sql(f"DELETE FROM {table} WHERE id = 1")
        lake.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS[1:])
    finally:
        other.session.stop()
