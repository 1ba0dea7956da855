"""Fixtures of the proofs across engines: all sessions at hand, and tables that live as long as a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import lakehouse_clients
import pytest

from suites.matrix.cross.engine_tables import EngineTables, SharedTables
from suites.matrix.cross.engines import Engines
from suites.testbed import sessions
from suites.testbed.databases import Databases
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import Spark
from suites.testbed.engines.trino import Trino
from suites.testbed.formats import DELTA, ICEBERG, OPEN_FORMATS
from suites.testbed.placement import Ledger


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Give the report an engine's words when it refused."""
    return lambda words: request.node.user_properties.append(("message", words))


@pytest.fixture
def second_clients(endpoints: Endpoints) -> Any:
    """The Python clients of another user of this machine: no thread shares a connection with another."""
    return lakehouse_clients.connect(endpoints.path)


@pytest.fixture
def second_trino(endpoints: Endpoints) -> Trino:
    """Another connection to Trino."""
    return sessions.trino(endpoints)


@pytest.fixture(scope="session")
def reader(endpoints: Endpoints) -> str:
    """A person outside the group who may read everything."""
    if not endpoints.readers:
        pytest.skip("the inventory names no lakehouse_readers")
    return endpoints.readers[0]


@contextmanager
def _makers(spark: Spark, databases: Databases, ledger: Ledger) -> Iterator[dict[str, EngineTables]]:
    with ExitStack() as stack:
        yield {
            fmt.name: stack.enter_context(closing(EngineTables(spark, databases, ledger, fmt)))
            for fmt in OPEN_FORMATS
        }


@pytest.fixture(scope="module")
def makers(_spark: Spark, databases: Databases, ledger: Ledger) -> Iterator[dict[str, EngineTables]]:
    """A maker of tables for each format; they are measured and dropped when the module has ended."""
    with _makers(_spark, databases, ledger) as makers:
        yield makers


@pytest.fixture(scope="session")
def shared_tables(
    _engines: Engines, _spark: Spark, databases: Databases, ledger: Ledger
) -> Iterator[SharedTables]:
    """A table by each engine, which several modules look at and none changes."""
    with _makers(_spark, databases, ledger) as makers:
        yield SharedTables(_engines, makers)


@pytest.fixture(scope="module")
def iceberg(makers: dict[str, EngineTables]) -> EngineTables:
    """The module's maker of Iceberg tables."""
    return makers[ICEBERG.name]


@pytest.fixture(scope="module")
def delta(makers: dict[str, EngineTables]) -> EngineTables:
    """The module's maker of Delta tables."""
    return makers[DELTA.name]
