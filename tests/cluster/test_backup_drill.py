"""The drill: the metastore's database and the NameNode's directory are destroyed; every table comes back."""

from __future__ import annotations

import re
import secrets
import signal
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from lakehouse.inventory import Inventory
from testbed.engines.trino import Trino
from tests.cluster.changing import Verb
from tests.cluster.looking import look
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

BACKUP_SECONDS = 180
# What docs/operations/restore.md promises, and the verification of the backup before it.
RESTORE_SECONDS = 300
DOCTOR_SECONDS = 30


@pytest.fixture(scope="module")
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


@pytest.fixture
def trino(cluster: Inventory) -> Trino:
    if not cluster.group("trino_coordinator"):
        pytest.skip("this cluster has no Trino")
    host = cluster.group("trino_coordinator")[0]
    url = f"http://{host.address}:{host.variables['lakehouse_ports']['trino_http']}"
    return Trino.connect(url, host.variables["lakehouse_users"]["trino"])


@pytest.fixture
def schema(trino: Trino) -> Iterator[str]:
    name = f"drill_{secrets.token_hex(4)}"
    trino.sql(f"CREATE SCHEMA iceberg.{name}")
    yield name
    trino.sql(f"DROP SCHEMA IF EXISTS iceberg.{name} CASCADE")


def destroy(database: Machine, namenode: Machine, unit: str) -> None:
    database.run("systemctl stop hive-metastore; systemctl kill -s KILL %s; systemctl stop %s", unit, unit)
    data = f"{database.variable('lakehouse_data_dir')}/postgresql/{unit.partition('@')[2].replace('-', '/')}"
    database.run("rm -rf %s", data)
    namenode.run("systemctl kill -s KILL hdfs-namenode; systemctl stop hdfs-namenode")
    for folder in namenode.variable("lakehouse_namenode_dirs"):
        namenode.run("rm -rf %s", f"{folder}/current")


def backed_up(path: str) -> str:
    made = look("backup", path, seconds=BACKUP_SECONDS)
    assert made.code == 0, made.out + made.err
    return made.out.splitlines()[-1].partition("done; ")[2].partition(",")[0]


def restore(path: str, name: str, cluster: Inventory, *options: str) -> str:
    word = str(cluster.hosts[0].variables["lakehouse_cluster"])
    said = look("restore", path, name, "--confirm", word, *options, seconds=RESTORE_SECONDS)
    assert said.code == 0, said.out + said.err
    return said.out.splitlines()[-1]


def test_every_table_comes_back_after_the_loss_of_catalog_and_namenode(
    path: str, cluster: Inventory, machines: Machines, trino: Trino, schema: str
) -> None:
    table = f"iceberg.{schema}.kept"
    trino.sql(f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (id, word)")
    name = backed_up(path)
    trino.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    trino.sql(f"CREATE TABLE iceberg.{schema}.later AS SELECT 1 AS id")
    database = machines[cluster.group("postgresql")[0].name]
    unit = database.run("systemctl list-units --plain --no-legend 'postgresql@*' | cut -d ' ' -f 1")
    destroy(database, machines[cluster.group("namenode")[0].name], unit.removesuffix(".service"))

    last = restore(path, name, cluster)

    assert last.startswith(f"restore {name}: done; ")
    assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "a"), (2, "b")]
    assert trino.sql(f"SHOW TABLES FROM iceberg.{schema}") == [("kept",)]
    # Into the cluster that runs, what was written later is not lost, and what is as it was stays.
    trino.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    again = restore(path, name, cluster)
    assert f"restore {name}: done; 0 files written, " in again
    assert " set aside in /user/" in again
    assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "a"), (2, "b")]
    doctor = look("doctor", path, seconds=DOCTOR_SECONDS)
    assert doctor.code == 0, doctor.out


@pytest.mark.parametrize("step", ["PostgreSQL", "files"])
def test_a_restore_that_was_interrupted_is_completed(
    path: str, cluster: Inventory, trino: Trino, schema: str, step: str
) -> None:
    table, verb = f"iceberg.{schema}.kept", Verb(path)
    trino.sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS word")
    name = backed_up(path)
    trino.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    with verb.started(
        "restore", name, "--confirm", str(cluster.hosts[0].variables["lakehouse_cluster"])
    ) as process:
        assert process.stderr
        for line in process.stderr:
            if line.rstrip().endswith(f" {step}"):
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=RESTORE_SECONDS)
    assert process.returncode == 130, out
    run = re.search(r"lakehouse resume (r\d+)", out)
    assert run, out
    done = verb.run("resume", run[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert trino.sql(f"SELECT * FROM {table}") == [(1, "a")]
    doctor = look("doctor", path, seconds=DOCTOR_SECONDS)
    assert doctor.code == 0, doctor.out


def test_the_catalog_goes_to_a_point_in_time(
    path: str, cluster: Inventory, trino: Trino, schema: str
) -> None:
    table = f"iceberg.{schema}.kept"
    trino.sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS word")
    name = backed_up(path)
    trino.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    moment = datetime.now(UTC).isoformat()
    trino.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    restore(path, name, cluster, "--to", moment)
    assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "a"), (2, "b")]
