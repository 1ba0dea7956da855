"""Two servers and settings of drivers are switched on and off again; nothing else notices."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Timer

import pytest
import requests
from pyspark.sql import SparkSession

from lakehouse import run
from lakehouse.model.inventory import Inventory
from plugins.module_utils.lakehouse import probes
from suites.testbed.waiting import wait_for
from tests.cluster.daemons import Daemon, placements, spark_defaults
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

SERVERS = ("spark-thrift", "spark-connect")
APPLICATIONS = ("thrift-server", "connect-server")
ON = ("-e", "spark_thrift_enabled=true", "-e", "spark_connect_enabled=true")
# A catalog and a setting of the scheduler more, and one less.
ADDED, REMOVED = "spark.sql.catalog.another", "spark.databricks.delta.snapshotPartitions"
CATALOG = "org.apache.iceberg.spark.SparkCatalog"
SPECULATION = "spark.speculation.interval"
OF_THRIFT = "spark.sql.shuffle.partitions"
HISTORY = "spark-history"
OF_HISTORY = "spark.history.ui.maxApplications"
# Of a master, or of executors.
SECONDS_TO_RETURN = 120
# Executors go a minute after their last task.
SECONDS_TO_BE_IDLE = 120

Processes = Mapping[str, str]


@dataclass(frozen=True)
class Switched:
    """Main processes by host and unit, before and after the switch was thrown."""

    before: Processes
    after: Processes


@pytest.fixture(scope="module")
def switched(cluster: Inventory, machines: Machines, ansible: Ansible) -> Switched:
    before = processes(cluster, machines)
    settings = {
        "spark_defaults": {ADDED: CATALOG, SPECULATION: "200ms", REMOVED: None},
        "spark_thrift_defaults": {OF_THRIFT: 7},
        "spark_history_defaults": {OF_HISTORY: 500},
    }
    outcome = ansible.playbook("site", "--tags", "spark", *ON, **settings)
    assert outcome.code == 0, outcome
    return Switched(before, processes(cluster, machines))


def processes(cluster: Inventory, machines: Machines) -> Processes:
    return {
        f"{placed.name} on {host.name}": Daemon(machines[host.name], placed).main_pid()
        for placed in placements()
        for host in cluster.group(placed.group)
    }


def restarted(switched: Switched) -> set[str]:
    return {name for name, pid in switched.after.items() if pid != switched.before[name]}


def placed(switched: Switched, *units: str) -> set[str]:
    return {name for name in switched.before if name.startswith(units)}


def states(machine: Machine) -> list[str]:
    """Of every server: whether it runs, and whether it will after a boot."""
    shown = machine.run("systemctl show --property=ActiveState,UnitFileState --value %s %s", *SERVERS)
    return shown.split()


@pytest.mark.group("clients")
@pytest.mark.usefixtures("switched")
def test_both_servers_run_and_will_after_a_boot(node: Machine) -> None:
    assert states(node) == ["active", "enabled"] * len(SERVERS)


@pytest.mark.group("clients")
@pytest.mark.usefixtures("switched")
def test_jdbc_answers(node: Machine) -> None:
    url = f"jdbc:hive2://{node.host.address}:{node.variable('lakehouse_ports')['spark_thrift']}"
    user = node.variable("lakehouse_users")["spark"]
    command = (
        "cd / && runuser -u %s -- beeline -u %s --silent=true --outputformat=csv2 --showHeader=false -e %s"
    )
    # Without a terminal beeline prints its prompt before the row.
    assert node.run(command, user, url, f"set {OF_THRIFT}").split()[-1] == f"{OF_THRIFT},7"


@pytest.mark.group("clients")
@pytest.mark.usefixtures("switched")
def test_spark_connect_answers(node: Machine) -> None:
    port = node.variable("lakehouse_ports")["spark_connect"]
    session = SparkSession.builder.remote(f"sc://{node.host.address}:{port}").create()
    try:
        assert [tuple(row) for row in session.sql("select 1").collect()] == [(1,)]
    finally:
        session.stop()


@pytest.mark.group("clients")
@pytest.mark.usefixtures("switched")
def test_the_example_of_the_page_runs(node: Machine) -> None:
    page = (run.ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    server = f"sc://{node.host.address}:{node.variable('lakehouse_ports')['spark_connect']}"
    done = subprocess.run(
        [sys.executable, "-c", re.sub(r"sc://[\d.:]+", server, example)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "EWR" in done.stdout


@pytest.mark.group("spark_master")
@pytest.mark.usefixtures("switched")
def test_idle_servers_hold_no_core(node: Machine) -> None:
    """Or nothing else could run where the two have what there is."""
    port = node.variable("lakehouse_ports")["spark_master_http"]

    def is_idle() -> bool:
        state = requests.get(f"http://{node.host.address}:{port}/json/", timeout=30).json()
        held = {app["name"]: app["cores"] for app in state["activeapps"] if app["name"] in APPLICATIONS}
        return held == dict.fromkeys(APPLICATIONS, 0)

    wait_for("two servers without executors", is_idle, seconds=SECONDS_TO_BE_IDLE)


@pytest.mark.group("clients")
@pytest.mark.usefixtures("switched")
def test_a_master_that_comes_back_knows_who_has_executors(
    node: Machine, cluster: Inventory, machines: Machines
) -> None:
    master = machines[cluster.group("spark_master")[0].name]
    ports = node.variable("lakehouse_ports")
    page = f"http://{master.host.address}:{ports['spark_master_http']}/json/"

    def is_known() -> bool:
        found = json.loads(probes.fetch(page))
        return found["status"] == "ALIVE" and "connect-server" in {app["name"] for app in found["activeapps"]}

    master.run("systemctl kill -s KILL spark-master")
    wait_for("the master, and Connect at it", is_known, seconds=SECONDS_TO_RETURN, ignoring=(OSError,))
    session = SparkSession.builder.remote(f"sc://{node.host.address}:{ports['spark_connect']}").create()
    # A query without executors waits for ever, and a thread of it would outlive the suite.
    alarm = Timer(SECONDS_TO_RETURN, session.interruptAll)
    alarm.daemon = True
    alarm.start()
    try:
        rows = session.sql("select sum(id) from range(0, 1000, 1, 4)").collect()
        assert [tuple(row) for row in rows] == [(499500,)]
    finally:
        alarm.cancel()
        session.stop()


@pytest.mark.usefixtures("switched")
def test_the_last_word_is_the_users_and_null_removes_a_key(node: Machine) -> None:
    written = spark_defaults(node)
    assert written[ADDED] == CATALOG
    assert REMOVED not in written
    assert written[OF_THRIFT] != "7"


def test_a_catalog_more_restarts_nothing_but_drivers(switched: Switched) -> None:
    others = restarted(switched) - placed(switched, HISTORY)
    assert others == placed(switched, *SERVERS)


def test_a_setting_of_the_history_server_restarts_it_alone(switched: Switched) -> None:
    others = restarted(switched) - placed(switched, *SERVERS)
    assert others == placed(switched, HISTORY)


def test_all_of_it_can_be_taken_back(cluster: Inventory, machines: Machines, ansible: Ansible) -> None:
    back = ansible.playbook("site", "--tags", "spark")
    assert back.code == 0, back
    for host in cluster.group("clients"):
        assert states(machines[host.name]) == ["inactive", "disabled"] * len(SERVERS)
    for machine in machines.values():
        written = spark_defaults(machine)
        assert ADDED not in written
        assert REMOVED in written
    again = ansible.playbook("site", "--tags", "spark")
    assert (again.code, again.changed) == (0, 0), again
