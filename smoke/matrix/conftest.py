"""Fixtures of the matrix: a session of each engine, the databases of the run, and its cells at work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smoke import evidence
from smoke.engines.flink import Flink
from smoke.engines.trino import Trino
from smoke.lake import Lake
from smoke.matrix.databases import MatrixDatabases
from smoke.namenode import NameNode
from smoke.settings import Endpoints
from smoke.tables import suffix


@pytest.fixture(scope="session")
def _trino(endpoints: Endpoints) -> Trino:
    return Trino.connect(endpoints.trino, endpoints.users["trino"])


@pytest.fixture(scope="session")
def _flink(endpoints: Endpoints) -> Flink:
    return Flink.connect(endpoints.flink)


@pytest.fixture
def trino(_trino: Trino, request: pytest.FixtureRequest) -> Trino:
    """A Trino session of the suite; its list of statements starts empty for each test."""
    _trino.statements.clear()
    request.node.stash.setdefault(evidence.STATEMENTS, _trino.statements)
    return _trino


@pytest.fixture
def flink(_flink: Flink, request: pytest.FixtureRequest) -> Flink:
    """A Flink session of the suite (batch mode); its list of statements starts empty for each test."""
    _flink.statements.clear()
    request.node.stash.setdefault(evidence.STATEMENTS, _flink.statements)
    return _flink


@pytest.fixture(scope="session")
def matrix(_lake: Lake, endpoints: Endpoints, namenode: NameNode) -> Iterator[MatrixDatabases]:
    """The databases of this run: `matrix.iceberg`, `matrix.delta`, `matrix.hive`; `matrix.table(fmt, name)`."""
    databases = MatrixDatabases(suffix(), endpoints.root, endpoints.warehouse)
    databases.create(_lake)
    yield databases
    databases.drop(endpoints, namenode)
