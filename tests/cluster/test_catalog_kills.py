"""Killed at any moment: the next commit or restore of the catalog completes it, and the history is whole."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lakehouse import locks
from lakehouse.metastore import Metastore
from suites.testbed.engines.trino import Trino
from tests.cluster.changing import Verb
from tests.cluster.kills import SHARES, Kills

pytestmark = [pytest.mark.cluster, pytest.mark.drill, pytest.mark.longdrill]

Note = Callable[[str, object], None]
PARTITIONS = 60
# So many more that a commit of them lasts as long as a kill can be timed.
MORE, AT_ONCE = 3000, 500


class Commits(Kills):
    """Kills of commits, which no journal knows: their first step is the lock of the repository."""

    def _watch(self, words: Sequence[str]) -> Callable[[], bool]:
        lock = Path(words[words.index("--store") + 1]) / "lakehouse.lock"

        def held() -> bool:
            if not lock.exists():
                return False
            with lock.open("rb") as handle:
                return not locks.hold(handle, 0)

        return held

    def _again(self, words: Sequence[str]) -> tuple[Sequence[str], str]:
        return words, "killed"


@pytest.fixture
def table(trino: Trino, schema: str) -> str:
    trino.sql(
        f"create table hive.{schema}.days with (partitioned_by = array['ds'], format = 'PARQUET') as"
        f" select n, cast(n as varchar) ds from unnest(sequence(1, {PARTITIONS})) as t (n)"
    )
    return f"{schema}.days"


@pytest.fixture
def large_table(table: str, metastore: Metastore) -> str:
    """The table with many partitions that have no files."""
    database, name = table.split(".")
    [one] = metastore.partitions(database, name, ["ds=1"])
    made = []
    for number in range(MORE):
        another = copy.deepcopy(one)
        another.values, another.sd.location = [f"none-{number}"], f"{one.sd.location}-none-{number}"
        made.append(another)
    for first in range(0, MORE, AT_ONCE):
        metastore.call("add_partitions", made[first : first + AT_ONCE])
    return table


@pytest.mark.parametrize("history", ["none", "some"])
def test_a_commit(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb, tmp_path: Path, large_table: str, trino: Trino, history: str, record_property: Note
) -> None:
    """The first one of a history reads the whole catalog, a later one the table that has changed."""
    tries, number = Commits(verb), 0

    def begun() -> list[str]:
        nonlocal number
        number += 1
        store = tmp_path / f"catalog-{number}.git"
        if history == "some":
            verb.committed("--store", str(store))
            trino.sql(f"insert into hive.{large_table} values ({number}, 'new-{number}')")
        return ["--store", str(store)]

    seconds = tries.measured(["catalog", "commit", *begun()])
    for share in SHARES:
        store = begun()
        seconds = tries.at(share, seconds, ["catalog", "commit", *store])
        verb.json("catalog", "fsck", *store)
        verb.json("catalog", "diff", "--expect", "HEAD", *store)
    record_property("note", f"{tries.enough()}, the last runs lasted {seconds:.1f} s")


def test_a_restore(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb,
    store: tuple[str, str],
    table: str,
    trino: Trino,
    metastore: Metastore,
    record_property: Note,
) -> None:
    tries, commit = Kills(verb), verb.committed(*store)
    words = ["catalog", "restore", commit, table, *store, "--yes"]

    def dropped() -> list[str]:
        metastore.call("drop_table", *table.split("."), False)
        return words

    seconds = tries.measured(dropped())
    for share in SHARES:
        seconds = tries.at(share, seconds, dropped())
        assert trino.value(f"select count(*) from hive.{table}") == PARTITIONS
        verb.json("catalog", "diff", "--expect", commit, *store)
        verb.json("catalog", "fsck", *store)
    record_property("note", f"{tries.enough()}, the last runs lasted {seconds:.1f} s")
