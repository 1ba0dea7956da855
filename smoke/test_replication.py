"""Every block of every table of this run has its replicas on as many machines as it should."""

from __future__ import annotations

import pytest

from suites.testbed.databases import Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.namenode import NameNode
from suites.testbed.placement import Ledger

pytestmark = [pytest.mark.closing]


@pytest.mark.operation("replication")
def test_a_new_table(ledger: Ledger, namenode: NameNode, table: Table, endpoints: Endpoints) -> None:
    placement = ledger.measure(table.short, table.format.name, table.path)
    assert placement is not None
    assert placement.complete, placement
    assert {file.replication for file in namenode.files(table.path)} == {endpoints.replication}
    assert set(placement.nodes) <= {host.name for host in endpoints.in_group("datanodes")}


@pytest.mark.operation("replication", engine="hdfs")
def test_all_tables_of_this_run(ledger: Ledger, namenode: NameNode) -> None:
    short = [placement for placement in ledger.placements if not placement.complete]
    assert not short, "\n".join(map(str, short))
    assert namenode.state()["MissingReplicatedBlocks"] == 0
