"""A machine is off when the site playbook runs: it says so, and the next run completes the work."""

from __future__ import annotations

import pytest
from docker.models.containers import Container

from lakehouse import nodes
from lakehouse.inventory import Host, Inventory
from lakehouse.nodes import engine
from smoke.namenode import NameNode
from smoke.waiting import wait_for
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

SECONDS_TO_STOP = 30
SECONDS_TO_HEAL = 120
# Without them nothing answers at all, and nothing is left to ask about the data.
NEEDED = {"namenode", "metastore", "postgresql"}


@pytest.fixture
def victim(cluster: Inventory) -> Host:
    if "local_nodes_cluster" not in cluster.hosts[0].variables:
        pytest.skip("nobody switches real machines off for a test")
    return next(host for host in reversed(cluster.group("datanodes")) if not NEEDED & host.groups)


def switch_off(host: Host) -> None:
    with engine.connect() as client:
        found = engine.containers(client, host.variables["local_nodes_cluster"])
        container: Container = next(one for one in found if one.labels[engine.NODE_LABEL] == host.name)
        container.stop(timeout=SECONDS_TO_STOP)


def holdings(namenode: NameNode, root: str) -> dict[str, tuple[int, int]]:
    """Files and bytes below every folder of the lakehouse, but for Spark's, whose event logs grow."""
    summaries = {
        name: namenode.webhdfs("GET", "GETCONTENTSUMMARY", f"{root}/{name}")["ContentSummary"]
        for name in namenode.names(root)
        if name != "spark"
    }
    return {name: (summary["fileCount"], summary["length"]) for name, summary in summaries.items()}


def test_the_run_after_the_failed_one_completes_it(
    victim: Host, ansible: Ansible, namenode: NameNode
) -> None:
    root = victim.variables["lakehouse_root"]
    before = holdings(namenode, root)
    assert sum(files for files, _ in before.values()) > 0

    switch_off(victim)
    try:
        refused = ansible.playbook("site")
    finally:
        nodes.up(ansible.inventory, print)
    assert refused.code != 0, refused
    assert f"findings: 1 FAIL net.ssh {victim.name}: unreachable: " in refused.text, refused
    assert f"check the address, the key and the machine: ansible {victim.name} -m" in refused.text, refused
    assert refused.changed == 0, refused

    completed = ansible.playbook("site")
    assert completed.code == 0, completed
    again = ansible.playbook("site")
    assert (again.code, again.changed) == (0, 0), again

    wait_for("every block has its replicas", lambda: not namenode.lacking(), seconds=SECONDS_TO_HEAL)
    assert namenode.state()["MissingBlocks"] == 0
    assert holdings(namenode, root) == before
