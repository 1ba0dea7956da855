"""The drill: the metastore's database and the NameNode's directory are destroyed; every table comes back."""

from __future__ import annotations

import re
import signal
from datetime import UTC, datetime

import pytest

from lakehouse.model.inventory import Inventory
from suites.testbed.engines.trino import Trino
from tests.cluster.changing import Verb, line_with, unit_of
from tests.cluster.machines import Machine, Machines
from tests.cluster.restoring import RESTORE_SECONDS, backed_up, check_well, restore

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]


@pytest.fixture(scope="module")
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


def destroy(database: Machine, namenode: Machine, unit: str) -> None:
    database.run("systemctl stop hive-metastore; systemctl kill -s KILL %s; systemctl stop %s", unit, unit)
    data = f"{database.variable('lakehouse_data_dir')}/postgresql/{unit.partition('@')[2].replace('-', '/')}"
    database.run("rm -rf %s", data)
    namenode.run("systemctl kill -s KILL hdfs-namenode; systemctl stop hdfs-namenode")
    for folder in namenode.variable("lakehouse_namenode_dirs"):
        namenode.run("rm -rf %s", f"{folder}/current")


def test_every_table_comes_back_after_the_loss_of_catalog_and_namenode(
    path: str, cluster: Inventory, machines: Machines, trino: Trino, iceberg_schema: str
) -> None:
    table = f"iceberg.{iceberg_schema}.kept"
    trino.sql(f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (id, word)")
    name = backed_up(path)
    trino.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    trino.sql(f"CREATE TABLE iceberg.{iceberg_schema}.later AS SELECT 1 AS id")
    database = machines[cluster.group("postgresql")[0].name]
    unit = unit_of(database, "postgresql@*")
    destroy(database, machines[cluster.group("namenode")[0].name], unit.removesuffix(".service"))

    last = restore(path, name, cluster)

    assert last.startswith(f"restore {name}: done; ")
    assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "a"), (2, "b")]
    assert trino.sql(f"SHOW TABLES FROM iceberg.{iceberg_schema}") == [("kept",)]
    # Into the cluster that runs, what was written later is not lost, and what is as it was stays.
    trino.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    again = restore(path, name, cluster)
    assert f"restore {name}: done; 0 files written, " in again
    assert " set aside in /user/" in again
    assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "a"), (2, "b")]
    check_well(path)


@pytest.mark.parametrize("step", ["PostgreSQL", "files"])
def test_a_restore_that_was_interrupted_is_completed(
    path: str, cluster: Inventory, trino: Trino, iceberg_schema: str, step: str
) -> None:
    table, verb = f"iceberg.{iceberg_schema}.kept", Verb(path)
    trino.sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS word")
    name = backed_up(path)
    trino.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    with verb.started(
        "restore", name, "--confirm", str(cluster.hosts[0].variables["lakehouse_cluster"])
    ) as process:
        line_with(f" {step}\n", process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=RESTORE_SECONDS)
    assert process.returncode == 130, out
    run = re.search(r"lakehouse resume (r\d+)", out)
    assert run, out
    done = verb.run("resume", run[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert trino.sql(f"SELECT * FROM {table}") == [(1, "a")]
    check_well(path)


def test_the_catalog_goes_to_a_point_in_time(
    path: str, cluster: Inventory, trino: Trino, iceberg_schema: str
) -> None:
    table = f"iceberg.{iceberg_schema}.kept"
    trino.sql(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS word")
    name = backed_up(path)
    trino.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    moment = datetime.now(UTC).isoformat()
    trino.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    restore(path, name, cluster, "--to", moment)
    assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "a"), (2, "b")]
