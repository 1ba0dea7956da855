"""What people may do through Spark: from a Unix account of a node, and through Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

from suites.matrix.cross.access.acts import MEMBER, Act, Ground
from suites.testbed import sessions
from suites.testbed.databases import Table

# One process for each person, without executors and the log that only members can write. It tells what became
# of each statement: a list of JSON, of which an empty text means that it was done. Without executors nothing
# wakes a task that waits for a better place, and a shuffle is one task, not some for each core of the
# cluster. The folder for temporary files is a member's too.
_PROGRAM = """
import glob, json, os, sys
home = os.environ["SPARK_HOME"]
sys.path[:0] = [f"{home}/python", *glob.glob(f"{home}/python/lib/py4j-*.zip")]
from pyspark.sql import SparkSession
settings = {
    "spark.master": "local[1]",
    "spark.locality.wait": "0s",
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "1",
    "spark.eventLog.enabled": "false",
    "spark.ui.enabled": "false",
}
spark = SparkSession.builder.config(map=settings).getOrCreate()
said = []
for statement in sys.argv[1:]:
    try:
        spark.sql(statement).collect()
        said.append("")
    except Exception as error:
        said.append(str(error))
print(json.dumps(said))
"""
# Of all statements, beside whatever else the suites run on the same cores.
_SECONDS = 600
# In this order: the last one takes the table away.
_STATEMENTS = {
    "`SELECT`": "SELECT id FROM {t}",
    "`INSERT`": "INSERT INTO {t} VALUES (3)",
    "`DELETE`": "DELETE FROM {t} WHERE id = 2",
    "`ADD COLUMN`": "ALTER TABLE {t} ADD COLUMN c INT",
    "`CALL rollback_to_snapshot`": "CALL iceberg.system.rollback_to_snapshot('{t}', {snapshot})",
    "`CALL rewrite_data_files`": (
        "CALL iceberg.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))"
    ),
    "`CALL expire_snapshots`": (
        "CALL iceberg.system.expire_snapshots(table => '{t}', older_than => current_timestamp())"
    ),
    "`CREATE TABLE AS`": "CREATE TABLE {t}_new AS SELECT 1 AS id",
    "`DROP`": "DROP TABLE {t}",
}


@dataclass(frozen=True)
class _Own:
    """A person's own table, with two rows in two snapshots, of which this is the first."""

    table: Table
    snapshot: int


@cache
def _owned(ground: Ground) -> Mapping[str, _Own]:
    """Make a table for each person, by the user's name."""
    owned = {}
    spark = ground.engines.spark
    for user in ground.people.values():
        table = ground.name()
        spark.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
        snapshot = spark.value(f"SELECT snapshot_id FROM {table}.snapshots")
        spark.sql(f"INSERT INTO {table} VALUES (2)")
        ground.at_the_end(partial(spark.sql, f"DROP TABLE IF EXISTS {table}_new PURGE"))
        owned[user] = _Own(table, snapshot)
    return owned


@cache
def _answers(ground: Ground) -> Mapping[str, Mapping[str, str]]:
    """Send all statements as every user at once; return what was said, by user and statement."""
    users = list(ground.people.values())
    with ThreadPoolExecutor() as pool:
        return dict(zip(users, pool.map(partial(_run, ground), users), strict=True))


def _run(ground: Ground, user: str) -> Mapping[str, str]:
    spark, own_table = ground.endpoints.spark, _owned(ground)[user]
    output = ground.nodes.run(
        spark.client,
        "python3",
        "-c",
        _PROGRAM,
        *(
            statement.format(t=own_table.table, snapshot=own_table.snapshot)
            for statement in _STATEMENTS.values()
        ),
        user=user,
        environment={
            "SPARK_HOME": spark.home,
            "SPARK_CONF_DIR": spark.conf_dir,
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1",
            "SPARK_LOCAL_DIRS": "/tmp",  # noqa: S108 (any folder that the person may write)
        },
        seconds=_SECONDS,
    )
    return dict(zip(_STATEMENTS, json.loads(output.splitlines()[-1]), strict=True))


def of_spark(ground: Ground) -> Table:
    """Return the member's table."""
    return _owned(ground)[ground.people[MEMBER]].table


def _from_account(name: str) -> Act:
    """Return the act of a statement from a Unix account; the first waits for all, so it begins early."""

    def do(ground: Ground, user: str, _: Table) -> None:
        if words := _answers(ground)[user][name]:
            raise SparkError(words)

    return Act(do, of_spark, slow=name == next(iter(_STATEMENTS)))


class SparkError(Exception):
    """What Spark said instead of doing as it was told."""


def _connected(statement: str) -> Act:
    """Return the act of one statement through Spark Connect; the client says who it is."""

    def do(ground: Ground, user: str, table: Table) -> None:
        sessions.spark(ground.endpoints, user=user).sql(statement.format(t=table))

    return Act(do)


ACCOUNT: Mapping[str, Act] = {name: _from_account(name) for name in _STATEMENTS}
CONNECT: Mapping[str, Act] = {
    "`SELECT`": _connected("SELECT id FROM {t}"),
    "`INSERT`": _connected("INSERT INTO {t} (id) VALUES (3)"),
}
ACTS: Mapping[str, Mapping[str, Act]] = {
    "Spark, a Unix account": ACCOUNT,
    "Spark Connect": CONNECT,
}
