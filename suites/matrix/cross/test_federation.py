"""One Trino query joins Iceberg, Delta and PostgreSQL; plans of Trino and Spark show what is not read."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from suites.matrix.cross import federation
from suites.matrix.cross.engine_tables import EngineTables
from suites.matrix.cross.engines import SPARK, TRINO, Engines
from suites.testbed.databases import Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.trino import Trino
from suites.testbed.formats import DELTA, ICEBERG, Format
from suites.testbed.nodes import Nodes
from suites.testbed.tables import suffix

_ORDERS = """
SELECT CAST(id AS INT) AS id, CAST(id % 4 AS INT) AS part, concat('o', id) AS label, id * 10 AS amount
FROM range(0, 40, 1, 1)
"""
SPARK_PRUNES = {ICEBERG: r"filters=[^\]]*part = 1", DELTA: r"PartitionFilters: \[[^\]]*part"}


@pytest.fixture(scope="module")
def orders(makers: dict[str, EngineTables]) -> dict[Format, Table]:
    """Forty orders in four partitions, in each format."""
    return {fmt: makers[fmt.name].new("PARTITIONED BY (part)", _ORDERS) for fmt in SPARK_PRUNES}


@pytest.fixture(scope="module")
def customers(_trino: Trino, nodes: Nodes, endpoints: Endpoints) -> Iterator[str]:
    """A table of two customers that PostgreSQL's owner has made where Trino looks, as Trino calls it."""
    run = federation.superuser(_trino, nodes, endpoints)
    if not run:
        pytest.skip("the inventory has no lakehouse_federation")
    table = f"{federation.SCHEMA}.customers_{suffix()}"
    run(f"CREATE TABLE {table} AS SELECT * FROM (VALUES (5, 'ada'), (7, 'bob')) AS new (id, name)")
    yield f"postgresql.{table}"
    run(f"DROP TABLE {table}")


@pytest.mark.operation("join of Iceberg, Delta and PostgreSQL", engine=TRINO)
def test_one_query_over_three_systems(engines: Engines, orders: dict[Format, Table], customers: str) -> None:
    iceberg, delta = orders[ICEBERG].full(TRINO), orders[DELTA].full(TRINO)
    rows = engines.trino.sql(f"""
        SELECT i.label, d.amount, c.name
        FROM {iceberg} i JOIN {delta} d ON i.id = d.id JOIN {customers} c ON c.id = d.id
        ORDER BY i.id
    """)
    assert rows == [("o5", 50, "ada"), ("o7", 70, "bob")]


@pytest.mark.operation("PostgreSQL is read only", engine=TRINO)
@pytest.mark.parametrize(
    "statement", ["CREATE TABLE {}_2 (id INT)", "INSERT INTO {} VALUES (9, 'eve')", "DROP TABLE {}"]
)
def test_postgresql_cannot_be_written(engines: Engines, customers: str, statement: str) -> None:
    engines.refuses(TRINO, statement.format(customers), r"(?i)permission denied|must be owner")


@pytest.mark.operation("pruning in the plan", engine=TRINO)
@pytest.mark.parametrize("fmt", [ICEBERG, DELTA], ids=str)
def test_trino_reads_one_partition_and_one_column(
    fmt: Format, engines: Engines, orders: dict[Format, Table]
) -> None:
    table = orders[fmt].full(TRINO)
    [[plan]] = engines.trino.sql(f"EXPLAIN ANALYZE VERBOSE SELECT sum(amount) FROM {table} WHERE part = 1")
    assert re.search(r"part:int.*\n\s+:: \[\[1\]\]", plan) or "constraint on [part]" in plan, plan
    scan = plan[plan.index("TableScan") if "TableScan" in plan else 0 :]
    assert "label" not in scan, plan
    assert "Input: 10 rows" in plan, plan


@pytest.mark.operation("statistics in the plan", engine=TRINO)
@pytest.mark.parametrize("fmt", [ICEBERG, DELTA], ids=str)
def test_trino_knows_how_many_rows(fmt: Format, engines: Engines, orders: dict[Format, Table]) -> None:
    table = orders[fmt].full(TRINO)
    [[plan]] = engines.trino.sql(f"EXPLAIN SELECT label FROM {table}")
    assert "rows: 40" in plan, plan
    if fmt is ICEBERG:
        engines.trino.sql(f"ANALYZE {table}")
    statistics = {row[0]: row for row in engines.trino.sql(f"SHOW STATS FOR {table}")}
    assert statistics["part"][2] == 4
    assert statistics[None][4] == 40


@pytest.mark.operation("pruning and statistics in the plan", engine=SPARK)
@pytest.mark.parametrize("fmt", [ICEBERG, DELTA], ids=str)
def test_spark_reads_one_partition_and_knows_the_size(
    fmt: Format, engines: Engines, orders: dict[Format, Table]
) -> None:
    table = orders[fmt]
    plan = engines.spark.plan(f"SELECT sum(amount) FROM {table} WHERE part = 1")
    assert re.search(SPARK_PRUNES[fmt], plan), plan
    assert "label" not in plan
    cost = str(engines.spark.value(f"EXPLAIN COST SELECT label FROM {table}"))
    assert re.search(r"Statistics\(sizeInBytes=[\d.]+ [KM]?i?B", cost), cost
