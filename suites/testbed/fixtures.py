"""What both suites share, as a plugin of pytest: one cluster, one Spark session, and proof in the report."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from suites.testbed import connect_server, evidence, sessions, waiting
from suites.testbed.databases import Databases
from suites.testbed.endpoints import DEFAULT_PATH, VARIABLE, Endpoints, load
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import OPEN_FORMATS, Format
from suites.testbed.namenode import NameNode
from suites.testbed.nodes import Nodes
from suites.testbed.tables import suffix
from suites.testbed.transport import reach

# A DataNode that was away says again what it has within `hdfs_datanode_block_report_seconds`.
_COMPLETE_SECONDS = 180


def pytest_addoption(parser: pytest.Parser) -> None:
    default = os.environ.get(VARIABLE, str(DEFAULT_PATH))
    parser.addoption("--endpoints", type=Path, default=Path(default), help=f"the cluster ({default})")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "operation(name, engine): what the test proves, and of what; {parameter} is filled in"
    )
    config.addinivalue_line(
        "markers", "limit(expected, reason, limit): the proof is that something does not work, and how"
    )
    config.addinivalue_line("markers", "wide: has work for every worker at once")
    config.addinivalue_line("markers", "closing: looks back on other tests, or on what went on beside them")
    # The client would log every statement that is refused on purpose, with the server's stack.
    logging.getLogger("SQLQueryContextLogger").disabled = True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What looks back comes after what it looks back on, and what breaks things comes last.

    Before both comes what wants every worker. Spark has one executor until then, which alone learns what a
    statement needs: each of several would be as slow with its first of a kind, wherever that happens to run.
    """
    later = ("drill", "closing", "wide")
    items.sort(key=lambda item: [item.get_closest_marker(mark) is not None for mark in later])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    evidence.describe(item, call)
    report = yield
    evidence.measure(item, report)
    if report.failed:
        evidence.attach(item, report)
    return report


@pytest.fixture(scope="session")
def endpoints(pytestconfig: pytest.Config) -> Iterator[Endpoints]:
    endpoints = load(pytestconfig.getoption("--endpoints"))
    with endpoints.path.open() as claimed:
        try:
            fcntl.flock(claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.exit("another suite runs against this cluster; next: wait until it has ended", 1)
        yield endpoints


@pytest.fixture(scope="session")
def nodes(endpoints: Endpoints, pytestconfig: pytest.Config) -> Iterator[Nodes]:
    with reach(endpoints) as nodes:
        pytestconfig.stash[evidence.CLUSTER] = (nodes, endpoints)
        yield nodes


@pytest.fixture(scope="session")
def namenode(endpoints: Endpoints) -> NameNode:
    return NameNode(endpoints.namenode.http, endpoints.users["hdfs"])


@pytest.fixture(scope="session")
def _complete(namenode: NameNode) -> Iterator[None]:
    """At the end every closed file has its replicas, the event log of the suite's server too."""
    yield
    namenode.await_complete(_COMPLETE_SECONDS)


@pytest.fixture(scope="session")
def _connect_server(endpoints: Endpoints, nodes: Nodes, _complete: None) -> Iterator[None]:
    """A Spark Connect server runs: it is started for the suite unless it does already."""
    with connect_server.running(endpoints, nodes):
        yield


@pytest.fixture(scope="session")
def _spark(_connect_server: None, endpoints: Endpoints) -> Iterator[Spark]:
    def first_answer() -> Spark:
        spark = sessions.spark(endpoints)
        spark.sql("SELECT 1")
        return spark

    spark = waiting.wait_for("a first query", first_answer, seconds=60, ignoring=(PySparkException,))
    yield spark
    spark.session.stop()


@pytest.fixture
def spark(_spark: Spark, request: pytest.FixtureRequest) -> Spark:
    """The suite's session; its list of statements starts empty for each test."""
    _spark.statements.clear()
    request.node.stash[evidence.STATEMENTS] = _spark.statements
    return _spark


@pytest.fixture(scope="session")
def databases(_spark: Spark, endpoints: Endpoints, namenode: NameNode) -> Iterator[Databases]:
    databases = Databases("smoke", suffix(), OPEN_FORMATS, endpoints, namenode)
    databases.create(_spark)
    yield databases
    assert not databases.left(), "tables that no test has dropped"
    for fmt in OPEN_FORMATS:
        _spark.sql(f"DROP DATABASE {fmt.catalogs['spark']}.{databases.name(fmt)}")


@pytest.fixture(params=OPEN_FORMATS, ids=str)
def fmt(request: pytest.FixtureRequest) -> Format:
    """The table format; a test that asks for it runs once for each."""
    fmt: Format = request.param
    return fmt
