"""All nodes write and read one table at the same time, each what lies on it."""

from __future__ import annotations

import pytest

from smoke.test_cluster import THIS_HOST
from testbed.databases import Table
from testbed.endpoints import Endpoints
from testbed.engines.spark import Spark
from testbed.formats import DELTA, ICEBERG
from testbed.tables import Tables

# Seconds of work, so that a task that starts late still meets the others.
ROWS_PER_NODE = 150_000
NOW = "CAST(reflect('java.lang.System', 'currentTimeMillis') AS BIGINT)"
# A small file is a task of its own, instead of one task for all of them.
ONE_TASK_PER_FILE = {ICEBERG: "TBLPROPERTIES ('read.split.open-file-cost' = '134217728')", DELTA: ""}


@pytest.fixture
def events(tables: Tables, endpoints: Endpoints) -> Table:
    """Events that say which machine wrote them and when (milliseconds), one task per worker."""
    workers = len(endpoints.in_group("spark_workers"))
    return tables.new(
        ONE_TASK_PER_FILE[tables.format],
        f"""
            SELECT id, concat('region-', id % 4) AS region, {THIS_HOST} AS writer, {NOW} AS written
            FROM range(0, {workers * ROWS_PER_NODE}, 1, {workers})
        """,
    )


def overlap(spans: list[tuple[str, int, int]]) -> bool:
    """Tell whether there was a moment in which every one of them was at work."""
    return max(start for _, start, _ in spans) <= min(end for _, _, end in spans)


@pytest.mark.operation("parallel write, read")
def test_all_nodes_at_once(spark: Spark, events: Table, endpoints: Endpoints) -> None:
    workers = {host.name for host in endpoints.in_group("spark_workers")}

    written = spark.sql(f"SELECT writer, min(written), max(written) FROM {events} GROUP BY writer")
    assert {host for host, *_ in written} == workers
    assert overlap(written), f"not at the same time: {written}"

    read = spark.sql(f"""
        SELECT host, min(now), max(now) FROM (SELECT {THIS_HOST} AS host, {NOW} AS now, region FROM {events})
        WHERE region IS NOT NULL GROUP BY host
    """)
    assert {host for host, *_ in read} == workers
    assert overlap(read), f"not at the same time: {read}"

    spark.expect(
        f"SELECT region, count(*) FROM {events} GROUP BY region ORDER BY region",
        [(f"region-{region}", len(workers) * ROWS_PER_NODE // 4) for region in range(4)],
    )
