"""`lakehouse catalog serve`: engines read files that were deleted since the commit out of its snapshot."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from lakehouse.catalog import snapshots
from lakehouse.metastore import Metastore, Options
from lakehouse.model.inventory import Inventory
from plugins.module_utils.lakehouse.webhdfs import WebHdfs
from suites.testbed.engines import EngineError
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.trino import Trino
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, Machines
from tests.cluster.test_catalog_serve import _spark as spark_in
from tests.cluster.test_catalog_serve import served
from tests.cluster.test_catalog_undo import spark

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]


@pytest.fixture
def uri(cluster: Inventory) -> str:
    found = str(cluster.hosts[0].variables["lakehouse_past_catalog"])
    if not found:
        pytest.skip("this inventory names no served commit")
    return found


@pytest.fixture
def client(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group("clients")[0].name]


@contextmanager
def served_commit(verb: Verb, commit: str, uri: str, hdfs: WebHdfs, root: str) -> Iterator[None]:
    """Serve a commit of the cluster's own history; nothing of the server is in HDFS afterwards."""
    before = sessions(hdfs, root)
    with served(verb, commit, (), uri):
        yield
    assert sessions(hdfs, root) <= before


def sessions(hdfs: WebHdfs, root: str) -> set[str]:
    return set(hdfs.names(f"{root}-served"))


def past_rows(client: Machine, uri: str, *statements: str) -> list[str]:
    """Return the lines of statements in a session of Spark that has the served metastore."""
    done = spark_in(
        client, "--conf", f"spark.hadoop.hive.metastore.uris={uri}", statement="; ".join(statements)
    )
    assert done.returncode == 0, done
    return str(done.stdout).split()


def test_dropped_tables_of_each_format_are_read(  # noqa: PLR0913, PLR0917 -- fixtures
    cluster: Inventory,
    verb: Verb,
    trino: Trino,
    schema: str,
    uri: str,
    client: Machine,
    hdfs: WebHdfs,
    root: str,
) -> None:
    spark(
        verb,
        f"CREATE TABLE {schema}.log USING delta PARTITIONED BY (part) AS"
        " SELECT id, id % 3 AS part FROM range(90)",
        f"DELETE FROM {schema}.log WHERE id = 7",
        f"CREATE TABLE {schema}.rows STORED AS PARQUET AS SELECT id FROM range(50)",
    )
    trino.sql(
        f"create table hive.{schema}.days with (partitioned_by = array['regionkey'], format = 'PARQUET')"
        " as select name, regionkey from tpch.tiny.nation"
    )
    trino.sql(
        f"create table iceberg.{schema}.ice with (partitioning = array['regionkey']) as"
        " select * from tpch.tiny.nation"
    )
    trino.sql(f"insert into iceberg.{schema}.ice select * from tpch.tiny.nation")
    trino.sql(f"analyze iceberg.{schema}.ice")
    trino.sql(f"create table iceberg.{schema}.empty (a integer)")
    catalogs = {"log": "delta", "rows": "hive", "days": "hive", "ice": "iceberg", "empty": "iceberg"}
    query = "select * from {}.{}.{}"
    before = {
        name: sorted(trino.sql(query.format(catalog, schema, name))) for name, catalog in catalogs.items()
    }
    commit = verb.committed()
    # Rows of later are in no folder that is served.
    trino.sql(f"insert into hive.{schema}.days values ('later', 0)")
    spark(verb, f"INSERT INTO {schema}.log VALUES (1000, 1)")
    try:
        with served_commit(verb, commit, uri, hdfs, root):
            assert len(trino.sql(query.format("hive_past", schema, "days"))) == 25
            spark(verb, f"DROP TABLE {schema}.log", f"DROP TABLE {schema}.rows")
            for name in ("days", "ice", "empty"):
                trino.sql(f"drop table {catalogs[name]}.{schema}.{name}")
            after = {
                name: sorted(trino.sql(query.format(f"{catalog}_past", schema, name)))
                for name, catalog in catalogs.items()
            }
            assert after == before
            assert trino.value(f"select count(*) from hive_past.{schema}.days where regionkey = 1") == 5
            assert past_rows(
                client,
                uri,
                f"select count(*) from {schema}.log",
                f"select sum(id) from {schema}.rows",
                f"select count(*) from {schema}.days where regionkey = 1",
                f"select count(*) from iceberg_past.{schema}.ice where regionkey = 1",
            ) == ["89", "1225", "5", "10"]
            assert python_rows(client, uri, f"{schema}.ice") == 10
            assert flink_count(cluster, uri, f"{schema}.ice WHERE regionkey = 1") == 10
            with Metastore(uri, Options(user="nobody")) as metastore:
                copy = metastore.call("get_table", schema, "ice").parameters["metadata_location"]
            assert f"{root}-served/" in copy
            protected(hdfs, root, copy)
    finally:
        trino.sql(f"drop table if exists hive.{schema}.days")


def python_rows(client: Machine, uri: str, table: str) -> int:
    """Return what PyIceberg counts of a table, as the Python clients of a node read it."""
    program = "; ".join(
        (
            "import lakehouse_clients",
            "from pyiceberg.catalog.hive import HiveCatalog",
            "lakehouse_clients.connect()",
            "files = {'py-io-impl': 'lakehouse_clients.file_io.HdfsFileIO'}",
            f"past = HiveCatalog('past', uri='{uri}', **files)",
            f"print(past.load_table('{table}').scan(row_filter='regionkey = 1').to_arrow().num_rows)",
        )
    )
    person = client.variable("lakehouse_users")["spark"]
    return int(client.run("runuser -u %s -- lakehouse-python -c %s", person, program).split()[-1])


