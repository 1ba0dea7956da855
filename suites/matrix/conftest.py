"""Fixtures of the matrix: a session of each engine, the databases of the run, and its cells at work."""

from __future__ import annotations

from collections.abc import Iterator

import lakehouse_clients
import pytest

from suites.matrix import placement_report
from suites.matrix.cells import Cell, Expected
from suites.matrix.cross.engines import FLINK, SQL_ENGINES, TRINO, Engines, Missing
from suites.matrix.worker_factory import WorkerFactory
from suites.matrix.workers import Workers
from suites.testbed import sessions
from suites.testbed.databases import Databases
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.facade import Facade
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.spark import Spark
from suites.testbed.engines.trino import Trino
from suites.testbed.formats import ONE_OF_EACH_FAMILY
from suites.testbed.namenode import NameNode
from suites.testbed.placement import Ledger
from suites.testbed.tables import suffix

# Read by pytest where the folder is named on its command line.
pytest_plugins = ["suites.testbed.fixtures"]


@pytest.fixture(scope="session")
def _trino(endpoints: Endpoints) -> Trino:
    return sessions.trino(endpoints)


@pytest.fixture(scope="session")
def _flink(endpoints: Endpoints) -> Flink:
    return sessions.flink(endpoints)


@pytest.fixture
def trino(_trino: Trino, spark: Spark) -> Trino:
    """The suite's Trino session; its statements join those of the test's Spark session, in order."""
    _trino.statements = spark.statements
    return _trino


@pytest.fixture
def flink(_flink: Flink, spark: Spark) -> Flink:
    """The suite's Flink session; its statements join those of the test's Spark session, in order."""
    _flink.statements = spark.statements
    return _flink


@pytest.fixture(scope="session")
def _engines(request: pytest.FixtureRequest, _spark: Spark, endpoints: Endpoints) -> Engines:
    trino: Facade = request.getfixturevalue("_trino") if endpoints.trino else Missing(TRINO)
    flink: Facade = request.getfixturevalue("_flink") if endpoints.flink else Missing(FLINK)
    return Engines(_spark, trino, flink, lakehouse_clients.connect(endpoints.path))


@pytest.fixture
def engines(spark: Spark, _engines: Engines) -> Engines:
    """Every engine; what the test sends to any of them joins one list of statements."""
    for engine in SQL_ENGINES:
        _engines.of(engine).statements = spark.statements
    return _engines


@pytest.fixture(scope="session")
def ledger(namenode: NameNode, endpoints: Endpoints) -> Iterator[Ledger]:
    """The placements of this run's tables, which join those that the smoke suite has written."""
    ledger = Ledger(namenode, endpoints.replication, endpoints.name_of)
    yield ledger
    placement_report.add(endpoints.report, ledger.placements)


@pytest.fixture(scope="session")
def matrix_databases(_spark: Spark, endpoints: Endpoints, namenode: NameNode) -> Iterator[Databases]:
    """The databases of this run's cells; whatever is left in them goes with them."""
    databases = Databases("matrix", suffix(), ONE_OF_EACH_FAMILY, endpoints, namenode)
    databases.create(_spark)
    yield databases
    databases.drop()


@pytest.fixture(scope="session")
def workers(
    request: pytest.FixtureRequest, endpoints: Endpoints, matrix_databases: Databases
) -> Iterator[Workers]:
    """All engines at work on the cells that were selected."""
    cells = [cell for cell in map(_cell, request.session.items) if cell]
    workers = Workers(
        WorkerFactory(endpoints, matrix_databases),
        [cell for cell in cells if cell.expected is not Expected.ABSENT],
    )
    yield workers
    workers.close()


@pytest.fixture(scope="session", autouse=True)
def _at_work(request: pytest.FixtureRequest) -> None:
    """Have all engines begin with their cells at once: most other tests ask one engine at a time."""
    if any(map(_cell, request.session.items)):
        request.getfixturevalue("workers")


def _cell(item: pytest.Item) -> Cell | None:
    """Return the cell that a test is about."""
    parameters = getattr(item, "callspec", None)
    return parameters.params.get("cell") if parameters else None
