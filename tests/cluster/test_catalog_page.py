"""docs/catalog-history.md, command by command: a table changes, a database is dropped, and is there again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from lakehouse.clients import metastores
from lakehouse.metastore import Metastore
from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from lakehouse.run import ROOT
from suites.testbed.engines.trino import Trino
from tests import pages
from tests.cluster.changing import Verb

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

# Those of the restore; the others are about files, and in test_catalog_pin.py, or about the history alone,
# and in tests/unit/test_catalog_database.py.
OTHERS = {
    "catalog commit --pin 90",
    "catalog check before-migration",
    "catalog branch dev before-migration",
    "catalog cherry-pick HEAD --into dev",
    "catalog merge dev --into both",
    "catalog revert HEAD",
}
DATABASE, PARTITION = "sales", "ds=2026-01-02"
# Ends otherwise than with 0, as the page says.
ENDS = {"catalog diff --expect before-migration": 1}
# Of the README.
STORY = [
    "catalog commit",
    "catalog diff --expect HEAD",
    "catalog serve HEAD",
    f"catalog restore HEAD {DATABASE}",
]
SERVES = "catalog serve before-migration"
# Of the page: the metastore of another cluster, and its branch. The cluster's own answers in its place.
OTHER, BRANCH = "thrift://old:9083", "from-old"


@pytest.fixture
def sales(trino: Trino, schema: str) -> Iterator[str]:
    """A database with the tables of the page, an Iceberg one beside them."""
    trino.sql(
        f"create table hive.{schema}.orders with (partitioned_by = array['ds'], format = 'PARQUET') as"
        " select 1 n, '2026-01-01' ds union all select 2, '2026-01-02'"
    )
    trino.sql(f"create table iceberg.{schema}.trips as select 1 n")
    yield schema
    trino.sql(f"drop table if exists hive.{schema}.orders")


def test_the_story_of_the_readme(verb: Verb, trino: Trino, sales: str) -> None:
    """In the cluster's own history: its commits have snapshots. Trino deletes the files of what it drops."""
    found = pages.catalog(ROOT / "README.md")
    assert found == STORY
    for command in found:
        words = [sales if word == DATABASE else word for word in shlex.split(command)]
        if "serve" in words:
            served(verb, [*words, "--port", "0"])
            for table in ("iceberg.{}.trips", "hive.{}.orders"):
                trino.sql(f"drop table {table.format(sales)}")
            trino.sql(f"drop schema hive.{sales}")
            continue
        done = verb.run(*words, *(["--yes"] if "restore" in words else []))
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert trino.value(f"select count(*) from hive.{sales}.orders") == 2
    assert trino.value(f"select count(*) from iceberg.{sales}.trips") == 1


def served(verb: Verb, words: list[str]) -> None:
    with verb.started(*words) as process:
        assert process.stdout is not None
        assert "read-only" in process.stdout.readline()
        process.terminate()


def dropped(metastore: Metastore, database: str) -> None:
    """As Spark drops external tables and those of Iceberg: the files stay."""
    for table in ("orders", "trips"):
        metastore.call("drop_table", database, table, False)
    metastore.call("drop_database", database, False, False)


@pytest.mark.longdrill
def test_every_command_of_the_page_does_what_it_says(  # noqa: PLR0913, PLR0917 -- fixtures
    cluster: Inventory,
    verb: Verb,
    store: tuple[str, str],
    metastore: Metastore,
    trino: Trino,
    sales: str,
) -> None:
    own_metastore = metastores(placement.read(cluster))[0]
    replaced_words = {OTHER: str(own_metastore), BRANCH: f"from-{own_metastore.host}"}

    def change() -> None:
        trino.sql(f"alter table hive.{sales}.orders add column land varchar")

    def drop_partition() -> None:
        metastore.call("drop_partition_by_name", sales, "orders", PARTITION, False)

    before: dict[str, Callable[[], None]] = {
        "catalog diff": change,
        f"catalog log {DATABASE}": lambda: dropped(metastore, sales),
        f"catalog restore before-migration {DATABASE}.orders/{PARTITION} --yes": drop_partition,
    }
    # Those of a stack are in tests/compose/test_catalog.py.
    found = [one for one in pages.catalog(pages.HISTORY) if "--target compose" not in one]
    assert before.keys() | ENDS.keys() | {SERVES} <= set(found), found
    assert set(found) >= OTHERS
    for command in (one for one in found if one not in OTHERS):
        if command in before:
            before[command]()
        words = [re.sub(rf"^{DATABASE}(?=$|[./])", sales, word) for word in [*shlex.split(command), *store]]
        words = [replaced_words.get(word, word) for word in words]
        if command == SERVES:
            served(verb, [*words, "--port", "0"])
            continue
        done = verb.run(*words)
        assert done.returncode == ENDS.get(command, 0), (command, done.stdout, done.stderr)
    assert trino.value(f"select count(*) from hive.{sales}.orders") == 2
    assert trino.value(f"select count(*) from iceberg.{sales}.trips") == 1
