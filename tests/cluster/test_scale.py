"""`lakehouse scale-out`, `decommission`, `recommission`: a fourth host joins, leaves, changes its mind."""

from __future__ import annotations

import json
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import docker
import pytest
import requests
import yaml

from lakehouse.local import nodes
from lakehouse.model import inventory
from lakehouse.model.inventory import Host, Inventory
from lakehouse.run import BUILD
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.spark import pause
from suites.testbed.engines.trino import Trino
from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests.cluster import changing
from tests.cluster.changing import Verb
from tests.cluster.kills import SHARES, Kills
from tests.cluster.machines import Machine, Machines, kill
from tests.cluster.playbooks import Ansible
from tests.cluster.users import Users, at_work

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

FOURTH = "delta4"
GROUPS = ("datanodes", "spark_workers", "trino_workers", "flink_taskmanagers")
# From the question to the last line, of a host that is bare, while no user works.
JOIN_SECONDS = 180
# Of four bare machines: the run that joins one, and the two that go on with it, are killed at such a share.
BARE_SHARES, BARE_TIMES = (0.06, 0.13, 0.2, 0.27), 3
# Of the balancer, in MiB/s: neither the verb's own nor HDFS's.
BANDWIDTH = 50
# Each worker of Trino has splits of it.
TRINO_WORK = "select count(*) from tpch.tiny.lineitem where orderkey > 0"
# Each task says where it is, and holds its core a moment.
SPARK_WORK = (
    f"select distinct reflect('java.net.InetAddress', 'getLocalHost'), {pause(1000)} from range(0, 40, 1, 40)"
)
# Ten seconds of it, so that no other takes the place of one that is done.
FLINK_WORK = "'connector' = 'datagen', 'rows-per-second' = '1000', 'number-of-rows' = '10000'"


def test_three_datanodes_cannot_lose_one_of_three_replicas(verb: Verb, cluster: Inventory) -> None:
    """Nothing is asked and nothing begun: HDFS would wait for ever."""
    host = changing.follower(cluster)
    before = verb.run("runs", "--json")
    refused = verb.run("decommission", host.name)
    assert refused.returncode == 3, refused
    last = refused.stdout.splitlines()[-1]
    assert last.startswith(f"decommission {host.name}: refused; "), last
    assert (
        " files want up to 3 replicas, and 2 DataNodes would be left; next: .venv/bin/lakehouse scale-out "
        in last
    )
    assert json.loads(verb.run("runs", "--json").stdout) == json.loads(before.stdout)


def test_a_host_that_alone_runs_something_cannot_leave(verb: Verb, cluster: Inventory) -> None:
    [host] = cluster.group("namenode")
    refused = verb.run("decommission", host.name)
    assert refused.returncode == 3, refused
    last = refused.stdout.splitlines()[-1]
    assert "refused; no other host runs " in last
    assert "namenode" in last


@pytest.mark.parametrize(
    "words", [("scale-out", "nobody"), ("decommission", "nobody"), ("recommission", "nobody")]
)
def test_an_unknown_host_is_one_line(verb: Verb, words: tuple[str, ...]) -> None:
    done = verb.run(*words)
    assert (done.returncode, done.stdout) == (64, ""), done
    [line] = done.stderr.splitlines()
    assert "nobody" in line
    assert "; next: " in line


@pytest.fixture(scope="module")
def four(pytestconfig: pytest.Config, cluster: Inventory) -> Iterator[str]:
    """The same cluster with one host more, which exists and is bare; at the end it is gone again."""
    source = Path(str(pytestconfig.getoption("--inventory"))).resolve()
    if "local_nodes_subnet" not in cluster.hosts[0].variables:
        pytest.skip("a fourth machine can be made here alone where machines are containers")
    # As deep as the one that it is made of: inventories name the state beside them.
    target = BUILD / "four"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    placed = yaml.safe_load((source / "hosts.yml").read_text(encoding="utf-8"))
    addresses = [host["ansible_host"] for host in placed["all"]["hosts"].values()]
    prefix, _, last = max(addresses).rpartition(".")
    placed["all"]["hosts"][FOURTH] = {"ansible_host": f"{prefix}.{int(last) + 1}"}
    for group in GROUPS:
        placed[group]["hosts"][FOURTH] = None
    (target / "hosts.yml").write_text(yaml.safe_dump(placed, sort_keys=False), encoding="utf-8")
    nodes.up(target, print)
    yield str(target)
    discard(cluster)
    again = Ansible(str(source)).playbook("site")
    shutil.rmtree(target)
    assert again.code == 0, again


