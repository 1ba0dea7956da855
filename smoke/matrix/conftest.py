"""Fixtures of the matrix: a session of each engine, the databases of the run, and its cells at work."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from smoke.lake import Lake
from smoke.matrix.cells import Cell, Expected
from smoke.matrix.databases import MatrixDatabases
from smoke.matrix.hiring import hire
from smoke.matrix.workers import Workers
from smoke.namenode import NameNode
from smoke.placement import Ledger
from smoke.settings import Endpoints
from smoke.tables import suffix

# What a cell took in its engine, in seconds: its test only waits for it.
SECONDS = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and SECONDS in item.stash:
        report.duration = item.stash[SECONDS]
    return report


@pytest.fixture(scope="session")
def _trino(endpoints: Endpoints) -> Any:
    from smoke.engines.trino import Trino

    return Trino.connect(endpoints.trino.url, endpoints.users["trino"])


@pytest.fixture(scope="session")
def _flink(endpoints: Endpoints) -> Any:
    from smoke.engines.flink import Flink

    return Flink.connect(endpoints.flink.sql_gateway)


@pytest.fixture
def trino(_trino: Any, lake: Lake) -> Any:
    """The suite's Trino session; its statements join those of the test's Spark session, in order."""
    _trino.statements = lake.statements
    return _trino


@pytest.fixture
def flink(_flink: Any, lake: Lake) -> Any:
    """The suite's Flink session; its statements join those of the test's Spark session, in order."""
    _flink.statements = lake.statements
    return _flink


@pytest.fixture(scope="session")
def matrix(_lake: Lake, endpoints: Endpoints, namenode: NameNode) -> Iterator[MatrixDatabases]:
    """The databases of this run: `matrix.iceberg`, `matrix.delta`, `matrix.hive`; `matrix.table(fmt, name)`."""
    databases = MatrixDatabases(suffix(), endpoints.root, endpoints.warehouse)
    databases.create(_lake)
    yield databases
    databases.drop(endpoints, namenode)


@pytest.fixture(scope="session")
def ledger(namenode: NameNode, endpoints: Endpoints) -> Iterator[Ledger]:
    """The placements of this run's tables, which join those that the smoke suite has written."""
    ledger = Ledger(namenode, endpoints.replication, endpoints.name_of)
    yield ledger
    path = endpoints.report / "tables.json"
    mine = [asdict(placement) for placement in ledger.placements]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([*_others(path), *mine], indent=1) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def workers(
    request: pytest.FixtureRequest,
    connect_server: str,
    endpoints: Endpoints,
    matrix: MatrixDatabases,
    namenode: NameNode,
    ledger: Ledger,
) -> Iterator[Workers]:
    """All engines at work on the cells that were selected."""
    selected = [_cell(item) for item in request.session.items]
    executed = [cell for cell in selected if cell and cell.expected is not Expected.ABSENT]
    workers = Workers(lambda engine: hire(engine, connect_server, endpoints, matrix, namenode), executed)
    yield workers
    workers.close()


def _cell(item: pytest.Item) -> Cell | None:
    """Return the cell that a test is about."""
    parameters = getattr(item, "callspec", None)
    return parameters.params.get("cell") if parameters else None


def _others(path: Path) -> list[dict[str, object]]:
    """Return what the smoke suite has measured; an earlier run of the matrix is forgotten."""
    if not path.exists():
        return []
    tables: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))
    return [table for table in tables if not str(table["table"]).startswith("matrix_")]
