"""The tables of another cluster are this one's, too: files copied, metadata restored with `--rewrite`."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lakehouse.local.compose import dotenv, history
from lakehouse.local.compose.dotenv import Settings
from lakehouse.model.inventory import Inventory
from suites.testbed.engines.spark import Spark
from suites.testbed.engines.trino import Trino
from suites.testbed.namenode import NameNode
from suites.testbed.tables import suffix
from tests.cluster.changing import Verb
from tests.compose.conftest import another, connect, succeed

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

APART = 200
THERE = "hdfs://lakehouse/lakehouse"


class Origin(NamedTuple):
    """A small stack that runs, its file of settings, and a session with its Spark."""

    stack: Settings
    file: Path
    spark: Spark

    def get(self, folder: str) -> dict[str, bytes]:
        """Return what is in the files below a folder of its HDFS, by their places."""
        namenode = NameNode(f"http://127.0.0.1:{self.stack.values['NAMENODE_HTTP_PORT']}", "hdfs")
        paths = [file.path for file in namenode.files(folder)]
        return {
            f"hdfs://lakehouse{path}": namenode.read(path, "hdfs", lambda _: "127.0.0.1") for path in paths
        }


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    """A cluster with a metastore and an HDFS of its own, of which nothing is left."""
    file = another(tmp_path_factory.mktemp("origin"), "kit-test-origin", APART, COMPOSE_PROFILES="core")
    stack = dotenv.load(file, environment={})
    try:
        succeed("compose", "up", "--env-file", str(file))
        spark = connect(stack)
        yield Origin(stack, file, spark)
        spark.session.stop()
    finally:
        succeed("compose", "down", "--volumes", "--env-file", str(file))
        shutil.rmtree(stack.state, ignore_errors=True)


@pytest.fixture(scope="module")
def database(origin: Origin, verb: Verb) -> Iterator[str]:
    """A database of the origin with a table of each format and a view; what is here of it goes at the end."""
    name = f"moved_{suffix()}"
    for statement in (
        f"CREATE DATABASE {name} LOCATION '{THERE}/hive/tables/{name}'",
        f"CREATE TABLE {name}.days (n INT, ds STRING) USING parquet PARTITIONED BY (ds)",
        f"INSERT INTO {name}.days VALUES (1, '1'), (2, '2')",
        f"CREATE TABLE {name}.bills USING delta AS SELECT 3 AS n",
        f"CREATE TABLE iceberg.{name}.birds USING iceberg AS SELECT 5 AS n",
        f"INSERT INTO iceberg.{name}.birds VALUES (6)",
        f"CREATE VIEW {name}.late AS SELECT n FROM {name}.days WHERE ds > '1'",
    ):
        origin.spark.sql(statement)
    succeed("catalog", "commit", "--target", "compose", "--env-file", str(origin.file))
    yield name
    sql(verb, f"DROP DATABASE IF EXISTS {name} CASCADE")


@pytest.fixture(scope="module")
def store(origin: Origin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the origin's history."""
    copy = tmp_path_factory.mktemp("copy") / history.STORE
    command = ["git", "clone", "--quiet", "--mirror", str(origin.stack.state / history.STORE), str(copy)]
    subprocess.run(command, check=True)
    return copy


@pytest.fixture(scope="module")
def moved(
    origin: Origin, database: str, store: Path, cluster: Inventory, namenode: NameNode
) -> Iterator[tuple[str, ...]]:
    """The words for files that are here now; those in which Iceberg names others are rewritten."""
    host = cluster.hosts[0]
    root, owner = host.variables["lakehouse_root"], host.variables["lakehouse_users"]["spark"]
    service = f"hdfs://{host.variables['lakehouse_nameservice']}"
    [(_, listing, *_)] = origin.spark.sql(
        f"CALL iceberg.system.rewrite_table_path(table => '{database}.birds',"
        f" source_prefix => '{THERE}', target_prefix => '{service}{root}')"
    )
    got = origin.get(f"/lakehouse/hive/tables/{database}")
    listed = b"".join(got[place] for place in sorted(got) if place.startswith(str(listing)))
    birds = dict(csv.reader(listed.decode().splitlines()))
    others = {
        place: place.replace(THERE, f"{service}{root}", 1)
        for place in got
        if f"/{database}/birds" not in place
    }
    addresses = {one.name: one.address for one in cluster.hosts}
    for place, target in {**others, **birds}.items():
        path = target.removeprefix(service)
        namenode.create(path, owner, addresses.__getitem__, body=iter([got[place]]))
    yield "--store", str(store), "--rewrite", f"{THERE}={service}{root}"
    namenode.remove(f"{root}/hive/tables/{database}")


def sql(verb: Verb, statement: str) -> list[str]:
    """Return the values of an answer of the cluster's Spark, without its heading."""
    said = verb.run("sql", "--engine", "spark", "--csv", statement)
    assert said.returncode == 0, said
    return said.stdout.splitlines()[1:]


def test_both_engines_read_and_write_what_was_moved(
    verb: Verb, origin: Origin, moved: tuple[str, ...], database: str, trino: Trino
) -> None:
    words = ("catalog", "restore", "HEAD", database, *moved, "--yes")
    written = verb.json(*words)
    tables = ("days", "days/ds=1", "days/ds=2", "bills", "birds", "late")
    assert {one["name"] for one in written["plan"]} == {
        f"hive.{database}", *(f"hive.{database}.{table}" for table in tables)
    }  # fmt: skip
    assert trino.sql(f"SELECT n FROM hive.{database}.days ORDER BY n") == [(1,), (2,)]
    assert trino.sql(f"TABLE delta.{database}.bills") == [(3,)]
    assert trino.sql(f"SELECT n FROM iceberg.{database}.birds ORDER BY n") == [(5,), (6,)]
    assert sql(verb, f"TABLE {database}.late") == ["2"]

    for table in (f"{database}.bills", f"iceberg.{database}.birds"):
        sql(verb, f"INSERT INTO {table} VALUES (7)")
        assert origin.spark.sql(f"SELECT * FROM {table} WHERE n = 7") == []
    assert trino.value(f"SELECT sum(n) FROM iceberg.{database}.birds") == 18
    assert trino.value(f"SELECT sum(n) FROM delta.{database}.bills") == 10
    assert verb.json(*words)["facts"] == ["there is nothing to do"]


@pytest.mark.usefixtures("moved")
def test_the_history_of_the_other_cluster_gets_no_commit_of_this_one(verb: Verb, store: Path) -> None:
    commits = verb.json("catalog", "log", "--store", str(store))["commits"]
    assert [one["message"].splitlines()[0] for one in commits] == ["the first commit"]
