"""Fixtures of TPC-H: source files, the expected answers, the tables, and the engines at work on them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from lakehouse.run import BUILD
from suites.matrix.tpch import source as sources
from suites.matrix.tpch.load import Landing, Target, load
from suites.matrix.tpch.reference import Reference
from suites.matrix.tpch.runner import Runner, Session
from suites.matrix.tpch.source import Source
from suites.testbed import sessions
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import OPEN_FORMATS, Format
from suites.testbed.namenode import NameNode


@pytest.fixture(scope="session")
def source() -> Source:
    """The source files on this machine."""
    return sources.ensure(BUILD / "tpch")


@pytest.fixture(scope="session")
def reference(source: Source) -> Reference:
    """DuckDB, which knows the answers."""
    return Reference(source)


@pytest.fixture(scope="session")
def loaded(
    _spark: Spark, source: Source, namenode: NameNode, endpoints: Endpoints
) -> dict[Format, list[str]]:
    """The tables of both formats are there; which ones this run has written."""
    landing = Landing(namenode, endpoints)
    landing.put(_spark, source)

    def fill(fmt: Format) -> list[str]:
        spark = sessions.spark(endpoints, settings={})
        try:
            return load(spark, Target(fmt), source, landing)
        finally:
            spark.session.stop()

    with ThreadPoolExecutor(len(OPEN_FORMATS)) as pool:
        return dict(zip(OPEN_FORMATS, pool.map(fill, OPEN_FORMATS), strict=True))


@pytest.fixture(scope="session")
def runner(
    request: pytest.FixtureRequest, _spark: Spark, endpoints: Endpoints, loaded: dict[Format, list[str]]
) -> Iterator[Runner]:
    """Every engine runs those queries that are selected, from now on."""
    assert loaded
    opened = ExitStack()

    def spark() -> Session:
        session = sessions.spark(endpoints, settings={})
        opened.callback(session.session.stop)
        return session

    def trino() -> Session:
        return sessions.trino(endpoints)

    def flink() -> Session:
        return opened.enter_context(closing(sessions.flink(endpoints)))

    selected = [getattr(item, "callspec", None) for item in request.session.items]
    tasks = [spec.params["task"] for spec in selected if spec and "task" in spec.params]
    with opened, closing(Runner({"spark": spark, "trino": trino, "flink": flink}, tasks)) as runner:
        yield runner
