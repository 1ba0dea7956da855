"""One machine's storage is lost while a job runs, and the metastore restarts: no row is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from thrift.transport.TTransport import TTransportException

from smoke import metastore
from smoke.lake import Lake
from smoke.namenode import NameNode
from smoke.nodes import Nodes
from smoke.placement import Ledger
from smoke.settings import Endpoints
from smoke.tables import Table
from smoke.waiting import wait_for

pytestmark = [pytest.mark.drill]

INSERTS = 6


@pytest.mark.operation("DataNode stopped")
def test_a_datanode_stops_while_a_job_writes(  # noqa: PLR0913, PLR0917 (all are fixtures)
    lake: Lake, table: Table, nodes: Nodes, namenode: NameNode, ledger: Ledger, endpoints: Endpoints
) -> None:
    victim = next(
        host.name
        for host in reversed(endpoints.in_group("datanodes"))
        if host.name not in (endpoints.namenode.host, endpoints.spark.connect_host)
    )
    begun, gone = threading.Event(), threading.Event()

    def job() -> None:
        """Insert before, during and after the stop."""
        for number in range(INSERTS):
            lake.sql(f"INSERT INTO {table} VALUES ({100 + number}, 'job', NULL, {number})")
            begun.set()
            if number == INSERTS // 2:
                assert gone.wait(60)

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(job)
        assert begun.wait(60) or work.result() is None
        with nodes.stopped(victim, endpoints.units["datanode"]):
            gone.set()
            work.result(timeout=120)
            lake.expect(
                f"SELECT count(*), sum(id) FROM {table}", [(3 + INSERTS, 6 + sum(range(100, 100 + INSERTS)))]
            )
            assert wait_for(
                "blocks that lack a replica", lambda: namenode.state()["LowRedundancyBlocks"], seconds=30
            )

    wait_for(
        "no block lacks a replica",
        lambda: namenode.state()["LowRedundancyBlocks"] == 0,
        seconds=120,
        pause=0.5,
    )
    assert namenode.state()["MissingBlocks"] == 0
    placement = ledger.measure(table.short, table.format.name, table.path)
    assert placement is not None
    assert placement.complete, placement


@pytest.mark.operation("metastore restarted")
def test_the_metastore_restarts(lake: Lake, table: Table, nodes: Nodes, endpoints: Endpoints) -> None:
    service = endpoints.metastore

    def catalogue() -> dict[str, list[str]]:
        with metastore.Connection(service, endpoints.users["spark"], (endpoints.group,)) as client:
            return {name: sorted(client.get_all_tables(name)) for name in sorted(client.get_all_databases())}

    before = catalogue()
    nodes.restart(service.host, endpoints.units["metastore"])
    after = wait_for("the metastore", catalogue, seconds=60, ignoring=(TTransportException, OSError))

    assert after == before
    lake.sql(f"INSERT INTO {table} VALUES (4, 'fay', NULL, 40)")
    lake.expect(f"SELECT id FROM {table} ORDER BY id", [(1,), (2,), (3,), (4,)])
