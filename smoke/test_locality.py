"""A task runs where the data lies, as long as that machine has a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from smoke.conftest import AWHILE
from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import SESSION, THIS_HOST, Spark
from suites.testbed.formats import ICEBERG, Format
from suites.testbed.namenode import NameNode
from suites.testbed.placement import Ledger
from suites.testbed.tables import Tables
from suites.testbed.waiting import wait_for

# A client of HDFS that an executor has had for longer has the replication of its own time.
ONE_REPLICA = {
    "spark.sql.catalog.iceberg.hadoop.dfs.replication": "1",
    "spark.sql.catalog.iceberg.hadoop.fs.hdfs.impl.disable.cache": "true",
}
# A place chosen without regard to the data is the right one each time in one of 729 runs on three machines.
QUERIES_PER_FILE = 2
# An executor that has only just come writes no file yet.
SECONDS = 60


@pytest.fixture
def single(  # noqa: PLR0913, PLR0917 (all are fixtures)
    spark: Spark,
    workers: set[str],
    databases: Databases,
    namenode: NameNode,
    endpoints: Endpoints,
    fmt: Format,
) -> Iterator[Tables]:
    """Makes tables whose blocks have one replica each: on the machine of the task that writes it."""
    if not workers <= {host.name for host in endpoints.in_group("datanodes")}:
        pytest.skip("the workers are not where the DataNodes are")
    session = spark.fresh({**SESSION, **ONE_REPLICA})
    ledger = Ledger(namenode, 1, endpoints.name_of)
    with closing(Tables(session, databases, ledger, fmt)) as tables:
        yield tables
    session.session.stop()


# Delta gives Spark its files without their hosts, so only Iceberg's tasks have a place that they prefer.
@pytest.mark.wide
@pytest.mark.operation("data locality")
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_a_task_runs_where_its_only_block_is(
    spark: Spark, workers: set[str], single: Tables, namenode: NameNode, endpoints: Endpoints
) -> None:
    rows = f"SELECT id, {AWHILE} AS slept FROM range(0, {len(workers)}, 1, {len(workers)})"

    def owner(uri: str) -> str:
        [file] = namenode.files(urlsplit(uri).path)
        [address] = {address for block in file.blocks for address in block.datanodes}
        return endpoints.name_of(address)

    def scatter() -> tuple[Table, dict[int, str]]:
        table = single.new(query=rows)
        owners = {id_: owner(uri) for id_, uri in spark.sql(f"SELECT id, {table.format.file} FROM {table}")}
        assert set(owners.values()) == workers
        return table, owners

    table, owners = wait_for("a file on every worker", scatter, seconds=SECONDS, ignoring=(AssertionError,))
    for id_, host in [*owners.items()] * QUERIES_PER_FILE:
        spark.expect(f"SELECT DISTINCT {THIS_HOST} FROM {table} WHERE id = {id_}", [(host,)])
