"""`lakehouse catalog serve`: Spark and Trino, as they are, read what was dropped since the commit."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from lakehouse.clients import MetastoreSession
from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from suites.testbed.engines import EngineError
from suites.testbed.engines.trino import Trino
from tests.cluster.changing import Verb, stopped
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone]


@dataclass(frozen=True)
class Past:
    """A commit that is served: its address, and the database of which the live metastore has no table."""

    uri: str
    database: str


@contextmanager
def served(verb: Verb, commit: str, store: tuple[str, ...], uri: str) -> Iterator[None]:
    place = urlsplit(uri)
    where = ["--address", str(place.hostname), "--port", str(place.port)]
    with verb.started("catalog", "serve", commit, *store, *where, "--json") as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, process.communicate()
            assert json.loads(said)["uri"] == uri
            yield
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture(scope="module")
def past(
    verb: Verb, cluster: Inventory, trino: Trino, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Past]:
    """An Iceberg table with a row of then, and a Hive table: the live catalog knows neither any more."""
    variables = cluster.hosts[0].variables
    uri = str(variables["lakehouse_past_catalog"])
    if not uri:
        pytest.skip("this inventory names no served commit")
    store = "--store", str(tmp_path_factory.mktemp("past") / "catalog.git")
    database = f"kit_past_{secrets.token_hex(4)}"
    place = f"hdfs://{variables['lakehouse_nameservice']}{variables['lakehouse_root']}/hive/tables/{database}"
    trino.sql(f"create schema hive.{database} with (location = '{place}')")
    trino.sql(f"create table iceberg.{database}.ice as select 1 a")
    trino.sql(
        f"create table hive.{database}.days with (partitioned_by = array['ds'], format = 'PARQUET') as"
        " select n a, cast(n as varchar) ds from unnest(sequence(1, 3)) as t (n)"
    )
    commit = verb.committed(*store)
    trino.sql(f"insert into iceberg.{database}.ice values 2")
    listing = f'select "$path" from hive.{database}.days order by 1'
    files = trino.sql(listing)
    with MetastoreSession(placement.read(cluster)) as metastore:
        for table in ("ice", "days"):
            metastore.call("drop_table", database, table, False)
        with served(verb, commit, store, uri):
            yield Past(uri, database)
        # What is forgotten would never be removed.
        restored = verb.run("catalog", "restore", commit, database, *store, "--yes")
        assert restored.returncode == 0, restored
        assert trino.sql(listing) == files
        for name in (f"iceberg.{database}.ice", f"hive.{database}.days"):
            trino.sql(f"drop table {name}")
        trino.sql(f"drop schema hive.{database}")


def test_trino_reads_dropped_tables_with_their_rows_of_then(trino: Trino, past: Past) -> None:
    assert trino.sql(f"show tables from iceberg.{past.database}") == []
    assert sorted(trino.sql(f"show tables from hive_past.{past.database}")) == [("days",), ("ice",)]
    assert trino.sql(f"select * from iceberg_past.{past.database}.ice") == [(1,)]
    assert trino.value(f"select sum(a) from hive_past.{past.database}.days where ds > '1'") == 5
    # From one catalog of the past to another.
    assert trino.sql(f"select * from hive_past.{past.database}.ice") == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into iceberg_past.{0}.ice values 3",
        "drop table iceberg_past.{0}.ice",
        "insert into hive_past.{0}.days values (4, '4')",
        "drop table hive_past.{0}.days",
        "create table hive_past.{0}.new (a integer)",
        "drop schema hive_past.{0}",
    ],
)
def test_trino_changes_nothing(trino: Trino, past: Past, statement: str) -> None:
    with pytest.raises(EngineError) as refused:
        trino.sql(statement.format(past.database))
    assert len(refused.value.message.splitlines()) == 1, refused.value.message


@pytest.fixture(scope="module")
def client(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group("clients")[0].name]


def _spark(client: Machine, *options: str, statement: str) -> subprocess.CompletedProcess[str]:
    user = client.variable("lakehouse_users")["spark"]
    words = [
        "runuser",
        "-u",
        user,
        "--",
        "spark-sql",
        "-S",
        "--master",
        "local[1]",
        *options,
        "-e",
        statement,
    ]
    done = client.shell.run(" ".join(["%s"] * len(words)), *words)
    return subprocess.CompletedProcess(words, done.rc, done.stdout, done.stderr)


def test_spark_reads_a_dropped_table_through_its_catalog_of_the_past(client: Machine, past: Past) -> None:
    done = _spark(client, statement=f"select * from iceberg_past.{past.database}.ice")
    assert (done.returncode, done.stdout.split()) == (0, ["1"]), done


@pytest.mark.longdrill
def test_a_session_of_spark_in_the_past_reads_and_is_refused(client: Machine, past: Past) -> None:
    session = ("--conf", f"spark.hadoop.hive.metastore.uris={past.uri}")
    statements = f"show tables in {past.database}; select sum(a) from {past.database}.days"
    done = _spark(client, *session, statement=statements)
    assert done.returncode == 0, done
    assert {"days", "ice"} <= set(done.stdout.split()), done
    assert done.stdout.split()[-1] == "6", done
    refused = _spark(client, *session, statement=f"drop table {past.database}.days")
    assert refused.returncode != 0, refused
    assert "read-only; drop_table" in refused.stdout + refused.stderr, refused


@pytest.fixture
def keeper(cluster: Inventory, machines: Machines) -> Iterator[Machine]:
    """The host of the cluster's own history, without its clock for the time of a test."""
    host = machines[cluster.group("postgresql")[0].name]
    with stopped(host, "lakehouse-catalog.timer"):
        yield host


def test_the_service_of_the_cluster_follows_the_last_commit(
    verb: Verb, keeper: Machine, client: Machine, trino: Trino, schema: str
) -> None:
    uri = f"thrift://{keeper.host.address}:{keeper.variable('lakehouse_ports')['catalog_past']}"
    session = ("--conf", f"spark.hadoop.hive.metastore.uris={uri}")
    trino.sql(f"create table hive.{schema}.days as select 41 a")
    verb.committed()
    trino.sql(f"drop table hive.{schema}.days")
    then = _spark(client, *session, statement=f"show tables in {schema}; select a from {schema}.days")
    assert then.returncode == 0, then
    assert "days" in then.stdout, then
    assert then.stdout.split()[-1] == "41", then
    verb.committed()
    now = _spark(client, *session, statement=f"show tables in {schema}")
    assert now.returncode == 0, now
    assert "days" not in now.stdout, now