def flink_count(cluster: Inventory, uri: str, table: str) -> int:
    """Return how many rows Flink counts of a table, in a catalog of the served metastore."""
    [host] = cluster.group("flink_jobmanager")
    address = f"http://{host.address}:{host.variables['lakehouse_ports']['flink_sql_gateway']}"
    conf = f"{host.variables['lakehouse_config_dir']}/hadoop"
    # A catalog is one of all sessions.
    name = f"past_{secrets.token_hex(4)}"
    with closing(Flink.connect(address)) as flink:
        flink.run(
            f"CREATE CATALOG {name} WITH ('type' = 'iceberg', 'catalog-type' = 'hive',"
            f" 'cache-enabled' = 'false', 'uri' = '{uri}', 'hadoop-conf-dir' = '{conf}')"
        )
        try:
            [[count]] = flink.run(f"SELECT count(*) FROM {name}.{table}")
        finally:
            flink.run(f"DROP CATALOG {name}")
    return int(count)


def protected(hdfs: WebHdfs, root: str, copy: str) -> None:
    """Expect of a copy and each folder above it its original's owner, group and mode, without writing."""
    path = f"/{copy.partition('://')[2].partition('/')[2]}"
    _, snapshot, below = path.removeprefix(f"{root}-served/").split("/", 2)
    own, words = path.removesuffix(f"/{below}"), below.split("/")
    pairs = [(own, root)] + [
        (f"{own}/{part}", f"{root}/.snapshot/{snapshot}/{part}")
        for part in ("/".join(words[:count]) for count in range(1, len(words) + 1))
    ]
    for copied, original in pairs:
        there, before = hdfs.status(copied), hdfs.status(original)
        assert there
        assert before
        assert (there["owner"], there["group"]) == (before["owner"], before["group"]), copied
        assert int(there["permission"], 8) == int(before["permission"], 8) & 0o555, copied


def test_a_state_that_has_expired_is_read(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb, trino: Trino, schema: str, uri: str, client: Machine, hdfs: WebHdfs, root: str
) -> None:
    """The table lives: Iceberg's expire_snapshots and Delta's VACUUM have deleted files of then."""
    spark(
        verb,
        f"CREATE TABLE iceberg.{schema}.ice USING iceberg AS SELECT id FROM range(100)",
        f"CREATE TABLE {schema}.log USING delta AS SELECT id FROM range(100)",
    )
    commit = verb.committed()
    spark(
        verb,
        f"INSERT OVERWRITE iceberg.{schema}.ice SELECT id FROM range(3)",
        f"CALL iceberg.system.expire_snapshots(table => '{schema}.ice',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)",
        f"DELETE FROM {schema}.log WHERE id > 2",
        "SET spark.databricks.delta.retentionDurationCheck.enabled = false",
        f"VACUUM {schema}.log RETAIN 0 HOURS",
    )
    try:
        with served_commit(verb, commit, uri, hdfs, root):
            assert trino.value(f"select count(*) from iceberg_past.{schema}.ice") == 100
            assert trino.value(f"select count(*) from delta_past.{schema}.log") == 100
            assert past_rows(
                client,
                uri,
                f"select count(*) from {schema}.log",
                f"select count(*) from iceberg_past.{schema}.ice",
            ) == ["100", "100"]
        assert trino.value(f"select count(*) from iceberg.{schema}.ice") == 3
        assert trino.value(f"select count(*) from delta.{schema}.log") == 3
    finally:
        spark(verb, f"DROP TABLE {schema}.log")


def test_what_cannot_be_read_is_one_line_and_the_others_are_served(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb, trino: Trino, schema: str, uri: str, hdfs: WebHdfs, root: str
) -> None:
    trino.sql(f"create table iceberg.{schema}.deletes as select * from tpch.tiny.nation")
    trino.sql(f"delete from iceberg.{schema}.deletes where nationkey = 3")
    trino.sql(f"create table iceberg.{schema}.ice as select 1 a")
    trino.sql(f"create table hive.{schema}.rows as select 1 a")
    trino.sql(f"create table hive.{schema}.lives as select 1 a")
    commit = verb.committed()
    with served_commit(verb, commit, uri, hdfs, root):
        # As long as its files are there, its deletes hold.
        assert trino.value(f"select count(*) from iceberg_past.{schema}.deletes") == 24
        for name in ("iceberg.{}.deletes", "iceberg.{}.ice", "hive.{}.rows"):
            trino.sql(f"drop table {name.format(schema)}")
        with pytest.raises(EngineError, match="position deletes"):
            trino.sql(f"select * from iceberg_past.{schema}.deletes")
        assert trino.value(f"select a from iceberg_past.{schema}.ice") == 1
        for one in snapshots.known(hdfs.names(f"{root}/.snapshot")):
            hdfs.call("DELETE", "DELETESNAPSHOT", root, snapshotname=str(one))
        for name in ("iceberg_past.{}.ice", "hive_past.{}.rows"):
            with pytest.raises(EngineError, match="no snapshot of the history has it"):
                trino.sql(f"select * from {name.format(schema)}")
        assert trino.value(f"select a from hive_past.{schema}.lives") == 1


def test_what_a_killed_server_has_left_goes_with_its_snapshot(
    verb: Verb, uri: str, hdfs: WebHdfs, root: str
) -> None:
    left = f"{root}-served/{secrets.token_hex(4)}"
    hdfs.call("PUT", "MKDIRS", f"{left}/history-20200101T000000Z-000000000000")
    with served_commit(verb, "HEAD", uri, hdfs, root):
        assert hdfs.status(left) is None
