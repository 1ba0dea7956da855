"""Small files become few, rows are sorted to be found, and what no version needs is removed."""

from __future__ import annotations

import pytest

from suites.testbed.databases import Table
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, ICEBERG
from suites.testbed.namenode import NameNode
from suites.testbed.tables import ORDERS, data_files, history

MORE = [(4, "fay"), (5, "gus")]
EVERYONE = [(id_, customer) for id_, customer, *_ in ORDERS] + MORE

COMPACT = {
    ICEBERG: (
        "CALL iceberg.system.rewrite_data_files(table => '{short}', options => map('min-input-files', '2'))"
    ),
    DELTA: "OPTIMIZE {table}",
}
CLUSTER = {
    ICEBERG: (
        "CALL iceberg.system.rewrite_data_files(table => '{short}', strategy => 'sort',"
        " sort_order => 'zorder(customer, day)', options => map('rewrite-all', 'true'))"
    ),
    DELTA: "OPTIMIZE {table} ZORDER BY (customer, day)",
}
EXPIRE = {
    ICEBERG: (
        "CALL iceberg.system.expire_snapshots("
        "table => '{short}', older_than => current_timestamp(), retain_last => 1)",
    ),
    DELTA: (
        "SET spark.databricks.delta.retentionDurationCheck.enabled = false",
        "VACUUM {table} RETAIN 0 HOURS",
    ),
}


@pytest.fixture
def table(spark: Spark, table: Table) -> Table:
    """A table of one file for each of three inserts."""
    for id_, customer in MORE:
        spark.sql(f"INSERT INTO {table} VALUES ({id_}, '{customer}', DATE '2024-03-01', 40)")
    return table


@pytest.mark.operation("compaction")
def test_compact(spark: Spark, table: Table) -> None:
    before = data_files(spark, table)
    spark.sql(table.statement(COMPACT[table.format]))
    after = data_files(spark, table)
    assert len(before) >= 3
    assert len(after) == 1, f"{len(before)} files became {len(after)}"
    spark.expect(f"SELECT id, customer FROM {table} ORDER BY id", EVERYONE)


@pytest.mark.operation("z-order, sort")
def test_cluster(spark: Spark, table: Table) -> None:
    before = data_files(spark, table)
    spark.sql(table.statement(CLUSTER[table.format]))
    assert not before & data_files(spark, table), "files that were not rewritten are not clustered"
    spark.expect(f"SELECT id, customer FROM {table} ORDER BY id", EVERYONE)


@pytest.mark.operation("z-order, sort")
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_sort(spark: Spark, table: Table) -> None:
    spark.sql(
        f"CALL iceberg.system.rewrite_data_files(table => '{table.short}', strategy => 'sort',"
        " sort_order => 'id DESC', options => map('rewrite-all', 'true'))"
    )
    spark.expect(f"SELECT id FROM {table}", [(5,), (4,), (3,), (2,), (1,)])


@pytest.mark.operation("expire, vacuum")
def test_expire(spark: Spark, namenode: NameNode, table: Table) -> None:
    """What is left in HDFS is what the current version consists of."""
    first, *_ = history(spark, table)
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    current = data_files(spark, table)
    for statement in EXPIRE[table.format]:
        spark.sql(table.statement(statement))

    log = f"{table.path}/{table.format.log_folder}/"
    left = {file.path for file in namenode.files(table.path) if not file.path.startswith(log)}
    assert left == current
    spark.expect(f"SELECT id FROM {table} ORDER BY id", [(1,), (3,), (4,), (5,)])
    spark.refuses(
        f"SELECT * FROM {table} VERSION AS OF {first.id}",
        "(?i)cannot find snapshot|FILE_NOT_EXIST|does not exist",
    )
