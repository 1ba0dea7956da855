"""A table is laid out by month, a query reads the month that it needs, and the layout can change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from suites.testbed.databases import Table
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, ICEBERG, Format
from suites.testbed.namenode import NameNode
from suites.testbed.tables import Tables

ROWS = (
    "(1, 'ada', DATE '2024-01-15', 10), (2, 'bob', DATE '2024-02-15', 20), (3, 'eve', DATE '2024-02-16', 30)"
)


@dataclass(frozen=True)
class Monthly:
    """Partitions by month: a column that they need, the clause that asks for them, a month's folder.

    `*_pruned` are regular expressions over what EXPLAIN prints.
    """

    column: str
    clause: str
    folder: str
    partitions_pruned: str
    columns_pruned: str


MONTHLY: Mapping[Format, Monthly] = {
    ICEBERG: Monthly(
        column="",
        clause="PARTITIONED BY (months(day))",
        folder="data/day_month={month}",
        partitions_pruned=r"IcebergScan\(.*filters=[^\]]*day = ",
        columns_pruned=r"BatchScan \S+\[customer#\d+\]",
    ),
    # Delta knows no transforms: a generated column does what they do.
    DELTA: Monthly(
        column=", month STRING GENERATED ALWAYS AS (date_format(day, 'yyyy-MM'))",
        clause="PARTITIONED BY (month)",
        folder="month={month}",
        partitions_pruned=r"PartitionFilters: \[[^\]]*month",
        columns_pruned=r"ReadSchema: struct<customer:string>",
    ),
}


@pytest.fixture
def table(spark: Spark, tables: Tables) -> Table:
    table, monthly = tables.name(), MONTHLY[tables.format]
    columns = f"id INT, customer STRING, day DATE, amount DECIMAL(10, 2){monthly.column}"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING {table.format} {monthly.clause}")
    spark.sql(f"INSERT INTO {table} (id, customer, day, amount) VALUES {ROWS}")
    return tables.databases.found(table)


@pytest.mark.operation("partitioning")
def test_a_query_reads_its_month_and_its_columns(spark: Spark, namenode: NameNode, table: Table) -> None:
    folders = {
        file.path.removeprefix(table.path + "/").rpartition("/")[0] for file in namenode.files(table.path)
    }
    assert {MONTHLY[table.format].folder.format(month=month) for month in ("2024-01", "2024-02")} <= folders

    query = f"SELECT customer FROM {table} WHERE day = DATE '2024-02-15'"
    plan = spark.plan(query)
    assert re.search(MONTHLY[table.format].partitions_pruned, plan), plan
    spark.expect(query, [("bob",)])


@pytest.mark.operation("column pruning")
def test_a_query_reads_its_columns(spark: Spark, table: Table) -> None:
    plan = spark.plan(f"SELECT customer FROM {table}")
    assert re.search(MONTHLY[table.format].columns_pruned, plan), plan


@pytest.mark.operation("partition evolution")
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_the_layout_changes_without_a_rewrite(spark: Spark, table: Table) -> None:
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD months(day) WITH days(day)")
    spark.sql(f"INSERT INTO {table} VALUES (4, 'fay', DATE '2024-02-15', 40)")
    spark.expect(
        f"SELECT spec_id, sum(record_count) FROM {table}.files GROUP BY spec_id ORDER BY spec_id",
        [(0, 3), (1, 1)],
    )
    spark.expect(f"SELECT id FROM {table} WHERE day = DATE '2024-02-15' ORDER BY id", [(2,), (4,)])
