"""A writer is killed while it holds a table's lock: another one waits, and no writer fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import pytest

from suites.matrix.cross import locks
from suites.testbed import metastore, sessions
from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import ICEBERG
from suites.testbed.placement import Ledger
from suites.testbed.tables import Tables
from suites.testbed.waiting import wait_for

# What a busy computer may add to the two settings.
_SPARE_SECONDS = 15


@dataclass
class Orphan:
    """A lock whose holder is dead: how long it was there (seconds), and the insert that waits for it."""

    table: Table
    lock: int
    bound: int
    lifetime: Future[float]
    insert: Future[object]


@pytest.fixture(scope="session")
def orphan(_spark: Spark, databases: Databases, ledger: Ledger, endpoints: Endpoints) -> Iterator[Orphan]:
    """A lock that outlives its writer, while the rest of the suite goes on."""
    user = endpoints.users["spark"]

    def is_gone() -> bool:
        with metastore.Connection(endpoints.metastore, user) as client:
            return lock not in locks.held(client, table)

    def lifetime() -> float:
        wait_for(f"lock {lock} is taken away", is_gone, seconds=bound + _SPARE_SECONDS, pause=1)
        return time.monotonic() - killed

    with closing(Tables(_spark, databases, ledger, ICEBERG)) as tables, ThreadPoolExecutor(2) as pool:
        table = tables.name()
        _spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg")
        with metastore.Connection(endpoints.metastore, user) as client:
            bound = locks.patience(client)
        lock = locks.left_by_killed_writer(endpoints.metastore, user, table)
        killed = time.monotonic()
        waiting = sessions.spark(endpoints)
        yield Orphan(
            table,
            lock,
            bound,
            pool.submit(lifetime),
            pool.submit(waiting.sql, f"INSERT INTO {table} VALUES (1)"),
        )


@pytest.mark.operation("killed writer: lock", engine="metastore")
def test_the_lock_outlives_its_writer(spark: Spark, orphan: Orphan, endpoints: Endpoints) -> None:
    assert orphan.bound > 0
    with metastore.Connection(endpoints.metastore, endpoints.users["spark"]) as client:
        assert orphan.lock in locks.held(client, orphan.table)
    spark.expect(f"SELECT * FROM {orphan.table}", [])
    assert not orphan.insert.done()


@pytest.mark.closing
@pytest.mark.operation("killed writer: lock is taken away", engine="metastore")
def test_the_lock_is_taken_away(spark: Spark, orphan: Orphan) -> None:
    assert orphan.lifetime.result() <= orphan.bound + _SPARE_SECONDS
    orphan.insert.result(timeout=60)
    spark.expect(f"SELECT * FROM {orphan.table}", [(1,)])
