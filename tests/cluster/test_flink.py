"""Flink as people and programs meet it: who works for it, what a prompt shows, and what survives a crash."""

from __future__ import annotations

import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from lakehouse.model.inventory import Inventory
from suites.testbed.engines import EngineError
from suites.testbed.engines.flink import Flink
from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests.cluster import changing
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible

pytestmark = pytest.mark.cluster

UNIT, GATEWAY = "flink-taskmanager", "flink-sql-gateway"
GROUPS = {UNIT: "flink_taskmanagers", "flink-jobmanager": "flink_jobmanager", GATEWAY: "flink_jobmanager"}
REGISTERED = "Successful registration at resource manager"


class Rest:
    """The JobManager's REST interface."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:  # noqa: S310
            return json.loads(answer.read())

    def cancel(self, job: str) -> None:
        request = urllib.request.Request(f"{self.url}/jobs/{job}?mode=cancel", method="PATCH")  # noqa: S310
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310

    def stop(self, job: str) -> str:
        """End a job with a savepoint in the folder of the configuration; return where it lies."""
        request = urllib.request.Request(  # noqa: S310
            f"{self.url}/jobs/{job}/stop", data=b"{}", headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            asked = json.loads(answer.read())["request-id"]
        done = wait_for(
            "the savepoint",
            lambda: (
                (said := self.get(f"/jobs/{job}/savepoints/{asked}"))["status"]["id"] == "COMPLETED" and said
            ),
            seconds=60,
        )
        assert "location" in done["operation"], done
        return str(done["operation"]["location"])


def url(cluster: Inventory, port: str) -> str:
    jobmanagers = cluster.group("flink_jobmanager")
    if not jobmanagers:
        pytest.skip("no Flink in this inventory")
    return f"http://{jobmanagers[0].address}:{jobmanagers[0].variables['lakehouse_ports'][port]}"


@pytest.fixture(scope="module")
def rest(cluster: Inventory) -> Rest:
    return Rest(url(cluster, "flink_rest"))


@pytest.fixture
def history(cluster: Inventory) -> Rest:
    return Rest(url(cluster, "flink_history"))


@pytest.fixture
def flink(cluster: Inventory) -> Iterator[Flink]:
    """A session of its own, as every client of the gateway gets it."""
    session = Flink.connect(url(cluster, "flink_sql_gateway"))
    yield session
    session.close()


@pytest.fixture
def database(cluster: Inventory, flink: Flink) -> Iterator[str]:
    name, variables = f"flink_{secrets.token_hex(3)}", cluster.hosts[0].variables
    place = f"hdfs://{variables['lakehouse_nameservice']}{variables['lakehouse_root']}/iceberg/{name}"
    flink.run(f"CREATE DATABASE {name} WITH ('location' = '{place}')")
    yield name
    for (table,) in flink.run(f"SHOW TABLES IN {name}"):
        flink.run(f"DROP TABLE {name}.{table}")
    flink.run(f"DROP DATABASE {name}")


def test_every_taskmanager_is_registered(rest: Rest, cluster: Inventory) -> None:
    # An id is host:port-letters, with other letters for each process.
    registered = [one["id"].split(":")[0] for one in rest.get("/taskmanagers")["taskmanagers"]]
    assert sorted(registered) == sorted(host.name for host in cluster.group("flink_taskmanagers"))


def test_a_session_of_the_gateway_knows_the_lakehouse(flink: Flink, database: str) -> None:
    flink.sql(f"CREATE TABLE {database}.seen (id INT)")
    assert {("iceberg",), ("hive",)} <= {*flink.sql("SHOW CATALOGS")}
    assert flink.sql(f"SHOW TABLES IN {database}") == [("seen",)]
    assert flink.sql("SHOW TABLES") is not None


@pytest.mark.group("clients")
def test_the_sql_client_shows_tables_at_its_first_prompt(node: Machine, flink: Flink, database: str) -> None:
    flink.sql(f"CREATE TABLE {database}.seen (id INT)")
    typed = f"SHOW TABLES;\nUSE {database};\nSHOW TABLES;\nUSE CATALOG hive;\nSHOW DATABASES;\n"
    user = node.variable("lakehouse_users")["spark"]
    shown = node.run("cd / && printf %s | TERM=dumb runuser -u %s -- flink-sql 2>&1", typed, user)
    assert "[ERROR]" not in shown, shown
    assert "seen" in shown, shown
    assert "default" in shown, shown


def test_rows_are_written_and_read_back(flink: Flink, database: str) -> None:
    flink.sql(f"CREATE TABLE {database}.t (id BIGINT, name STRING)")
    flink.sql(f"INSERT INTO {database}.t VALUES (1, 'one'), (2, 'two')")
    flink.sql(f"INSERT INTO {database}.t SELECT id + 10, UPPER(name) FROM {database}.t")
    rows: list[tuple[Any, ...]] = [(1, "one"), (2, "two"), (11, "ONE"), (12, "TWO")]
    flink.expect(f"SELECT id, name FROM {database}.t ORDER BY id", rows)


def test_a_refused_statement_gives_its_reason(flink: Flink) -> None:
    flink.refuses("SELECT * FROM nowhere", "SqlValidatorException: Object 'nowhere' not found")
    with pytest.raises(EngineError, match="NumberFormatException"):
        flink.sql("SELECT CAST('a' AS INT)")


def test_a_streaming_job_keeps_its_checkpoints_savepoint_and_history_in_hdfs(  # noqa: PLR0913, PLR0917 (fixtures)
    cluster: Inventory, flink: Flink, rest: Rest, history: Rest, database: str, namenode: NameNode
) -> None:
    flink.sql(f"CREATE TABLE {database}.arrived (id BIGINT)")
    flink.run("SET 'execution.runtime-mode' = 'streaming'")
    flink.run("SET 'execution.checkpointing.interval' = '1s'")
    flink.run(
        "CREATE TEMPORARY TABLE default_catalog.default_database.numbers (id BIGINT) WITH "
        "('connector' = 'datagen', 'rows-per-second' = '20', 'fields.id.kind' = 'sequence', "
        "'fields.id.start' = '1', 'fields.id.end' = '100000')"
    )
    numbers = "default_catalog.default_database.numbers"
    job = flink.submit(f"INSERT INTO {database}.arrived SELECT id FROM {numbers}")
    try:
        done = wait_for(
            "a checkpoint",
            lambda: rest.get(f"/jobs/{job}/checkpoints")["latest"]["completed"],
            seconds=60,
        )
        variables = cluster.hosts[0].variables
        root = f"{variables['lakehouse_root']}/flink/checkpoints"
        assert done["external_path"].startswith(f"hdfs://{variables['lakehouse_nameservice']}{root}/{job}/")
        users = variables["lakehouse_users"]
        status = namenode.status(root)
        assert (status["owner"], status["group"]) == (users["flink"], variables["lakehouse_group"])
        reader = flink.fresh()
        reader.run("SET 'execution.runtime-mode' = 'batch'")
        count = f"SELECT COUNT(*) FROM {database}.arrived"
        wait_for("rows of a running job", lambda: reader.value(count), seconds=30)
        savepoint = rest.stop(job)
        wait_for("the job's end", lambda: rest.get(f"/jobs/{job}")["state"] == "FINISHED", seconds=30)
    finally:
        # A job that is over says no to it.
        with suppress(urllib.error.HTTPError):
            rest.cancel(job)
    folder = f"{variables['lakehouse_root']}/flink/savepoints"
    assert savepoint.startswith(f"hdfs://{variables['lakehouse_nameservice']}{folder}/savepoint-")
    kept = urlsplit(savepoint).path
    try:
        assert f"{kept}/_metadata" in [file.path for file in namenode.files(kept)]
        assert namenode.status(kept)["owner"] == users["flink"]
    finally:
        namenode.remove(kept)
    reader.close()
    wait_for(
        "the job in the history",
        lambda: [one for one in history.get("/jobs/overview")["jobs"] if one["jid"] == job],
        seconds=60,
        # Flink writes the list anew in its place: a reader in the midst of that finds it empty or torn.
        ignoring=(json.JSONDecodeError,),
    )
    assert history.get(f"/jobs/{job}")["state"] == "FINISHED"
    assert namenode.files(f"{variables['lakehouse_root']}/flink/history/{job}")


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        (
            {"flink_config": {"taskmanager.memory.process.size": "4g"}},
            "remove it and set flink_taskmanager_memory_mb",
        ),
        (
            {"flink_taskmanager_memory_mb": 10**6},
            "flink_taskmanager_memory_mb is 1000000, and node_memory_mb is",
        ),
        ({"flink_parallelism": 1000}, "flink_parallelism is 1000 with"),
    ],
)
def test_a_bad_setting_is_one_line_before_anything_changes(
    ansible: Ansible, variables: dict[str, Any], line: str
) -> None:
    outcome = ansible.playbook("site", "--tags", "flink", **variables)
    assert outcome.code != 0
    assert line in outcome.text, outcome
    # Warnings that the inventory has anyway are not counted.
    assert outcome.text.count("FAIL ") == 1, outcome
    assert outcome.changed == 0


@pytest.mark.drill
def test_a_killed_taskmanager_comes_back_and_registers(
    cluster: Inventory, machines: Machines, flink: Flink, database: str
) -> None:
    machine = machines[cluster.group("flink_taskmanagers")[0].name]
    flink.sql(f"CREATE TABLE {database}.before (id INT)")
    pid = "systemctl show --property=MainPID --value %s"
    killed = machine.run(pid, UNIT)
    machine.run("systemctl kill --signal=KILL %s", UNIT)
    born = wait_for(
        "another process",
        lambda: (now := machine.run(pid, UNIT)) not in ("0", killed) and now,
        seconds=60,
    )
    log = "journalctl --no-pager -o cat -u %s _PID=%s"
    wait_for("its registration", lambda: REGISTERED in machine.run(log, UNIT, born), seconds=60)
    flink.sql(f"INSERT INTO {database}.before VALUES (1), (2), (3)")
    assert flink.value(f"SELECT COUNT(*) FROM {database}.before") == 3


@pytest.mark.longdrill
@pytest.mark.drill
def test_another_parallelism_restarts_the_gateway_and_ends_no_job(
    cluster: Inventory, machines: Machines, ansible: Ansible, rest: Rest
) -> None:
    """As where a host joins: half of all slots is the default of a job."""

    def starts() -> dict[str, dict[str, str]]:
        return {unit: changing.starts(cluster, machines, unit, group) for unit, group in GROUPS.items()}

    before = starts()
    changed = ansible.playbook("site", "--tags", "flink", flink_parallelism=1)
    after = starts()
    back = ansible.playbook("site", "--tags", "flink")
    assert [changed.code, back.code] == [0, 0], (changed, back)
    assert {unit for unit in GROUPS if before[unit] != after[unit]} == {GATEWAY}
    assert "parallelism.default" not in {setting["key"] for setting in rest.get("/jobmanager/config")}
