"""TPC-H at scale factor 0.1: every engine gives the answers that DuckDB computes on the source files."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from suites.matrix.tpch.load import Target
from suites.matrix.tpch.queries import QUERIES
from suites.matrix.tpch.reference import Reference
from suites.matrix.tpch.runner import STREAMS, Runner, Task
from suites.matrix.tpch.source import Source
from suites.testbed import evidence
from suites.testbed.databases import location
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import Format
from suites.testbed.placement import Ledger

# Query by query through all streams, which is how the answers come in.
TASKS = [
    pytest.param(
        stream.format,
        Task(stream, query),
        marks=pytest.mark.operation(f"TPC-H {query}", engine=stream.engine),
        id=f"{stream}-{query}",
    )
    for query in QUERIES
    for stream in STREAMS
]


@pytest.mark.operation("TPC-H load")
def test_every_row_is_loaded(
    spark: Spark, fmt: Format, loaded: dict[Format, list[str]], reference: Reference, source: Source
) -> None:
    counts = " UNION ALL ".join(
        f"SELECT '{table}' AS name, count(*) AS rows FROM {Target(fmt).full_name}.{table}"
        for table in source.tables
    )
    assert dict(spark.sql(counts)) == reference.counts(source), f"written by this run: {loaded[fmt]}"


@pytest.mark.parametrize(("fmt", "task"), TASKS)
def test_the_answer_is_right(
    runner: Runner, reference: Reference, fmt: Format, task: Task, request: pytest.FixtureRequest
) -> None:
    query = task.query
    request.node.user_properties.append(("statement", query.text))
    expected = reference.answer(query)
    run = runner.result(task)
    request.node.stash[evidence.SECONDS] = run.seconds
    if difference := expected.difference(run.rows):
        pytest.fail(f"{query} ({query.title}), {task.stream.engine} on {fmt}: {difference}\n\n{query.text}")


@pytest.mark.closing
@pytest.mark.operation("replication")
def test_the_tables_are_replicated(
    ledger: Ledger, endpoints: Endpoints, fmt: Format, loaded: dict[Format, list[str]], source: Source
) -> None:
    target = Target(fmt)
    for table in source.tables:
        folder = urlsplit(location(endpoints, target.database, table)).path
        placement = ledger.measure(f"{target.database}.{table}", fmt.name, folder)
        assert placement, f"{folder}: no block"
        assert placement.complete, f"{folder}: {placement}; written by this run: {loaded[fmt]}"
