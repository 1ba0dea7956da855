"""`lakehouse status` of the cluster: when it is well, when a service is stopped, when a host is silent."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import pytest

from lakehouse.dev import numbers
from lakehouse.model.inventory import Inventory
from suites.testbed.namenode import NameNode
from suites.testbed.tables import suffix
from tests.cluster import changing
from tests.cluster.changing import Verb
from tests.cluster.daemons import placements
from tests.cluster.looking import Said, look, paused, secrets
from tests.cluster.machines import Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

# Without one of them it is down, and not merely degraded.
NEEDED = {"namenode", "metastore", "postgresql"}
# Whatever becomes of the verb, a host that was made silent is not so for longer.
LIMIT_SECONDS = 15
# What the verb promises, and how it ends when a user ends it.
PROMISED_SECONDS, INTERRUPTED = numbers.most("`lakehouse status`"), 130
BLOCKS = 8


@pytest.fixture(scope="session")
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


def status(path: str, *options: str) -> Said:
    return look("status", path, *options, seconds=LIMIT_SECONDS)


def test_a_cluster_that_is_well_is_ok_with_every_service_named(path: str, cluster: Inventory) -> None:
    said = status(path)
    assert (said.code, said.err) == (0, ""), said.out
    *_, last = said.out.splitlines()
    count = len(cluster.hosts)
    assert last.startswith(f"status {cluster.hosts[0].variables['lakehouse_cluster']}: OK; ")
    assert f"; {count} of {count} hosts answered, " in last
    assert "unknown" not in said.out
    assert [secret for secret in secrets(cluster) if secret in said.out] == []


def test_programs_learn_of_every_service_where_it_is_placed(path: str, cluster: Inventory) -> None:
    said = status(path, "--json")
    document = said.document
    assert (document["outcome"], document["findings"]) == ("OK", []), document
    assert document["seconds"] <= PROMISED_SECONDS
    for placed in placements():
        for host in cluster.group(placed.group):
            units = [one["unit"] for one in document["hosts"][host.name]["services"].values()]
            assert placed.name in {unit.partition("@")[0] for unit in units}, host.name
    states = [one["state"] for host in document["hosts"].values() for one in host["services"].values()]
    assert set(states) == {"running"}
    assert document["cluster"]["hdfs"]["value"]["live"] == len(cluster.group("datanodes"))
    assert [secret for secret in secrets(cluster) if secret in said.out] == []


def test_blocks_are_counted_as_they_are_now(path: str, cluster: Inventory, namenode: NameNode) -> None:
    variables = cluster.hosts[0].variables
    folder, user = f"{variables['lakehouse_root']}/counted_{suffix()}", variables["lakehouse_users"]["hdfs"]
    address_of = {host.name: host.address for host in cluster.hosts}.__getitem__

    def blocks() -> int:
        return int(status(path, "--json").document["cluster"]["hdfs"]["value"]["blocks"])

    # A cache of answers keeps this one.
    before = blocks()
    try:
        for number in range(BLOCKS):
            namenode.create(f"{folder}/{number}", user, address_of, body=iter([b"1"]))
        now = blocks()
    finally:
        namenode.remove(folder)
    # Those of event logs come and go.
    assert now > before + BLOCKS // 2


@pytest.mark.parametrize("command", changing.runbook("status"), ids=" ".join)
def test_a_command_of_the_runbook_shows_it(command: list[str], path: str) -> None:
    said = look(command[0], path, *command[1:], seconds=LIMIT_SECONDS)
    assert (said.code, said.err) == (0, ""), said.out


@pytest.mark.drill
def test_a_stopped_service_is_named_and_not_called_failed(
    path: str, cluster: Inventory, machines: Machines
) -> None:
    host = cluster.group("spark_history")[0]
    machine = machines[host.name]
    machine.run("systemctl stop spark-history")
    try:
        said = status(path)
    finally:
        machine.run("systemctl start spark-history")
    assert said.code == 1, said.out
    [finding] = [line for line in said.out.splitlines() if line.startswith("DEGRADED unit.")]
    assert f"unit.stopped spark_history on {host.name}: stopped" in finding
    *_, last = said.out.splitlines()
    assert ": DEGRADED; " in last
    assert "playbooks/site.yml" in last


@pytest.mark.drill
def test_a_silent_host_is_unknown_and_never_well(path: str, cluster: Inventory) -> None:
    if "local_nodes_cluster" not in cluster.hosts[0].variables:
        pytest.skip("real machines are not made to hang for a test")
    victim = next(host for host in reversed(cluster.group("datanodes")) if not NEEDED & host.groups)
    with paused(victim):
        said = status(path, "--json")
    document = said.document
    assert (said.code, document["outcome"]) == (1, "DEGRADED"), document["findings"]
    gone = document["hosts"][victim.name]
    assert not gone["answered"]
    assert gone["why"].startswith("no answer in ")
    assert {one["state"] for one in gone["services"].values()} == {"unknown"}
    assert [one["where"] for one in document["findings"] if one["code"] == "host.silent"] == [victim.name]
    others = [host for name, host in document["hosts"].items() if name != victim.name]
    assert all(host["answered"] for host in others)


@pytest.mark.drill
def test_of_a_cluster_that_is_silent_but_for_its_namenode_the_namenode_is_known(
    path: str, cluster: Inventory
) -> None:
    if "local_nodes_cluster" not in cluster.hosts[0].variables:
        pytest.skip("real machines are not made to hang for a test")
    [namenode] = cluster.group("namenode")
    silent = [host for host in cluster.hosts if host != namenode]
    with ExitStack() as stack:
        for host in silent:
            stack.enter_context(paused(host))
        said = status(path, "--json")
    document = said.document
    assert (said.code, document["outcome"]) == (2, "DOWN"), document["findings"]
    assert document["seconds"] <= PROMISED_SECONDS
    answered = {name for name, host in document["hosts"].items() if host["answered"]}
    assert answered == {namenode.name}
    for host in silent:
        services = document["hosts"][host.name]["services"].values()
        assert {one["state"] for one in services} == {"unknown"}
    assert document["cluster"]["hdfs"]["value"]["blocks"] > 0


def test_it_is_shown_again_until_somebody_ends_it(path: str) -> None:
    with Verb(path).started("status", "--watch", "1") as process:
        assert process.stdout is not None
        last_lines = (line for line in process.stdout if line.startswith("status "))
        shown = [next(last_lines), next(last_lines)]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_SECONDS)
    assert all(": OK; " in line for line in shown), shown
    assert process.returncode == INTERRUPTED
