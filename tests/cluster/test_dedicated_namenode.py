"""The example with a machine for the NameNode alone becomes a cluster, on nodes of its own."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from lakehouse.local import nodes
from lakehouse.model import inventory, services
from lakehouse.model.inventory import Inventory
from lakehouse.run import BUILD, ROOT
from suites.testbed.waiting import wait_for
from tests.cluster.looking import look
from tests.cluster.machines import namenode_of, reached
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

EXAMPLE = ROOT / "inventory" / "dedicated-namenode"
LOCAL = ROOT / "inventory" / "local"
CLUSTER = "kit-namenode"
SUBNETS = ("192.168.1.", "172.29.11.")
# As docs/real-machines.md has it of the small profile; a NameNode alone makes do with less.
MEMORY_MB, NAMENODE_MEMORY_MB = 4096, 2048


def derive(target: Path) -> Path:
    """Write the example with containers as its machines, where `../../.state` is the checkout's own."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(EXAMPLE, target)
    hosts = (target / "hosts.yml").read_text(encoding="utf-8")
    (target / "hosts.yml").write_text(hosts.replace(*SUBNETS), encoding="utf-8")
    for name in ("connection.yml", "nodes.yml"):
        shutil.copy(LOCAL / "group_vars" / "all" / name, target / "group_vars" / "all" / name)
    own = {
        "lakehouse_cluster": CLUSTER,
        "lakehouse_cluster_id": f"CID-{CLUSTER}",
        "lakehouse_profile": services.CORE,
        "local_nodes_subnet": f"{SUBNETS[1]}0/24",
        "node_memory_mb": MEMORY_MB,
        "vault_metastore_password": secrets.token_hex(16),
        "vault_trino_shared_secret": secrets.token_hex(16),
    }
    # The last file of a folder of variables wins.
    write(target / "group_vars" / "all" / "zz-own.yml", own)
    small = {"node_memory_mb": NAMENODE_MEMORY_MB, "node_min_memory_mb": NAMENODE_MEMORY_MB}
    write(target / "group_vars" / "namenode.yml", small)
    return target


def write(path: Path, variables: Mapping[str, object]) -> None:
    path.write_text(yaml.safe_dump(variables), encoding="utf-8")


@pytest.fixture(scope="module")
def path() -> Iterator[str]:
    """The inventory of a cluster that has converged; at the end nothing is left of it."""
    target = derive(BUILD / "dedicated-namenode")
    try:
        nodes.down(target, print, whosever=True)
        nodes.up(target, print)
        first = Ansible(str(target)).playbook("site")
        assert first.code == 0, first
        yield str(target)
    finally:
        nodes.down(target, print)
        shutil.rmtree(target)


@pytest.fixture(scope="module")
def cluster(path: str) -> Inventory:
    return inventory.load(path)


def test_the_host_of_the_namenode_runs_it_and_nothing_else(cluster: Inventory) -> None:
    [host] = cluster.group("namenode")
    units = {row.unit.partition("@")[0] for row in services.load().services.values()}
    with reached(cluster) as machines:
        listed = machines[host.name].run("systemctl list-unit-files --type=service --plain --no-legend")
        assert machines[host.name].run("systemctl is-active hdfs-namenode") == "active"
    there = {line.split()[0].removesuffix(".service").partition("@")[0] for line in listed.splitlines()}
    assert there & units == {"hdfs-namenode"}


def test_a_second_run_changes_nothing(path: str) -> None:
    again = Ansible(path).playbook("site")
    assert (again.code, again.changed) == (0, 0), again


def test_a_table_of_spark_is_on_the_three_other_hosts(path: str, cluster: Inventory) -> None:
    db = f"kit_dedicated_{secrets.token_hex(3)}"
    table = f"iceberg.{db}.kept"
    statements = f"""
        CREATE DATABASE {db};
        CREATE TABLE {table} USING iceberg AS SELECT id FROM range(1000);
        SELECT count(*) FROM {table};
    """
    said = look("sql", path, "--engine", "spark", "--csv", "-f", "-", seconds=300, given=statements)
    assert said.code == 0, said
    assert said.out.split()[-1] == "1000", said
    others = {host.name for host in cluster.hosts} - {host.name for host in cluster.group("namenode")}
    namenode, root = namenode_of(cluster), cluster.hosts[0].variables["lakehouse_root"]

    def holders() -> list[set[str]]:
        """The hosts of each block of the table, once all of them have three."""
        files = [file for file in namenode.files(root) if f"/{db}" in file.path and file.blocks]
        blocks = [block for file in files for block in file.blocks]
        found = [{name.partition(":")[0] for name in block.datanodes} for block in blocks]
        return found if min(map(len, found), default=0) >= len(others) else []

    assert {frozenset(hosts) for hosts in wait_for("three replicas", holders, seconds=60)} == {
        frozenset(others)
    }


def test_status_names_the_four_hosts_and_finds_them_well(path: str, cluster: Inventory) -> None:
    document = look("status", path, "--json", seconds=60).document
    assert document["hosts"].keys() == {host.name for host in cluster.hosts}
    states = [one["state"] for host in document["hosts"].values() for one in host["services"].values()]
    assert set(states) == {"running"}, json.dumps(document, indent=1)
    assert document["cluster"]["hdfs"]["value"]["live"] == len(cluster.group("datanodes"))