def discard(cluster: Inventory) -> None:
    """Take the fourth machine away, with all that is on it."""
    client = docker.from_env()
    label = f"{cluster.hosts[0].variables['local_nodes_cluster']}-{FOURTH}"
    for container in client.containers.list(all=True, filters={"name": f"^{label}$"}):
        container.remove(force=True, v=True)


@dataclass(frozen=True)
class Fourth:
    """The cluster with the fourth host, and who works on it all the time."""

    verb: Verb
    host: Host
    machine: Machine
    namenode: NameNode
    users: Users
    name: str

    def said(self) -> dict[str, Any]:
        """What the NameNode knows of its DataNode."""
        return self.namenode.members()[FOURTH]

    def found(self) -> list[str]:
        """What is wrong, but for sizes by the number of hosts: no unit is restarted for them."""
        *findings, _ = self.verb.run("doctor").stdout.splitlines()
        # A restart that this one waits for ends every job; applications outlive that of Spark's master.
        return [line for line in findings if " unit.pending " not in line or "flink_jobmanager" in line]

    def units(self) -> set[str]:
        """Whether its units run, and whether a boot starts them."""
        names = "hdfs-datanode spark-worker trino flink-taskmanager"
        shown = self.machine.shell.run(f"systemctl is-enabled {names}; systemctl is-active {names}")
        return set(str(shown.stdout).split())


@pytest.fixture(scope="module")
def fourth(
    four: str, cluster: Inventory, machines: Machines, namenode: NameNode, trino: Trino
) -> Iterator[Fourth]:
    host = next(host for host in inventory.load(four).hosts if host.name == FOURTH)
    sockets = Path(tempfile.mkdtemp(prefix="kit-"))
    with at_work(machines[cluster.group("clients")[0].name], trino) as users:
        name = str(host.variables["lakehouse_cluster"])
        yield Fourth(Verb(four), host, Machine(host, sockets), namenode, users, name)
    shutil.rmtree(sockets, ignore_errors=True)


def address(cluster: Inventory, group: str, port: str) -> str:
    [host] = cluster.group(group)
    return f"http://{host.address}:{host.variables['lakehouse_ports'][port]}"


def get(url: str) -> Any:
    return requests.get(url, timeout=30).json()


def active_workers(cluster: Inventory) -> dict[str, int]:
    """Cores that are still free by the worker's host, as the master of Spark counts them."""
    workers = get(f"{address(cluster, 'spark_master', 'spark_master_http')}/json/")["workers"]
    return {worker["host"]: worker["coresfree"] for worker in workers if worker["state"] == "ALIVE"}


def bandwidth(machine: Machine, host: Host) -> int:
    """MiB/s that a DataNode gives to the balancer, as it says itself."""
    user, port = host.variables["lakehouse_users"]["hdfs"], host.variables["lakehouse_ports"]["datanode_ipc"]
    asked = "cd / && runuser -u %s -- hdfs dfsadmin -getBalancerBandwidth %s 2>&1"
    said = machine.run(asked, user, f"{host.name}:{port}")
    found = re.search(r"Balancer bandwidth is (\d+) bytes per second", said)
    assert found, said
    return int(found[1]) // 1024**2


def spark_executors(cluster: Inventory, client: Machine) -> str:
    """Names and addresses of the hosts of an application's tasks; it takes every core that is free."""
    settings = {
        "spark.cores.max": sum(active_workers(cluster).values()),
        # No task begins before.
        "spark.scheduler.minRegisteredResourcesRatio": 1.0,
    }
    words = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    user = client.variable("lakehouse_users")["spark"]
    return client.run(f"cd / && runuser -u %s -- spark-sql -S {words} -e %s", user, SPARK_WORK)


