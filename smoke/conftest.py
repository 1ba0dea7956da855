"""Fixtures of the smoke suite: where its tables lie, and a table for each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from testbed.databases import Databases, Table
from testbed.endpoints import Endpoints
from testbed.engines.spark import Spark
from testbed.formats import OPEN_FORMATS, Format
from testbed.namenode import NameNode
from testbed.placement import Ledger
from testbed.tables import Tables

# Read by pytest where the folder is named on its command line.
pytest_plugins = ["testbed.fixtures"]


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
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Tables(spark, databases, ledger, fmt))) for fmt in OPEN_FORMATS]


@pytest.fixture
def table(tables: Tables) -> Table:
    """A table with three orders."""
    return tables.new()
