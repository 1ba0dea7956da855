"""10,000 tables and 200,000 partitions: what a commit takes, what one change writes, how soon it is read.

Too long for `make test`: `make drills` runs it. It shows the seconds (-s), which depend on the machine;
docs/catalog-history.md has those of one.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from backup.config import Settings
from backup.database import _at_t0 as at_t0
from lakehouse import cli
from lakehouse.catalog import build, checksums, diff, source
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.store import Store
from lakehouse.run import ROOT
from tests.unit import metastore_database
from tests.unit.metastore_database import Database

pytestmark = pytest.mark.longdrill

TABLES, FEW, MANY, DATABASES = 10_000, 20, 100_020, 50
CALLS = 3_000
# What docs/catalog-history.md and docs/operations/backup.md promise of such a catalog.
FIRST_SECONDS, CHANGE_SECONDS, DIFF_SECONDS, SERVED_SECONDS, BLOCKED_SECONDS = 60, 3, 2, 0.02, 1
GIB = 1024**3


@dataclass(frozen=True)
class Ran:
    """What a process of its own has done, in how many seconds, with how much memory."""

    said: Any
    seconds: float
    bytes: int


def commit(database: Database, path: Path) -> tuple[str, int, int]:
    """Commit as the verb does; return the tree, the tables that were read, and the bytes of new objects."""

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        with closing(database.lines(script)) as lines:
            yield lines

    with closing(Store.made(path)) as store, store.locked():
        parent, batch, before = store.head(), Batch(store), size(path)
        built = source.read(ask, batch, checksums.base(store, parent) if parent else None, build.no_versions)
        batch.flush()
        entry = store.record(built.tree, parent, "a <a@example.org>", int(built.about["time"]), "scale\n")
        checksums.keep(store, entry, built)
        return built.tree, int(built.counts["read"]), size(path) - before


def verb(path: Path, *words: str) -> str:
    """Run a verb of the history, and return the tree of the branch `side`."""
    assert cli.main(["catalog", *words, "--store", str(path)]) == 0
    with closing(Store(path)) as store:
        return store.resolve("side").tree


def compare(path: Path) -> list[diff.Change]:
    """Return what the last commit changed."""
    with closing(Store(path)) as store:
        entry = store.resolve("HEAD")
        return list(diff.changes(store, store.commit(entry.parents[0]).tree, entry.tree))


def size(path: Path) -> int:
    """Return the bytes of all objects."""
    return sum(one.stat().st_size for one in (path / "objects").rglob("*") if one.is_file())


def measured(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float, int]:
    began = time.monotonic()
    said = work(*arguments)
    return said, time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def alone(what: str, work: Callable[..., Any], *arguments: Any) -> Ran:
    """Do something in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        ran = Ran(*pool.submit(measured, work, *arguments).result())
    print(f"{what}: {ran.seconds:.1f} s, {ran.bytes / GIB:.2f} GiB")  # noqa: T201 -- a number for a person
    return ran


