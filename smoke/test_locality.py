"""A task runs where the data lies, as long as that machine has a worker."""

from __future__ import annotations

import pytest

from smoke.test_cluster import THIS_HOST
from testbed.endpoints import Endpoints
from testbed.engines.spark import Spark
from testbed.formats import ICEBERG
from testbed.namenode import NameNode
from testbed.tables import Tables, data_files
from testbed.waiting import wait_for

# A place chosen without regard to the data is the right one each time in one of 243 runs on three machines.
QUERIES = 5


# Delta gives Spark its files without their hosts, so only Iceberg's tasks have a place that they prefer.
@pytest.mark.operation("data locality")
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_a_task_runs_where_its_only_block_is(
    spark: Spark, tables: Tables, namenode: NameNode, endpoints: Endpoints
) -> None:
    workers = {host.name for host in endpoints.in_group("spark_workers")}
    if not workers <= {host.name for host in endpoints.in_group("datanodes")}:
        pytest.skip("the workers are not where the DataNodes are")
    table = tables.new(query="SELECT id FROM range(3)")
    [path] = data_files(spark, table)

    def owner() -> str | None:
        [file] = namenode.files(path)
        holders = [address.split(":")[0] for block in file.blocks for address in block.datanodes]
        return holders[0] if len(holders) == 1 else None

    namenode.replicate(path, 1)
    host = wait_for(f"one replica of {path}", owner, seconds=30)
    for _ in range(QUERIES):
        assert spark.sql(f"SELECT DISTINCT {THIS_HOST} FROM {table} WHERE id >= 0") == [(host,)]
    namenode.replicate(path, endpoints.replication)
