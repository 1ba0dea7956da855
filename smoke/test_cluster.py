"""The suite talks to the cluster that the inventory describes, and not to something that looks like it."""

from __future__ import annotations

import pytest

from suites.testbed.endpoints import Endpoints
from suites.testbed.namenode import NameNode


@pytest.mark.operation("live nodes", engine="hdfs")
def test_every_datanode_is_live(namenode: NameNode, endpoints: Endpoints) -> None:
    assert namenode.state()["NumLiveDataNodes"] == len(endpoints.in_group("datanodes"))


@pytest.mark.operation("permissions", engine="hdfs")
@pytest.mark.parametrize("folder", ["", "iceberg", "delta", "hive/warehouse", "sales", "streams"])
def test_the_group_owns_the_folders(namenode: NameNode, endpoints: Endpoints, folder: str) -> None:
    status = namenode.status(f"{endpoints.root}/{folder}".rstrip("/"))
    assert (status["type"], status["group"]) == ("DIRECTORY", endpoints.group)
    assert status["permission"][-2] == "7", f"the group cannot write: {status}"