@contextmanager
def served(path: Path) -> Iterator[Any]:
    """A client of the last commit, which a process of its own serves."""
    argv = [sys.executable, "-m", "lakehouse.cli", "catalog", "serve", "--port", "0", "--json"]
    with subprocess.Popen(
        [*argv, "--store", str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        # A failure meanwhile must not wait for a server that is never ended.
        try:
            place = urlsplit(json.loads(process.stdout.readline())["uri"])
            transport = TBufferedTransport(TSocket(place.hostname, place.port))
            transport.open()
            with closing(transport):
                yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        finally:
            process.send_signal(signal.SIGTERM)


def timed(what: str, call: Callable[[], Any]) -> Any:
    began = time.monotonic()
    said = call()
    print(f"{what}: {time.monotonic() - began:.3f} s")  # noqa: T201 -- a number for a person
    return said


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with metastore_database.server() as made:
        sizes = {"tables": TABLES, "few": FEW, "many": MANY, "databases": DATABASES}
        script = Path(__file__).with_name("metastore_scale.sql").read_text(encoding="utf-8")
        made.run("".join(f"\\set {name} {value}\n" for name, value in sizes.items()) + script)
        yield made


def test_a_backup_of_a_large_catalog_keeps_no_writer_waiting(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setenv("PGHOST", str(database.sockets))
    settings = Settings(
        cluster="kit", folder="", keep=1, namenode="", superuser="", root="", left_out=(),
        database=database.name, database_user="postgres", database_port=5432, database_ssh=(), checkpoint=(),
        checkpoint_folder="", spark_submit=(), spark_user="",
    )  # fmt: skip
    update, done, waits = (
        'update "TBLS" set "OWNER" = "OWNER" where "TBL_ID" = 100100',
        Event(),
        list[float](),
    )

    def write() -> None:
        while not done.is_set():
            began = time.monotonic()
            database.run(update)
            waits.append(time.monotonic() - began)

    rows = tmp_path / "catalog.jsonl"
    with ThreadPoolExecutor(1) as beside, rows.open("w", encoding="utf-8") as out:
        writer = beside.submit(write)
        began = time.monotonic()
        try:
            timed("the catalog of a backup", lambda: at_t0(settings, "20260102T030405Z", out))
        finally:
            done.set()
        writer.result()
        took = time.monotonic() - began
    with rows.open(encoding="utf-8") as lines:
        kinds = Counter(kind for line in lines for kind in json.loads(line))
    assert kinds == {"database": DATABASES + 1, "table": TABLES, "partition": FEW * (TABLES // 2 - 1) + MANY}
    record_property(
        "note", f"read in {took:.0f} s; {len(waits)} writes meanwhile, the longest {max(waits):.2f} s"
    )
    assert max(waits) <= BLOCKED_SECONDS, (max(waits), took)


def test_a_large_catalog_is_committed_in_little_memory_and_a_change_writes_little(
    database: Database, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = tmp_path / "history.git"
    first = alone("the first commit", commit, database, path)
    _, count, written = first.said
    assert count == TABLES
    assert first.bytes < GIB
    assert first.seconds <= FIRST_SECONDS

    database.run(
        'INSERT INTO "SERDES" ("SERDE_ID", "SLIB") VALUES (7, \'s\');'
        'INSERT INTO "SDS" SELECT 7, "INPUT_FORMAT", false, \'hdfs://lake/one-more\', -1, "OUTPUT_FORMAT", 7,'
        ' "CD_ID", false FROM "SDS" WHERE "SD_ID" = 100001;'
        "INSERT INTO \"PARTITIONS\" VALUES (7, 1790000000, 0, 'ds=1850-06-15-and-a-half', 7, 100001);"
        "INSERT INTO \"PARTITION_KEY_VALS\" VALUES (7, '1850-06-15-and-a-half', 0)"
    )
    second = alone("a partition more in a table of 100,000", commit, database, path)
    assert second.said[1] == 1
    assert second.said[2] <= written / 100, (second.said[2], written)
    assert second.seconds <= CHANGE_SECONDS

    database.run("INSERT INTO \"TABLE_PARAMS\" VALUES (100100, 'k', 'v')")
    third = alone("a parameter of one table", commit, database, path)
    assert third.said[1] == 1
    difference = alone("the difference", compare, path)
    found = difference.said
    assert difference.seconds <= DIFF_SECONDS
    assert [(one.kind, str(one.name), one.field) for one in found] == [
        ("view", "hive.d1.t100", "parameter k")
    ]

    # A branch that has the parameter alone gets the partition from the line that has both.
    verb(path, "branch", "side", "HEAD~2")
    picked = alone("one change picked", verb, path, "cherry-pick", "HEAD", "--into", "side")
    assert picked.said != third.said[0]
    merged = alone("a merge", verb, path, "merge", "HEAD~1", "--into", "side")
    assert merged.said == third.said[0]

    # Everything read again gives the tree that was made of changes.
    (path / "lakehouse-marks.json").unlink()
    assert alone("everything again", commit, database, path).said[0] == third.said[0]

    with served(path) as client:
        names = client.get_all_databases()
        tables = {name: client.get_all_tables(name) for name in names}
        assert sum(map(len, tables.values())) == TABLES
        dice, took = random.Random(1), []  # noqa: S311 -- which tables, not secrets
        for _ in range(CALLS):
            name = dice.choice([one for one in names if tables[one]])
            table = dice.choice(tables[name])
            began = time.perf_counter()
            assert client.get_table(name, table).tableName == table
            took.append(time.perf_counter() - began)
        hundredths = quantiles(took, n=100)
        print(f"get_table: median {hundredths[49] * 1000:.1f} ms, p99 {hundredths[98] * 1000:.1f} ms")  # noqa: T201
        record_property(
            "note",
            f"first commit {first.seconds:.0f} s, after a change {second.seconds:.1f} s,"
            f" diff {difference.seconds:.1f} s, get_table p99 {hundredths[98] * 1000:.1f} ms",
        )
        assert hundredths[98] <= SERVED_SECONDS
        met = timed("what each table is", lambda: client.get_table_meta("*", "*", []))
        assert len(met) == TABLES
        # The one with as many partitions.
        listed = timed("names of 100,000 partitions", lambda: client.get_partition_names("d2", "t1", -1))
        assert len(listed) == MANY + 1
        [one] = timed(
            "one of them", lambda: client.get_partitions_by_filter("d2", "t1", "ds = '1899-12-31'", -1)
        )
        assert one.values == ["1899-12-31"]
