"""All workers have tasks; and all write and read one table at the same time, each what lies on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from suites.testbed.databases import Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.facade import Row
from suites.testbed.engines.spark import THIS_HOST, Spark, pause
from suites.testbed.formats import DELTA, ICEBERG
from suites.testbed.tables import Tables
from suites.testbed.waiting import wait_for

ROWS_PER_NODE = 20
# A row's pause: a task takes two seconds, or one, so that one that starts late still meets the others. An
# executor is late by more than a second with its first file of a kind.
WRITE, READ = pause(100), pause(50)
NOW = "CAST(reflect('java.lang.System', 'currentTimeMillis') AS BIGINT)"
# A small file is a task of its own, instead of one for all of them: said by the table, or by the session.
ONE_TASK_PER_FILE = {ICEBERG: "TBLPROPERTIES ('read.split.open-file-cost' = '134217728')", DELTA: ""}
TASKS = "spark.sql.files.minPartitionNum"
# An executor that has only just come begins later than the others.
SECONDS = 60


@pytest.fixture
def events(spark: Spark, tables: Tables, workers: set[str]) -> Iterator[Callable[[], Table]]:
    """Makes a table of who wrote each row and when (milliseconds), with a task per worker."""
    query = f"""
        SELECT id, concat('region-', id % 4) AS region, {THIS_HOST} AS writer, {NOW} AS written,
            {WRITE} AS paused
        FROM range(0, {len(workers) * ROWS_PER_NODE}, 1, {len(workers)})
    """
    spark.sql(f"SET {TASKS} = {len(workers)}")
    yield lambda: tables.new(ONE_TASK_PER_FILE[tables.format], query)
    spark.sql(f"RESET {TASKS}")


@pytest.mark.wide
@pytest.mark.operation("distributed job")
def test_tasks_run_on_every_worker(spark: Spark, endpoints: Endpoints, workers: set[str]) -> None:
    assert spark.sql("SET spark.master") == [("spark.master", endpoints.spark.master)]
    assert workers == {host.name for host in endpoints.in_group("spark_workers")}


def check_all_at_once(spans: list[Row], workers: set[str]) -> None:
    """Raise AssertionError unless there was a moment in which every worker was at work."""
    assert {host for host, *_ in spans} == workers
    last, first = max(start for _, start, _ in spans), min(end for *_, end in spans)
    assert last <= first, f"not at the same time: {spans}"


@pytest.mark.wide
@pytest.mark.operation("parallel write, read")
def test_all_nodes_at_once(spark: Spark, events: Callable[[], Table], workers: set[str]) -> None:
    def write() -> Table:
        table = events()
        spans = spark.sql(f"SELECT writer, min(written), max(written) FROM {table} GROUP BY writer")
        check_all_at_once(spans, workers)
        return table

    def read() -> bool:
        rows = f"SELECT {THIS_HOST} AS host, {NOW} AS now, {READ} AS paused, region FROM {table}"
        query = (
            f"SELECT host, min(now), max(now) FROM ({rows}) GROUP BY host HAVING count(region, paused) > 0"
        )
        check_all_at_once(spark.sql(query), workers)
        return True

    table = wait_for("all nodes write at once", write, seconds=SECONDS, ignoring=(AssertionError,))
    wait_for("all nodes read at once", read, seconds=SECONDS, ignoring=(AssertionError,))
    spark.expect(
        f"SELECT region, count(*) FROM {table} GROUP BY region ORDER BY region",
        [(f"region-{region}", len(workers) * ROWS_PER_NODE // 4) for region in range(4)],
    )
