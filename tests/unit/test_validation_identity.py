"""An id that every copy of the example has, and a DataNode that is there twice, are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.lakehouse import preflight_storage

from lakehouse import run
from lakehouse.model import inventory
from lakehouse.validation import identity
from plugins.filter import preflight


@pytest.mark.parametrize("name", ["three-node", "local"])
def test_the_examples_are_those_that_are_shipped(name: str) -> None:
    shipped = inventory.load(run.ROOT / "inventory" / name)
    cluster_id = shipped.hosts[0].variables["lakehouse_cluster_id"]
    assert identity.EXAMPLES[cluster_id] == tuple(host.address for host in shipped.hosts)
    assert identity.example("n1", cluster_id, [host.address for host in shipped.hosts]) == []


def test_a_copy_with_the_id_of_the_example_is_not_formatted() -> None:
    (found,) = identity.example("n1", "CID-lakehouse", ["10.0.0.11", "10.0.0.12"])
    assert str(found).startswith(
        "FAIL hdfs.cluster_id n1: the NameNode is to be formatted with the example's id, CID-lakehouse"
    )
    assert identity.example("n1", "CID-mine", ["10.0.0.11"]) == []


def test_only_a_namenode_without_data_is_formatted(tmp_path: Path) -> None:
    services = [{"storage": {"kind": "hdfs_name", "paths": [str(tmp_path)]}}, {"ports": []}]
    assert preflight_storage.formats(services)
    (tmp_path / "current").mkdir()
    (tmp_path / "current/VERSION").write_text("clusterID=CID-lakehouse\n")
    assert not preflight_storage.formats(services)
    assert not preflight_storage.formats([{"storage": {"kind": "hdfs_data", "paths": ["/nowhere"]}}])


def test_a_cloned_datanode_is_found(tmp_path: Path) -> None:
    (tmp_path / "current").mkdir()
    (tmp_path / "current/VERSION").write_text("datanodeUuid=u-1\nclusterID=CID-x\n")
    storage = {"kind": "hdfs_data", "paths": [str(tmp_path), str(tmp_path / "second-disk")]}
    seen = preflight_storage.datanodes([{"storage": storage}])
    assert seen == ["u-1"]
    (line,) = preflight.doubled_datanodes(
        {"n1": {"datanodes": seen}, "n2": {"datanodes": seen}, "n3": {"datanodes": ["u-3"]}, "n4": {}}
    )
    assert line.startswith("FAIL hdfs.datanode_uuid n1,n2: all are the DataNode u-1 (expected a uuid each): ")
