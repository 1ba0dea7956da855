"""`lakehouse maintenance`: a host goes, HDFS copies nothing and serves, and it comes back with its data."""

from __future__ import annotations

import pytest

from lakehouse.model.inventory import Host, Inventory
from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests.cluster import changing
from tests.cluster.changing import Verb
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

# The two minutes, and until the NameNode takes a silent DataNode for dead.
OVER_SECONDS = 600


@pytest.fixture(scope="module")
def host(cluster: Inventory) -> Host:
    return changing.replaceable(cluster)


@pytest.mark.longdrill
def test_a_host_goes_and_comes_back(
    verb: Verb, host: Host, machines: Machines, namenode: NameNode, ansible: Ansible
) -> None:
    """As the runbook does it; whatever runs there alone, its loss is confirmed."""
    name = str(host.variables["lakehouse_cluster"])
    planned, leave, end = changing.runbook("maintenance", **{"worker-node3": host.name}, CLUSTER=name)
    refused = verb.run(*leave[: leave.index("--confirm")])
    assert refused.returncode == 4, refused
    shown = verb.run(*planned)
    # The first two say until when.
    assert shown.stdout.splitlines()[2:-1] == refused.stdout.splitlines()[2:-1]
    running = "systemctl is-active hdfs-datanode"
    try:
        gone = verb.run(*leave)
        assert gone.returncode == 0, gone
        assert f"maintenance {host.name}: done; " in gone.stdout.splitlines()[-1]
        assert str(machines[host.name].shell.run(running).stdout).strip() == "inactive"
        # HDFS counts what is away as there: nothing is copied.
        assert namenode.state()["LowRedundancyBlocks"] == 0
        # Who is away is not waited for by what another verb restarts.
        leader = "spark_master" if "spark_master" not in host.groups else "flink_jobmanager"
        restarted = verb.run("restart", leader, "--yes")
        assert restarted.returncode == 0, restarted
        # What another verb would take away now is refused.
        other = verb.run("restart", "datanode", "--yes", "--wait", "1")
        assert other.returncode in {3, 6}, other
        # A run of the role that writes the list leaves the state in it alone.
        listed = machines[namenode_host(machines)].run("cat %s", place(machines))
        assert '"adminState": "IN_MAINTENANCE"' in listed
        names = [one.name for one in machines_of(machines)]
        arguments = {"path": place(machines), "hosts": names}
        again = ansible.module(namenode_host(machines), "lakehouse_hdfs_hosts", arguments)
        assert again.code == 0, again
        assert machines[namenode_host(machines)].run("cat %s", place(machines)) == listed
    finally:
        back = verb.run(*end)
    assert back.returncode == 0, back
    assert machines[host.name].run(running).strip() == "active"
    changing.healed(namenode)


@pytest.mark.longdrill
def test_a_host_that_goes_while_a_person_is_asked_is_not_started(
    verb: Verb, host: Host, machines: Machines, namenode: NameNode
) -> None:
    """The plan was shown before the maintenance began, and is confirmed after it."""
    name, running = str(host.variables["lakehouse_cluster"]), "systemctl is-active spark-worker"
    try:
        with verb.asked("restart", "spark_worker") as asked:
            asked.until("[y/N]")
            gone = verb.run("maintenance", host.name, "--for", "1h", "--confirm", name)
            assert gone.returncode == 0, gone
            said = asked.answered("y")
        assert asked.code == 3, said
        assert f"{host.name} is in maintenance since the plan was shown; nothing was changed" in said
        assert str(machines[host.name].shell.run(running).stdout).strip() == "inactive"
    finally:
        back = verb.run("maintenance", host.name, "--end", "--yes")
    assert back.returncode == 0, back
    changing.healed(namenode)


@pytest.mark.longdrill
def test_hdfs_does_without_the_replicas_of_a_host_until_its_time_is_over(
    verb: Verb, host: Host, machines: Machines, namenode: NameNode
) -> None:
    name, left = str(host.variables["lakehouse_cluster"]), "blocks that lack a replica"
    try:
        gone = verb.run("maintenance", host.name, "--for", "2m", "--confirm", name)
        assert gone.returncode == 0, gone
        assert namenode.state()["LowRedundancyBlocks"] == 0
        # A boot starts what was stopped.
        enabled = machines[host.name].run("systemctl is-enabled hdfs-datanode")
        assert enabled.strip() == "enabled"
        wait_for(left, lambda: namenode.state()["LowRedundancyBlocks"], seconds=OVER_SECONDS)
    finally:
        back = verb.run("maintenance", host.name, "--end", "--yes")
    assert back.returncode == 0, back
    changing.healed(namenode)


@pytest.mark.longdrill
def test_the_host_of_the_namenode_comes_back_without_a_boot(
    verb: Verb, machines: Machines, namenode: NameNode
) -> None:
    name = namenode_host(machines)
    cluster = str(machines[name].host.variables["lakehouse_cluster"])
    try:
        gone = verb.run("maintenance", name, "--for", "1h", "--confirm", cluster)
        assert gone.returncode == 0, gone
        assert str(machines[name].shell.run("systemctl is-active hdfs-namenode").stdout).strip() == "inactive"
    finally:
        back = verb.run("maintenance", name, "--end", "--yes")
    assert back.returncode == 0, back
    changing.healed(namenode)


def machines_of(machines: Machines) -> list[Host]:
    return [machine.host for machine in machines.values() if "datanodes" in machine.host.groups]


def namenode_host(machines: Machines) -> str:
    return next(name for name, machine in machines.items() if "namenode" in machine.host.groups)


def place(machines: Machines) -> str:
    config = machines[namenode_host(machines)].variable("lakehouse_config_dir")
    return f"{config}/hadoop/namenode/datanodes.json"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nobody", "--end"), 64, "error: there is no host nobody in "),
        (("alpha1", "--for", "soon"), 64, "error: --for soon is no time; next: "),
        (("alpha1",), 64, "--for or --end is required"),
    ],
)
def test_bad_words_are_one_line(verb: Verb, words: tuple[str, ...], code: int, said: str) -> None:
    done = verb.run("maintenance", *words)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert said in done.stderr.splitlines()[-1]
