"""The suite talks to the cluster that the inventory describes, and not to something that looks like it."""

from __future__ import annotations

import pytest

from testbed.endpoints import Endpoints
from testbed.engines.spark import Spark
from testbed.namenode import NameNode
from testbed.waiting import wait_for

SECONDS = 180
# Runs on the executor: java.net.InetAddress says "name/address" of the machine.
THIS_HOST = "split(reflect('java.net.InetAddress', 'getLocalHost'), '/')[0]"
# Half a second per row: a server that was idle has no executor, and the first one that comes would do all the
# work before the others are there, were a task nothing but a name.
AWHILE = "reflect('java.lang.Thread', 'sleep', 500L)"


@pytest.mark.operation("live nodes", engine="hdfs")
def test_every_datanode_is_live(namenode: NameNode, endpoints: Endpoints) -> None:
    assert namenode.state()["NumLiveDataNodes"] == len(endpoints.in_group("datanodes"))


@pytest.mark.operation("permissions", engine="hdfs")
@pytest.mark.parametrize("folder", ["", "iceberg", "delta", "hive/warehouse", "sales", "streams"])
def test_the_group_owns_the_folders(namenode: NameNode, endpoints: Endpoints, folder: str) -> None:
    status = namenode.status(f"{endpoints.root}/{folder}".rstrip("/"))
    assert (status["type"], status["group"]) == ("DIRECTORY", endpoints.group)
    assert status["permission"][-2] == "7", f"the group cannot write: {status}"


@pytest.mark.operation("distributed job")
def test_tasks_run_on_every_worker(spark: Spark, endpoints: Endpoints) -> None:
    assert spark.sql("SET spark.master") == [("spark.master", endpoints.spark.master)]
    workers = {host.name for host in endpoints.in_group("spark_workers")}
    tasks = 4 * len(workers)
    query = f"SELECT DISTINCT {THIS_HOST}, {AWHILE} FROM range(0, {tasks}, 1, {tasks})"

    def everybody_works() -> bool:
        if missing := workers - {host for host, _ in spark.sql(query)}:
            raise AssertionError(f"no task ran on {missing}")
        return True

    wait_for("a task on every worker", everybody_works, seconds=SECONDS, ignoring=(AssertionError,))
