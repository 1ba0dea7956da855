"""Preflight on real machines: everything that is wrong is said in one run, once, and nothing is touched.

What the inventory alone gives away is refused before a host is contacted: tests/unit/test_validation.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from lakehouse.model.inventory import Inventory
from suites.testbed.waiting import wait_for
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible, Outcome

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

FOREIGN = "CID-of-somebody-else"
SQUATTER = "kit-squatter"
MEMORY_MB = 10**9


@dataclass(frozen=True)
class Refusal:
    """A run on a host that holds foreign blocks, and another on which a process holds a port."""

    outcome: Outcome
    foreign: Machine
    folder: str
    folder_before: str
    squatted: Machine
    squatter: str


@contextmanager
def occupied(machine: Machine, port: int) -> Iterator[str]:
    """Start a stranger that listens on a port; yield its process."""
    serve = "systemd-run --unit=%s --collect python3 -m http.server %s --bind %s --directory /nonexistent"
    machine.run(serve, SQUATTER, port, machine.host.address)
    try:
        wait_for("the squatter", lambda: machine.run("ss -Hltn sport = :%s", port), seconds=10)
        yield main_pid(machine)
    finally:
        machine.run("systemctl stop %s", SQUATTER)


@pytest.fixture(scope="module")
def refusal(cluster: Inventory, machines: Machines, ansible: Ansible) -> Iterator[Refusal]:
    foreign, squatted = (machines[cluster.group(name)[-1].name] for name in ("datanodes", "clients"))
    port = squatted.variable("lakehouse_ports")["spark_thrift"]
    with foreign.scratch("kit-bad-input") as folder, occupied(squatted, port) as squatter:
        foreign.run("mkdir %s/current && echo clusterID=%s > %s/current/VERSION", folder, FOREIGN, folder)
        before = foreign.listing(folder)
        outcome = ansible.playbook(
            "preflight",
            node_supported_os=["debian-1"],
            node_min_memory_mb=MEMORY_MB,
            # What the inventory says of the machines itself would be refused before any is asked.
            node_memory_mb=MEMORY_MB,
            hive_metastore_heap_mb=MEMORY_MB,
            spark_thrift_enabled=True,
            lakehouse_datanode_dirs=[folder],
        )
        yield Refusal(outcome, foreign, folder, before, squatted, squatter)


def main_pid(machine: Machine) -> str:
    return machine.run("systemctl show --property=MainPID --value %s", SQUATTER)


def test_every_finding_of_every_host_is_counted(refusal: Refusal, cluster: Inventory) -> None:
    assert refusal.outcome.code != 0, refusal.outcome
    on_every_host, on_one_host = 3, 3
    # Their old directories hold data that the new ones would leave behind.
    moved = len(cluster.group("datanodes"))
    assert f"findings: {on_every_host * len(cluster.hosts) + moved + on_one_host} " in refusal.outcome.text, (
        refusal.outcome
    )


def test_an_operating_system_that_nobody_tested(refusal: Refusal, node: Machine) -> None:
    system = node.run('. /etc/os-release && echo "$ID-$VERSION_ID"')
    line = f"FAIL os.release {node.name}: runs {system} (expected debian-1): install a supported system;"
    assert refusal.outcome.text.count(line) == 1, refusal.outcome


def test_too_little_memory(refusal: Refusal, node: Machine) -> None:
    assert refusal.outcome.text.count(f"FAIL node.memory {node.name}: ") == 1, refusal.outcome
    assert f"(expected at least {MEMORY_MB} MiB): give the machine more memory, or" in refusal.outcome.text


@pytest.mark.group("metastore")
def test_a_heap_larger_than_the_machine(refusal: Refusal, node: Machine) -> None:
    line = f"FAIL node.sizes {node.name}: hive_metastore_heap_mb is {MEMORY_MB} on a machine with "
    assert refusal.outcome.text.count(line) == 1, refusal.outcome


def test_a_port_that_somebody_else_holds(refusal: Refusal) -> None:
    port = refusal.squatted.variable("lakehouse_ports")["spark_thrift"]
    line = (
        f"FAIL net.ports {refusal.squatted.name}: port {port} (spark_thrift) is held by python3,"
        f" pid {refusal.squatter} of {SQUATTER}.service (expected free, or held by spark-thrift.service):"
        " stop it, or change lakehouse_ports.spark_thrift"
    )
    assert refusal.outcome.text.count(line) == 1, refusal.outcome


def test_blocks_of_another_cluster(refusal: Refusal) -> None:
    ours = refusal.foreign.variable("lakehouse_cluster_id")
    line = (
        f"FAIL hdfs.cluster_id {refusal.foreign.name}: {refusal.folder} belongs to cluster {FOREIGN}"
        f" (expected {ours}): the data is not touched; move it away, or set lakehouse_cluster_id: {FOREIGN}"
    )
    assert refusal.outcome.text.count(line) == 1, refusal.outcome


def test_nothing_was_touched(refusal: Refusal) -> None:
    assert refusal.outcome.changed == 0, refusal.outcome
    assert refusal.foreign.listing(refusal.folder) == refusal.folder_before
    assert main_pid(refusal.squatted) == refusal.squatter
