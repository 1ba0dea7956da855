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
from smoke.tables import Tables
from smoke.waiting import wait_for

pytestmark = [pytest.mark.drill]

INSERTS = 4
# A copy that was ordered to the lost machine is ordered anew when its time is up: in five minutes by default.
RESTORED_SECONDS = 400


@pytest.mark.operation("DataNode stopped")
def test_a_datanode_stops_while_a_job_writes(  # noqa: PLR0913, PLR0917 (all are fixtures)
    lake: Lake,
    all_tables: list[Tables],
    nodes: Nodes,
    namenode: NameNode,
    ledger: Ledger,
    endpoints: Endpoints,
) -> None:
    victim = next(
        host.name
        for host in reversed(endpoints.in_group("datanodes"))
        if host.name not in (endpoints.namenode.host, endpoints.spark.connect_host)
    )
    made = [tables.new() for tables in all_tables]
    writing, gone = threading.Event(), threading.Event()

    def job() -> None:
        """Insert into every table before, during and after the stop."""
        for number in range(INSERTS):
            for table in made:
                lake.sql(f"INSERT INTO {table} VALUES ({100 + number}, 'job', NULL, {number})")
            writing.set()
            if number == INSERTS // 2:
                assert gone.wait(90)

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(job)
        assert writing.wait(60) or work.result() is None
        with nodes.stopped(victim, endpoints.units["datanode"]):
            gone.set()
            work.result(timeout=120)
            for table in made:
                lake.expect(
                    f"SELECT id FROM {table} ORDER BY id",
                    [(id_,) for id_ in (1, 2, 3, *range(100, 100 + INSERTS))],
                )
            assert wait_for("blocks that lack a replica", namenode.lacking, seconds=30)

    wait_for(
        "every block has its replicas", lambda: not namenode.lacking(), seconds=RESTORED_SECONDS, pause=0.5
    )
    assert namenode.state()["MissingBlocks"] == 0
    for table in made:
        placement = ledger.measure(table.short, table.format.name, table.path)
        assert placement is not None
        assert placement.complete, placement


@pytest.mark.operation("metastore restarted", engine="metastore")
def test_the_metastore_restarts(
    lake: Lake, all_tables: list[Tables], nodes: Nodes, endpoints: Endpoints
) -> None:
    service = endpoints.metastore

    def catalogue() -> dict[str, list[str]]:
        with metastore.Connection(service, endpoints.users["spark"], (endpoints.group,)) as client:
            return {name: sorted(client.get_all_tables(name)) for name in sorted(client.get_all_databases())}

    made = [tables.new() for tables in all_tables]
    before = catalogue()
    nodes.restart(service.host, endpoints.units["metastore"])
    after = wait_for("the metastore", catalogue, seconds=60, ignoring=(TTransportException, OSError))

    assert after == before
    for table in made:
        lake.sql(f"INSERT INTO {table} VALUES (4, 'fay', NULL, 40)")
        lake.expect(f"SELECT id FROM {table} ORDER BY id", [(1,), (2,), (3,), (4,)])
