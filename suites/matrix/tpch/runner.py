"""All engines at work side by side: a stream is one session that answers one query after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from suites.matrix.tpch.compare import Row
from suites.matrix.tpch.queries import Query
from suites.testbed.formats import DELTA, ICEBERG, Format

# From the first query to the last answer: a session that hangs holds up the suite once, not for each query.
PATIENCE_SECONDS = 900


class Session(Protocol):
    """One session of an engine; what it was told to use stays in use."""

    def sql(self, statement: str) -> list[Row]:
        """Run one statement; return its rows."""


@dataclass(frozen=True)
class Stream:
    """An engine that reads a format; `preamble` leads its session to the tables."""

    engine: str
    format: Format
    preamble: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.engine}-{self.format}"


STREAMS = (
    Stream("spark", ICEBERG, ("USE iceberg.tpch_iceberg",)),
    Stream("spark", DELTA, ("USE spark_catalog.tpch_delta",)),
    Stream("trino", ICEBERG, ("USE iceberg.tpch_iceberg",)),
    Stream("trino", DELTA, ("USE delta.tpch_delta",)),
    Stream("flink", ICEBERG, ("USE CATALOG iceberg", "USE tpch_iceberg")),
)


@dataclass(frozen=True)
class Task:
    """A query that a stream is to answer."""

    stream: Stream
    query: Query


@dataclass(frozen=True)
class Run:
    """What a query returned, and the seconds from sending it to its last row."""

    rows: list[Row]
    seconds: float


class Runner:
    """Runs the tasks, all streams at once; what each returned is there when it is asked for."""

    def __init__(self, connect: Mapping[str, Callable[[], Session]], tasks: Iterable[Task]) -> None:
        self._pools: dict[Stream, ThreadPoolExecutor] = {}
        self._runs: dict[Task, Future[Run]] = {}
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        sessions: dict[Stream, Future[Session]] = {}
        for task in tasks:
            stream = task.stream
            if stream not in self._pools:
                self._pools[stream] = ThreadPoolExecutor(1, thread_name_prefix=str(stream))
                sessions[stream] = self._pools[stream].submit(_open, connect[stream.engine], stream.preamble)
            self._runs[task] = self._pools[stream].submit(_run, sessions[stream], task.query)

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