def flink_taskmanagers(cluster: Inventory) -> set[str]:
    """The hosts on which a job runs that takes every slot that is free."""
    rest = address(cluster, "flink_jobmanager", "flink_rest")
    flink = Flink.connect(address(cluster, "flink_jobmanager", "flink_sql_gateway"))
    try:
        flink.run("SET 'execution.runtime-mode' = 'streaming'")
        flink.run(f"SET 'parallelism.default' = '{get(f'{rest}/overview')['slots-available']}'")
        place = "default_catalog.default_database"
        flink.run(f"CREATE TEMPORARY TABLE {place}.numbers (id BIGINT) WITH ({FLINK_WORK})")
        flink.run(f"CREATE TEMPORARY TABLE {place}.nowhere (id BIGINT) WITH ('connector' = 'blackhole')")
        job = flink.submit(f"INSERT INTO {place}.nowhere SELECT id FROM {place}.numbers")
        ends = {"FINISHED", "FAILED"}
        wait_for("the job's end", lambda: get(f"{rest}/jobs/{job}")["state"] in ends, seconds=120)
    finally:
        flink.close()
    said = get(f"{rest}/jobs/{job}")
    assert said["state"] == "FINISHED", said
    parts = [get(f"{rest}/jobs/{job}/vertices/{vertex['id']}")["subtasks"] for vertex in said["vertices"]]
    # An id is host:port-letters.
    return {part["taskmanager-id"].partition(":")[0] for each in parts for part in each}


