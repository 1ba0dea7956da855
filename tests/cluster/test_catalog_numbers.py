"""What the catalog's history promises in seconds: a database with 500 partitions, a list of 1,000 tables."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable, Iterator

import pytest
from hive_metastore.ttypes import Partition

from lakehouse.catalog.shared_files import SHARED
from lakehouse.cluster_catalog.sync import PROGRAM
from lakehouse.metastore import Metastore
from lakehouse.model.inventory import Inventory
from suites.testbed.engines.trino import Trino
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, Machines
from tests.cluster.test_catalog_serve import served

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

Record = Callable[[str, object], None]
PARTITIONS, TABLES = 500, 1_000
RESTORE_SECONDS, MORE_SECONDS = 60.0, 2.0
# A tenth of what a commit of 10,000 tables and 200,000 partitions takes after a change (test_catalog_scale).
SNAPSHOT_SECONDS = 0.25
MANY_PARTITIONS, TURNS = 5_000, 5
# The metastore works on the DROP of so many for longer than Trino waits of itself, which is 10 s. Of twice as
# many it took 52 s here, beside other load; a client waits 60 s.
DROPPED_PARTITIONS = 10_000
# Once for the first answer of a session, and once for the seconds.
ASKS = """
import sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for _ in range(2):
    began = time.monotonic()
    found = len(spark.sql(f"show tables in {sys.argv[1]}").collect())
print("FOUND", found, time.monotonic() - began)
"""


@pytest.fixture
def days(trino: Trino, schema: str) -> Iterator[str]:
    """A Hive table with one partition, in a database of its own."""
    trino.sql(
        f"create table hive.{schema}.days with (partitioned_by = array['ds'], format = 'PARQUET') as"
        " select 1 a, 'first' ds"
    )
    yield f"{schema}.days"
    trino.sql(f"drop table if exists hive.{schema}.days")


def add_partitions(metastore: Metastore, days: str, numbers: range) -> None:
    database, table = days.split(".")
    [first] = metastore.partitions(database, table, ["ds=first"])
    for start in range(0, len(numbers), PARTITIONS):
        made: list[Partition] = []
        for number in numbers[start : start + PARTITIONS]:
            one = copy.deepcopy(first)
            one.values, one.sd.location = [str(number)], f"{first.sd.location[: -len('first')]}{number}"
            made.append(one)
        metastore.call("add_partitions", made)


def test_a_database_with_many_partitions_is_restored_within_a_minute(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb, store: tuple[str, str], metastore: Metastore, trino: Trino, days: str, record_property: Record
) -> None:
    database, table = days.split(".")
    add_partitions(metastore, days, range(PARTITIONS - 1))
    commit = verb.committed(*store)
    metastore.call("drop_table", database, table, False)
    metastore.call("drop_database", database, False, False)
    began = time.monotonic()
    done = verb.json("catalog", "restore", commit, database, *store, "--yes")
    seconds = time.monotonic() - began
    assert len(done["plan"]) == PARTITIONS + 2
    record_property("note", f"{PARTITIONS} partitions in {seconds:.1f} s")
    assert seconds <= RESTORE_SECONDS
    assert trino.value(f'select count(*) from hive.{database}."{table}$partitions"') == PARTITIONS


def test_spark_lists_many_tables_of_a_served_commit_as_fast_as_the_live_ones(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb,
    store: tuple[str, str],
    cluster: Inventory,
    machines: Machines,
    metastore: Metastore,
    days: str,
    record_property: Record,
) -> None:
    uri = str(cluster.hosts[0].variables["lakehouse_past_catalog"])
    if not uri:
        pytest.skip("this inventory names no served commit")
    database, table = days.split(".")
    there = metastore.call("get_table", database, table)
    there.partitionKeys, there.tableType = [], "EXTERNAL_TABLE"
    there.parameters[SHARED] = "true"
    for number in range(TABLES - 1):
        there.tableName = f"many_{number:04}"
        metastore.call("create_table", there)
    try:
        client = machines[cluster.group("clients")[0].name]
        live = listed(client, database)
        with served(verb, verb.committed(*store), store, uri):
            past = listed(client, database, "--conf", f"spark.hadoop.hive.metastore.uris={uri}")
        record_property("note", f"{TABLES} tables in {past:.2f} s of a commit, in {live:.2f} s live")
        assert past <= live + MORE_SECONDS
    finally:
        for number in range(TABLES - 1):
            metastore.call("drop_table", database, f"many_{number:04}", False)


def listed(client: Machine, database: str, *options: str) -> float:
    """Return the seconds in which Spark lists the tables of a database."""
    user = client.variable("lakehouse_users")["spark"]
    words = ["runuser", "-u", user, "--", "spark-submit", "--master", "local[1]", *options]
    with client.scratch("catalog-numbers") as folder:
        client.run("chmod 755 %s && printf %%s %s > %s/ask.py", folder, ASKS, folder)
        said = client.run(
            " ".join(["%s"] * len(words)) + " %s/ask.py %s 2>/dev/null", *words, folder, database
        )
    [_, found, seconds] = next(line for line in said.splitlines() if line.startswith("FOUND")).split()
    assert int(found) == TABLES
    return float(seconds)


def test_a_snapshot_of_the_files_adds_little_to_a_commit(
    cluster: Inventory, machines: Machines, metastore: Metastore, days: str, record_property: Record
) -> None:
    """Commits with and without one take turns; the shortest are compared, which other load changes least."""
    add_partitions(metastore, days, range(MANY_PARTITIONS))
    host = machines[cluster.group("postgresql")[0].name]
    [settings] = re.findall(r"--settings[\s\\]+(\S+)", host.run("cat %s", PROGRAM))
    written = host.run("cat %s", settings)
    without = json.dumps(json.loads(written) | {"snapshot_hours": 0, "snapshot_days": 0})
    user = host.variable("lakehouse_users")["hive"]
    line = f"TIMEFORMAT=%R; time (echo '{{\"full\": true}}' | runuser -u {user} -- {PROGRAM} commit) 2>&1"
    took: dict[str, list[float]] = {written: [], without: []}
    host.run("cp -p %s %s.kept", settings, settings)
    try:
        for text in (written, without) * TURNS:
            host.run("printf %%s %s > %s", text, settings)
            took[text].append(float(host.run("cd / && bash -c %s 2>&1", line).split()[-1]))
    finally:
        # As it was, its time included.
        host.run("mv %s.kept %s", settings, settings)
    with_one, alone = map(min, took.values())
    record_property(
        "note", f"{MANY_PARTITIONS} partitions in {with_one:.2f} s, {alone:.2f} s without a snapshot"
    )
    assert with_one - alone <= SNAPSHOT_SECONDS


def test_trino_drops_a_table_of_many_partitions(
    metastore: Metastore, trino: Trino, days: str, record_property: Record
) -> None:
    add_partitions(metastore, days, range(DROPPED_PARTITIONS))
    began = time.monotonic()
    trino.sql(f"drop table hive.{days}")
    record_property("note", f"{DROPPED_PARTITIONS} partitions in {time.monotonic() - began:.0f} s")
    database, _ = days.split(".")
    assert trino.sql(f"show tables in hive.{database}") == []
