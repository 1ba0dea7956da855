"""A changed setting: the site playbook restarts what runs on one host after the other."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lakehouse.model.inventory import Inventory
from suites.testbed.namenode import NameNode
from suites.testbed.tables import suffix
from suites.testbed.waiting import wait_for
from tests.cluster import changing
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible
from tests.cluster.stream import open_file

pytestmark = [pytest.mark.cluster, pytest.mark.drill, pytest.mark.longdrill]

# No DataNode knows this key, and each one reads the file in which it stands.
KEY = "kit.rolling"


def pauses(cluster: Inventory, machines: Machines) -> list[tuple[float, float]]:
    """When each DataNode stopped and started for the last time, the first of them first."""
    shown = "systemctl show --timestamp=unix --property=%s --value hdfs-datanode"
    moments = [
        tuple(
            float(machines[host.name].run(shown, name).lstrip("@"))
            for name in ("ActiveExitTimestamp", "ActiveEnterTimestamp")
        )
        for host in cluster.group("datanodes")
    ]
    return sorted((stopped, started) for stopped, started in moments)


def test_datanodes_restart_one_after_the_other(
    cluster: Inventory, machines: Machines, ansible: Ansible, namenode: NameNode
) -> None:
    before = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    hosts = cluster.group("datanodes")
    own = hosts[0].variables.get("hdfs_datanode_hdfs_site", {})
    try:
        # Its writer loses no DataNode for good: each tells that it will be back.
        with open_file(machines[hosts[-1].name], namenode):
            done = ansible.playbook("site", "--tags", "hdfs", hdfs_datanode_hdfs_site={**own, KEY: "1"})
        assert done.code == 0, done
        after = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
        assert [name for name in before if before[name] == after[name]] == []
        times = pauses(cluster, machines)
        for (_, started), (stopped, _) in pairwise(times):
            assert stopped >= started, times
    finally:
        back = ansible.playbook("site", "--tags", "hdfs")
    assert back.code == 0, back
    changing.healed(namenode)


def test_the_last_replica_of_a_block_keeps_its_datanode_until_another_has_one(
    cluster: Inventory, machines: Machines, ansible: Ansible, namenode: NameNode
) -> None:
    """As `lakehouse restart` does. The run waits five minutes for the gate, and ends."""
    folder, hosts = f"/{suffix()}", cluster.group("datanodes")
    user = str(cluster.hosts[0].variables["lakehouse_users"]["hdfs"])
    address_of = {host.name: host.address for host in cluster.hosts}.__getitem__
    own = hosts[0].variables.get("hdfs_datanode_hdfs_site", {})

    def holders() -> tuple[str, ...]:
        [file] = namenode.files(folder)
        return tuple(place.rpartition(":")[0] for place in file.blocks[0].datanodes)

    namenode.create(f"{folder}/file", user, address_of, body=iter([b"1"]))
    try:
        namenode.replicate(f"{folder}/file", 1)
        wait_for("one replica", lambda: len(holders()) == 1, seconds=60)
        [holder] = holders()
        before = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
        refused = ansible.playbook("site", "--tags", "hdfs", hdfs_datanode_hdfs_site={**own, KEY: "2"})
        after = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
        assert refused.code != 0, refused
        reason = f"1 block would have no live replica, such as one of {folder}/file"
        assert f"hdfs-datanode: not restarted after 300 s: {reason}" in refused.text, refused
        assert after[holder] == before[holder]
    finally:
        namenode.remove(folder)
        back = ansible.playbook("site", "--tags", "hdfs")
    assert back.code == 0, back
    changing.healed(namenode)