@pytest.mark.longdrill
class TestTheFourth:
    """One after the other, as an operator would."""

    def test_it_joins_while_everybody_works(
        self, fourth: Fourth, record_property: Callable[[str, object], None]
    ) -> None:
        planned, joining = changing.runbook("scale-out", node4=FOURTH)
        shown = fourth.verb.run(*planned)
        assert shown.returncode == 0, shown
        with fourth.users.writing() as written, fourth.users.asking() as asked:
            joined = fourth.verb.run(*joining, "--bandwidth", str(BANDWIDTH))
        assert joined.returncode == 0, joined
        last = fourth.verb.json("runs")["runs"][-1]
        counted = f"commits of Spark: {written.counted}; queries of Trino: {asked.counted}"
        record_property("note", f"joined in {last['seconds']:.0f} s; {counted}")
        assert not written.faults, written
        assert not asked.faults, asked
        fourth.users.assert_whole(written)
        assert fourth.found() == []
        assert (last["verb"], last["target"]) == ("scale-out", FOURTH), last

    def test_the_balancer_was_given_what_was_asked_for(self, fourth: Fourth, cluster: Inventory) -> None:
        for host in (*cluster.group("datanodes"), fourth.host):
            assert bandwidth(fourth.machine, host) == BANDWIDTH, host.name

    def test_everybody_uses_it(self, fourth: Fourth, cluster: Inventory, trino: Trino) -> None:
        assert {FOURTH, fourth.host.address} & active_workers(cluster).keys()
        nodes_of_trino = trino.sql("select http_uri from system.runtime.nodes where state = 'active'")
        assert fourth.host.address in str(nodes_of_trino)
        assert trino.value(TRINO_WORK) == trino.value("select count(*) from tpch.tiny.lineitem")
        assert trino.value(
            "select sum(completed_splits) from system.runtime.tasks"
            " join system.runtime.queries using (query_id)"
            f" where query = '{TRINO_WORK}' and node_id = '{FOURTH}'"
        )
        assert FOURTH in spark_executors(cluster, fourth.users.client)
        assert FOURTH in flink_taskmanagers(cluster)
        fourth.users.empty()
        with fourth.users.writing() as written:
            wait_for("blocks on it", lambda: int(fourth.said().get("numBlocks", 0)) > 0, seconds=120)
        fourth.users.assert_whole(written)

    def test_it_leaves_in_a_run_that_is_killed_and_resumed(self, fourth: Fourth) -> None:
        _, leaving, _ = changing.runbook("decommission", node4=FOURTH, CLUSTER=fourth.name)
        unconfirmed = fourth.verb.run(*leaving[:-2])
        assert unconfirmed.returncode == 4, unconfirmed
        fourth.users.empty()
        with fourth.users.writing() as written, fourth.users.asking() as asked:
            process = fourth.verb.started(*leaving)
            wait_for("a state", lambda: fourth.said()["adminState"] != "In Service", seconds=120)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            gone = fourth.verb.run("resume", "--confirm", fourth.name)
        assert gone.returncode == 0, gone
        assert not written.faults, written
        assert not asked.faults, asked
        fourth.users.assert_whole(written)
        assert fourth.said()["adminState"] == "Decommissioned"
        assert fourth.namenode.lacking() == 0
        assert fourth.units() == {"disabled", "inactive"}

    def test_nobody_adopts_one_that_has_left(self, fourth: Fourth) -> None:
        site = Ansible(fourth.verb.path).playbook("site")
        assert site.code != 0, site
        assert f"FAIL host.away {FOURTH}: no longer of the cluster since" in site.text, site
        [finding] = fourth.found()
        assert finding.startswith(f"WARN host.away {FOURTH}: no longer of the cluster"), finding
        restarted = fourth.verb.run("restart", "spark_worker", "--dry-run")
        assert restarted.returncode == 0, restarted
        assert FOURTH not in restarted.stdout, restarted

    def test_it_changes_its_mind(self, fourth: Fourth) -> None:
        *_, back = changing.runbook("decommission", node4=FOURTH)
        returned = fourth.verb.run(*back)
        assert returned.returncode == 0, returned
        assert fourth.units() == {"enabled", "active"}

    def test_it_goes_and_comes_in_runs_that_are_killed_at_any_moment(
        self, fourth: Fourth, record_property: Callable[[str, object], None]
    ) -> None:
        _, leaving, back = changing.runbook("decommission", node4=FOURTH, CLUSTER=fourth.name)
        goes = Kills(fourth.verb, answer=("--confirm", fourth.name))
        comes = Kills(fourth.verb)
        left, came = goes.measured(leaving), comes.measured(back)
        for share in SHARES:
            left = goes.at(share, left, leaving)
            assert fourth.said()["adminState"] == "Decommissioned"
            assert fourth.units() == {"disabled", "inactive"}
            came = comes.at(share, came, back)
            assert fourth.said()["adminState"] == "In Service"
        record_property("note", f"it goes: {goes.enough()}; it comes: {comes.enough()}")
        assert fourth.units() == {"enabled", "active"}

    def test_one_that_answers_is_not_given_up(self, fourth: Fourth) -> None:
        _, giving_up, _ = changing.runbook("dead-host", node4=FOURTH, CLUSTER=fourth.name)
        refused = fourth.verb.run(*giving_up)
        assert refused.returncode == 3, refused
        assert (
            f"refused; {FOURTH} answers; next: .venv/bin/lakehouse decommission {FOURTH} " in refused.stdout
        )
        # Whoever has lost the way to it asks HDFS, which has not. The connection that is open stays so.
        with changing.stopped(fourth.machine, "ssh"):
            refused = fourth.verb.run(*giving_up)
        assert refused.returncode == 3, refused
        assert "refused; HDFS counts its DataNode as live: heard of " in refused.stdout, refused
        assert fourth.said()["adminState"] == "In Service"

    def test_one_that_has_died_is_given_up(self, fourth: Fourth) -> None:
        planned, giving_up, _ = changing.runbook("dead-host", node4=FOURTH, CLUSTER=fourth.name)
        kill(fourth.host)
        wait_for("HDFS gives it up", lambda: "usedSpace" not in fourth.said(), seconds=120)
        asked = fourth.verb.run("decommission", FOURTH)
        assert asked.returncode == 3, asked
        assert f".venv/bin/lakehouse decommission {FOURTH} --offline -i " in asked.stdout.splitlines()[-1]
        shown = fourth.verb.run(*planned)
        assert shown.returncode == 0, shown
        gone = fourth.verb.run(*giving_up)
        assert gone.returncode == 0, gone
        assert "every block has its replicas" in gone.stdout.splitlines()[-1]
        assert fourth.said()["adminState"] == "Decommissioned"
        assert fourth.namenode.lacking() == 0

    def test_nobody_adopts_one_that_was_given_up(self, fourth: Fourth) -> None:
        [finding] = fourth.found()
        assert finding.startswith(f"WARN host.away {FOURTH}: no longer of the cluster"), finding
        assert FOURTH not in fourth.verb.run("restart", "spark_worker", "--dry-run").stdout
        nodes.up(Path(fourth.verb.path), print)
        site = Ansible(fourth.verb.path).playbook("site")
        assert site.code != 0, site
        assert f"FAIL host.away {FOURTH}: no longer of the cluster since" in site.text, site

    def test_it_is_found_again(self, fourth: Fourth) -> None:
        findings = fourth.found()
        assert [", and answers again (run " in finding for finding in findings] == [True], findings
        *_, back = changing.runbook("dead-host", node4=FOURTH)
        returned = fourth.verb.run(*back)
        assert returned.returncode == 0, returned
        assert fourth.said()["adminState"] == "In Service"
        assert fourth.found() == []

    def test_it_leaves_for_good(self, fourth: Fourth, verb: Verb) -> None:
        _, leaving, _ = changing.runbook("decommission", node4=FOURTH, CLUSTER=fourth.name)
        gone = fourth.verb.run(*leaving)
        assert gone.returncode == 0, gone
        # Whoever takes it out of the inventory has the cluster as it was before.
        site = Ansible(verb.path).playbook("site")
        assert site.code == 0, site
        healthy = verb.run("doctor")
        assert healthy.returncode == 0, healthy

    def test_a_bare_one_joins_in_time(
        self,
        fourth: Fourth,
        cluster: Inventory,
        verb: Verb,
        record_property: Callable[[str, object], None],
    ) -> None:
        """Another machine with that name. Users' work and its own share two cores here: nobody works."""
        discard(cluster)
        nodes.up(Path(fourth.verb.path), print)
        _, joining = changing.runbook("scale-out", node4=FOURTH)
        joined = fourth.verb.run(*joining)
        assert joined.returncode == 0, joined
        last = fourth.verb.json("runs")["runs"][-1]
        record_property("note", f"joined in {last['seconds']:.0f} s")
        assert last["seconds"] <= JOIN_SECONDS
        with tempfile.TemporaryDirectory(prefix="kit-") as sockets:
            self.test_it_leaves_for_good(replace(fourth, machine=Machine(fourth.host, Path(sockets))), verb)

    def test_a_bare_one_joins_in_a_run_that_is_killed_at_any_moment(
        self,
        fourth: Fourth,
        cluster: Inventory,
        verb: Verb,
        record_property: Callable[[str, object], None],
    ) -> None:
        """Each time another machine with that name; none has been of the cluster.

        One takes minutes: each run and those that go on with it are killed, and only then completed.
        """
        _, joining = changing.runbook("scale-out", node4=FOURTH)
        tries, seconds = Kills(fourth.verb), 0.0
        for share in (None, *BARE_SHARES):
            discard(cluster)
            nodes.up(Path(fourth.verb.path), print)
            seconds = (
                tries.measured(joining) if share is None else tries.at(share, seconds, joining, BARE_TIMES)
            )
            assert fourth.said()["adminState"] == "In Service"
            with tempfile.TemporaryDirectory(prefix="kit-") as sockets:
                joined = replace(fourth, machine=Machine(fourth.host, Path(sockets)))
                assert joined.units() == {"enabled", "active"}
                assert joined.found() == []
                self.test_it_leaves_for_good(joined, verb)
        record_property("note", tries.enough())
