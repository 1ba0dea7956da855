"""Fixtures of the smoke suite: where its tables lie, and a table for each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import THIS_HOST, Spark, pause
from suites.testbed.formats import Format
from suites.testbed.namenode import NameNode
from suites.testbed.placement import Ledger
from suites.testbed.tables import Tables, of_each_format
from suites.testbed.waiting import wait_for

# Half a second per row: a server that was idle has no executor, and the first one that comes would do all the
# work before the others are there, were a task nothing but a name.
AWHILE = pause(500)
EXECUTORS_SECONDS = 180

# Read by pytest where the folder is named on its command line.
pytest_plugins = ["suites.testbed.fixtures"]


@pytest.fixture(scope="session")
def ledger(namenode: NameNode, endpoints: Endpoints) -> Iterator[Ledger]:
    ledger = Ledger(namenode, endpoints.replication, endpoints.name_of)
    yield ledger
    ledger.write(endpoints.report / "tables.json")


@pytest.fixture
def tables(spark: Spark, databases: Databases, ledger: Ledger, fmt: Format) -> Iterator[Tables]:
    """The maker of this test's tables."""
    with closing(Tables(spark, databases, ledger, fmt)) as tables:
        yield tables


@pytest.fixture
def all_tables(spark: Spark, databases: Databases, ledger: Ledger) -> Iterator[list[Tables]]:
    """A maker for each format, for a test in which all formats live through the same event."""
    with of_each_format(spark, databases, ledger) as makers:
        yield makers


@pytest.fixture
def table(tables: Tables) -> Table:
    """A table with three orders."""
    return tables.new()


@pytest.fixture(scope="session")
def workers(_spark: Spark, endpoints: Endpoints) -> set[str]:
    """The hosts on which tasks run, once every one with a worker has an executor."""
    expected = {host.name for host in endpoints.in_group("spark_workers")}
    tasks = 4 * len(expected)
    query = f"SELECT DISTINCT {THIS_HOST}, {AWHILE} FROM range(0, {tasks}, 1, {tasks})"

    def everybody() -> set[str]:
        found = {host for host, _ in _spark.sql(query)}
        assert found >= expected, f"no task ran on {expected - found}"
        return found

    return wait_for(
        "a task on every worker", everybody, seconds=EXECUTORS_SECONDS, ignoring=(AssertionError,)
    )
