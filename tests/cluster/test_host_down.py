"""A machine dies while the site playbook runs, and is off in the next run: a third one completes the work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from lakehouse.local import nodes
from lakehouse.model.inventory import Host, Inventory
from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests.cluster.daemons import placements
from tests.cluster.machines import Machine, Machines, kill
from tests.cluster.playbooks import Ansible, Outcome

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

SECONDS_TO_CHANGE = 120
SECONDS_TO_HEAL = 120
# Without them nothing answers at all, and nothing is left to ask about the data.
NEEDED = {"namenode", "metastore", "postgresql"}
# Spark's event logs, and the archive in which Flink writes a job after its client has been answered.
GROWING = ("spark/", "flink/history")
# No daemon knows this key, and each one reads the file in which it stands.
KEY = "kit.half"

Holdings = Mapping[str, tuple[int, int]]
Starts = Mapping[str, str]


@dataclass(frozen=True)
class Drill:
    """Three runs of the playbook; what HDFS held before, and when its processes had started at each point."""

    stored: Holdings
    before: Starts
    half: Outcome
    left: Starts
    refused: Outcome
    completed: Outcome
    after: Starts


@pytest.fixture(scope="module")
def victim(cluster: Inventory) -> Host:
    if "local_nodes_cluster" not in cluster.hosts[0].variables:
        pytest.skip("real machines are not switched off for a test")
    return next(host for host in reversed(cluster.group("datanodes")) if not NEEDED & host.groups)


@pytest.fixture(scope="module")
def drill(
    cluster: Inventory, victim: Host, machines: Machines, ansible: Ansible, namenode: NameNode
) -> Drill:
    """Change a file on all machines; as soon as the NameNode's has it, the victim dies."""
    first = machines[cluster.group("namenode")[0].name]
    survivors = [machine for machine in machines.values() if machine.host != victim]
    settings = {"hdfs_core_site": {KEY: "1"}}

    stored = holdings(namenode, victim.variables["lakehouse_root"])
    before = starts(machines.values())
    try:
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(ansible.playbook, "site", "--tags", "hdfs", **settings)
            wait_for("a change", lambda: run.done() or has_key(first), seconds=SECONDS_TO_CHANGE)
            kill(victim)
            half = run.result()
        left = starts(survivors)
        refused = ansible.playbook("site")
    finally:
        nodes.up(ansible.inventory, print)
    completed = ansible.playbook("site", "--tags", "hdfs", **settings)
    return Drill(stored, before, half, left, refused, completed, starts(machines.values()))


def has_key(machine: Machine) -> bool:
    path = f"{machine.variable('lakehouse_config_dir')}/hadoop/core-site.xml"
    return bool(machine.shell.run("grep -qF %s %s", KEY, path).succeeded)


def starts(machines: Iterable[Machine]) -> Starts:
    shown = "systemctl show --property=ExecMainStartTimestamp --value %s"
    return {
        f"{placed.name} on {machine.name}": machine.run(shown, placed.unit)
        for machine in machines
        for placed in placements()
        if placed.group in machine.host.groups and placed.name.startswith("hdfs-")
    }


def holdings(namenode: NameNode, root: str) -> Holdings:
    """Files and bytes below every second folder of the lakehouse, but for those that grow by themselves."""
    paths = [f"{area}/{name}" for area in namenode.names(root) for name in namenode.names(f"{root}/{area}")]
    summaries = {
        path: namenode.webhdfs("GET", "GETCONTENTSUMMARY", f"{root}/{path}")["ContentSummary"]
        for path in paths
        if not path.startswith(GROWING)
    }
    return {path: (summary["fileCount"], summary["length"]) for path, summary in summaries.items()}


def test_the_run_in_which_it_dies_stops_half_way(drill: Drill, victim: Host) -> None:
    assert drill.half.code != 0, drill.half
    assert re.search(rf"\b{victim.name} : .* unreachable=1 ", drill.half.text), drill.half
    assert drill.half.changed > 0, drill.half
    # The file is there, and the process that reads it still goes by the old one.
    assert [name for name, start in drill.left.items() if start == drill.before[name]], drill.half


def test_the_run_without_it_is_refused_and_changes_nothing(drill: Drill, victim: Host) -> None:
    refused = drill.refused
    assert refused.code != 0, refused
    assert f"findings: 1 FAIL net.ssh {victim.name}: unreachable: " in refused.text, refused
    assert f"check the address, the key and the machine: ansible {victim.name} -m" in refused.text, refused
    assert refused.changed == 0, refused


def test_the_same_command_completes_it_once_the_machine_is_back(drill: Drill, machines: Machines) -> None:
    assert drill.completed.code == 0, drill.completed
    assert [machine.name for machine in machines.values() if not has_key(machine)] == []
    assert [name for name, start in drill.after.items() if start == drill.before[name]] == []


def test_all_of_it_can_be_taken_back(
    drill: Drill, victim: Host, machines: Machines, ansible: Ansible, namenode: NameNode
) -> None:
    back = ansible.playbook("site")
    assert back.code == 0, back
    assert [machine.name for machine in machines.values() if has_key(machine)] == []
    again = ansible.playbook("site")
    assert (again.code, again.changed) == (0, 0), again

    wait_for("every block has its replicas", lambda: not namenode.lacking(), seconds=SECONDS_TO_HEAL)
    assert namenode.state()["MissingReplicatedBlocks"] == 0
    assert sum(files for files, _ in drill.stored.values()) > 0
    assert holdings(namenode, victim.variables["lakehouse_root"]) == drill.stored
