"""Killed at any moment: the next commit or restore of the catalog completes it, and the history is whole."""

from __future__ import annotations

import signal
import subprocess
from random import Random

import pytest

from lakehouse.inventory import Inventory
from ops.clients import MetastoreSession
from ops.status import placement
from testbed.engines.trino import Trino
from tests.cluster.changing import Verb

pytestmark = [pytest.mark.cluster, pytest.mark.drill, pytest.mark.longdrill]

# A seed chooses when, so that a failure comes again.
SEEDS = range(10)
COMMIT_SECONDS, RESTORE_SECONDS = 3, 5
PARTITIONS = 60


@pytest.fixture
def table(trino: Trino, schema: str) -> str:
    trino.sql(
        f"create table hive.{schema}.days with (partitioned_by = array['ds'], format = 'PARQUET') as"
        f" select n, cast(n as varchar) ds from unnest(sequence(1, {PARTITIONS})) as t (n)"
    )
    return f"{schema}.days"


def killed(verb: Verb, seconds: float, *words: str) -> None:
    process = verb.started(*words)
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_commit(verb: Verb, store: tuple[str, str], table: str, trino: Trino, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 -- no secret
    if seed % 2:
        # Of a history that there is already.
        verb.committed(*store)
        trino.sql(f"insert into hive.{table} values (0, '0')")
    killed(verb, chance.uniform(0, COMMIT_SECONDS), "catalog", "commit", *store)
    commit = verb.committed(*store)
    verb.json("catalog", "fsck", *store)
    verb.json("catalog", "diff", "--expect", commit, *store)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restore(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb, store: tuple[str, str], table: str, trino: Trino, cluster: Inventory, seed: int
) -> None:
    chance = Random(seed)  # noqa: S311 -- no secret
    commit = verb.committed(*store)
    with MetastoreSession(placement.read(cluster)) as metastore:
        metastore.call("drop_table", *table.split("."), False)
    words = ("catalog", "restore", commit, table, *store, "--yes")
    killed(verb, chance.uniform(0, RESTORE_SECONDS), *words)
    listed = verb.json("runs")["runs"]
    # One that was killed before it began left nothing to resume.
    resumed = bool(listed) and listed[-1]["resumable"]
    verb.json(*(("resume", "--yes") if resumed else words))
    assert trino.value(f"select count(*) from hive.{table}") == PARTITIONS
    verb.json("catalog", "diff", "--expect", commit, *store)
    verb.json("catalog", "fsck", *store)
