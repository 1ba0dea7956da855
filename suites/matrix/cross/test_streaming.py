"""A stream is written with checkpoints while a TaskManager is killed: every row is there, exactly once.

The stream is stopped with a savepoint rather than run to an end of its own: where the parallel readers of a
bounded source end at different times, the last rows of those that end first can be lost without a word. The
sink keeps them under one number for "the end", and what ends last takes the place of what ended before
(`IcebergFilesCommitter.endInput` of Iceberg 1.11). A query that ends belongs into batch mode, the kit's
default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from suites.matrix.cross.engine_tables import EngineTables
from suites.matrix.cross.engines import FLINK, SPARK, TRINO, Engines
from suites.testbed import sessions
from suites.testbed.endpoints import Endpoints
from suites.testbed.endpoints import Flink as FlinkEndpoints
from suites.testbed.engines.flink import Flink
from suites.testbed.formats import ICEBERG, Format
from suites.testbed.nodes import Nodes
from suites.testbed.waiting import wait_for

pytestmark = [pytest.mark.drill]

# More than the test lets through: the generator keeps them all in its state.
ROWS = 20_000
PER_SECOND = 100
# Rows that must be written after the kill.
MORE = 300
# The JobManager gives a TaskManager up after two heartbeats without an answer, 10 s apart. Then the job
# starts anew from its last checkpoint, on whatever TaskManager there is.
SECONDS = 90
STREAMING = {
    "execution.runtime-mode": "streaming",
    "execution.checkpointing.interval": "2 s",
    "parallelism.default": "1",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "20",
    "restart-strategy.fixed-delay.delay": "1 s",
}


@pytest.fixture
def stream(endpoints: Endpoints) -> Iterator[Flink]:
    """A session whose jobs are streams, are checkpointed, and are tried again."""
    session = sessions.flink(endpoints, properties=STREAMING)
    yield session
    session.close()


def ask(flink: FlinkEndpoints, path: str) -> Any:
    """Ask the JobManager."""
    return requests.get(f"{flink.rest}{path}", timeout=30).json()


def working_host(flink: FlinkEndpoints, job: str) -> str:
    """Return the machine on which the job reads its source."""
    vertex = ask(flink, f"/jobs/{job}")["vertices"][0]["id"]
    [taskmanager] = ask(flink, f"/jobs/{job}/vertices/{vertex}/taskmanagers")["taskmanagers"]
    # An id is host:port-letters, with the inventory's name of the host.
    return str(taskmanager["taskmanager-id"]).partition(":")[0]


@contextmanager
def running(flink: FlinkEndpoints, job: str) -> Iterator[None]:
    """Leave no job behind; if the block fails, its error says what Flink knows of the job."""
    try:
        yield
    except BaseException as error:
        for path in (f"/jobs/{job}", f"/jobs/{job}/exceptions", f"/jobs/{job}/checkpoints", "/taskmanagers"):
            error.add_note(f"{path}: {json.dumps(ask(flink, path))[:2000]}")
        requests.patch(f"{flink.rest}/jobs/{job}?mode=cancel", timeout=30)
        raise


def stop(flink: FlinkEndpoints, job: str) -> None:
    """Stop a job with a savepoint, whose rows are committed before it ends."""
    answer = requests.post(f"{flink.rest}/jobs/{job}/stop", json={"drain": False}, timeout=30)
    assert answer.ok, answer.text
    wait_for(
        f"the end of job {job}", lambda: ask(flink, f"/jobs/{job}")["state"] == "FINISHED", seconds=SECONDS
    )


@pytest.mark.operation("stream: TaskManager killed", engine=FLINK)
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_every_row_exactly_once(  # noqa: PLR0913, PLR0917 (all are fixtures)
    fmt: Format,
    engines: Engines,
    stream: Flink,
    iceberg: EngineTables,
    nodes: Nodes,
    endpoints: Endpoints,
) -> None:
    flink, unit = endpoints.flink, endpoints.units["flink_taskmanager"]
    assert flink
    table = iceberg.name()
    engines.spark.sql(f"CREATE TABLE {table} (id BIGINT) USING {fmt}")
    stream.sql(f"""
        CREATE TEMPORARY TABLE default_catalog.default_database.source (id BIGINT) WITH (
          'connector' = 'datagen', 'rows-per-second' = '{PER_SECOND}',
          'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{ROWS}')
    """)
    job = stream.submit(
        f"INSERT INTO {table.full(FLINK)} SELECT id FROM default_catalog.default_database.source"
    )

    def committed() -> int:
        return int(engines.spark.value(f"SELECT count(*) FROM {table}"))

    with running(flink, job):
        wait_for("a first checkpoint's rows", committed, seconds=60)
        victim = working_host(flink, job)
        nodes.kill(victim, unit)
        wait_for(
            "the job has begun anew from a checkpoint",
            lambda: ask(flink, f"/jobs/{job}/checkpoints")["counts"]["restored"],
            seconds=SECONDS,
            pause=0.5,
        )
        resumed = committed()
        wait_for("rows written after that", lambda: committed() >= resumed + MORE, seconds=SECONDS, pause=1)
        stop(flink, job)

    for engine in (SPARK, TRINO):
        [(count, distinct, first, last)] = engines.sql(
            engine, f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {table.full(engine)}"
        )
        assert resumed + MORE <= count < ROWS
        assert (distinct, first, last) == (count, 1, count)
    wait_for(f"{unit} on {victim}", lambda: nodes.is_running(victim, unit), seconds=30)
