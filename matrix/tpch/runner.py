"""All engines at work side by side: a lane is one session that answers one query after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from matrix.tpch.compare import Row
from matrix.tpch.queries import Query
from testbed.formats import DELTA, ICEBERG, Format

# From the first query to the last answer: a session that hangs holds up the suite once, not for each query.
PATIENCE_SECONDS = 900


class Session(Protocol):
    """One session of an engine; what it was told to use stays in use."""

    def sql(self, statement: str) -> list[Row]:
        """Run one statement; return its rows."""


@dataclass(frozen=True)
class Lane:
    """An engine that reads a format; `preamble` leads its session to the tables."""

    engine: str
    format: Format
    preamble: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.engine}-{self.format}"


LANES = (
    Lane("spark", ICEBERG, ("USE iceberg.tpch_iceberg",)),
    Lane("spark", DELTA, ("USE spark_catalog.tpch_delta",)),
    Lane("trino", ICEBERG, ("USE iceberg.tpch_iceberg",)),
    Lane("trino", DELTA, ("USE delta.tpch_delta",)),
    Lane("flink", ICEBERG, ("USE CATALOG iceberg", "USE tpch_iceberg")),
)


@dataclass(frozen=True)
class Task:
    """A query that a lane is to answer."""

    lane: Lane
    query: Query


@dataclass(frozen=True)
class Run:
    """What a query returned, and the seconds from sending it to its last row."""

    rows: list[Row]
    seconds: float


class Runner:
    """Runs the tasks, all lanes at once; what each returned is there when somebody asks."""

    def __init__(self, connect: Mapping[str, Callable[[], Session]], tasks: Iterable[Task]) -> None:
        self._pools: dict[Lane, ThreadPoolExecutor] = {}
        self._runs: dict[Task, Future[Run]] = {}
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        sessions: dict[Lane, Future[Session]] = {}
        for task in tasks:
            lane = task.lane
            if lane not in self._pools:
                self._pools[lane] = ThreadPoolExecutor(1, thread_name_prefix=str(lane))
                sessions[lane] = self._pools[lane].submit(_open, connect[lane.engine], lane.preamble)
            self._runs[task] = self._pools[lane].submit(_run, sessions[lane], task.query)

    def result(self, task: Task) -> Run:
        """Wait for a run; raise what its engine raised, why there is no session, or TimeoutError."""
        return self._runs[task].result(max(0.0, self._deadline - time.monotonic()))

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)


def _open(connect: Callable[[], Session], preamble: Iterable[str]) -> Session:
    session = connect()
    for statement in preamble:
        session.sql(statement)
    return session


def _run(session: Future[Session], query: Query) -> Run:
    opened = session.result()
    started = time.monotonic()
    rows = opened.sql(query.text)
    return Run(rows, time.monotonic() - started)
