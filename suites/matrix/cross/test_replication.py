"""Blocks of a table are on as many machines as they should be, whichever engine wrote it."""

from __future__ import annotations

import pytest

from suites.matrix.cross.engine_tables import MAKERS, SharedTables
from suites.testbed.endpoints import Endpoints
from suites.testbed.formats import Format
from suites.testbed.namenode import NameNode
from suites.testbed.placement import Ledger

pytestmark = [pytest.mark.closing]


@pytest.mark.operation("replication", engine="{maker}")
@pytest.mark.parametrize(
    ("fmt", "maker"), [pytest.param(fmt, maker, id=f"{fmt}-{maker}") for fmt, maker in MAKERS]
)
def test_a_table_of_every_engine(  # noqa: PLR0913, PLR0917 (fixtures and a pair)
    fmt: Format,
    maker: str,
    shared_tables: SharedTables,
    ledger: Ledger,
    namenode: NameNode,
    endpoints: Endpoints,
) -> None:
    table = shared_tables(fmt, maker)
    location = shared_tables.location(table)
    assert location
    placement = ledger.measure(f"{table.short} ({maker})", fmt.name, location)
    assert placement is not None
    assert placement.complete, placement
    assert {file.replication for file in namenode.files(location)} == {endpoints.replication}


@pytest.mark.operation("replication", engine="hdfs")
def test_all_tables_of_the_matrix(ledger: Ledger) -> None:
    short = [placement for placement in ledger.placements if not placement.complete]
    assert not short, "\n".join(map(str, short))
