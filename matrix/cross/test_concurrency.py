"""Writers of several engines append to one table at once: what was acknowledged is there, exactly once."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError
from pyiceberg.exceptions import CommitFailedException

from matrix.cross.engines import DELTA_RS, FLINK, PYICEBERG, READERS, SPARK, TRINO, Engines
from testbed.databases import Table
from testbed.engines.facade import Facade
from testbed.engines.spark import Spark
from testbed.formats import DELTA, ICEBERG, Format
from testbed.namenode import NameNode
from testbed.tables import Tables

COMMITS = 2
# Rows per writer: the first number of each says whose it is.
_BLOCK = 1000
# A commit that meets another one is tried again so often, by the engine or by us.
_RETRIES = 20
_REFUSALS = (CommitFailedException, CommitFailedError)


@dataclass
class Writer:
    """One client that appends `COMMITS` times; it notes what was acknowledged, and from when to when."""

    name: str
    append: Callable[[int], object]
    acknowledged: list[int] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)

    def work(self, number: int, start: Barrier) -> None:
        """Wait for the others, then append the writer's own rows one by one."""
        start.wait(60)
        for value in range(number * _BLOCK, number * _BLOCK + COMMITS):
            began = time.monotonic()
            self.append(value)
            self.acknowledged.append(value)
            self.spans.append((began, time.monotonic()))


def patiently(append: Callable[[int], object]) -> Callable[[int], None]:
    """Retry for a client without retries of its own, when it says that it did not commit."""

    def again(value: int) -> None:
        for left in reversed(range(_RETRIES)):
            try:
                append(value)
            except _REFUSALS:
                if not left:
                    raise
            else:
                return

    return again


def sql(session: Facade, engine: str, table: Table) -> Callable[[int], object]:
    """Append a row through SQL."""
    return lambda value: session.sql(f"INSERT INTO {table.full(engine)} VALUES ({value}, '{engine}')")


def rows(value: int, engine: str) -> pa.Table:
    """One row as Arrow."""
    return pa.table({"id": pa.array([value], pa.int32()), "writer": [engine]})


def together(writers: list[Writer]) -> list[int]:
    """Run all writers at once; return what was acknowledged, sorted."""
    start = Barrier(len(writers))
    with ThreadPoolExecutor(len(writers)) as pool:
        for work in [pool.submit(writer.work, number, start) for number, writer in enumerate(writers, 1)]:
            work.result()
    return sorted(itertools.chain.from_iterable(writer.acknowledged for writer in writers))


def overlapping(writers: list[Writer]) -> bool:
    """Tell whether commits of different engines were under way at the same time."""
    spans = [(span, writer.name) for writer in writers for span in writer.spans]
    return any(
        one != other and first[0] < second[1] and second[0] < first[1]
        for (first, one), (second, other) in itertools.combinations(spans, 2)
    )


@pytest.fixture
def second_spark(engines: Engines) -> Iterator[Spark]:
    """Another session of Spark."""
    spark = engines.spark.fresh()
    yield spark
    spark.session.stop()


@pytest.mark.operation("appends at once", engine="all")
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_iceberg(
    fmt: Format, engines: Engines, second_spark: Spark, second_trino: Facade, iceberg: Tables
) -> None:
    table = iceberg.name()
    retries = f"TBLPROPERTIES ('commit.retry.num-retries' = '{_RETRIES}')"
    engines.spark.sql(f"CREATE TABLE {table} (id INT, writer STRING) USING {fmt} {retries}")

    def append(value: int) -> None:
        engines.clients.iceberg.load_table(table.short).append(rows(value, PYICEBERG))

    writers = [
        Writer(SPARK, sql(engines.spark, SPARK, table)),
        Writer(SPARK, sql(second_spark, SPARK, table)),
        Writer(TRINO, sql(engines.trino, TRINO, table)),
        Writer(TRINO, sql(second_trino, TRINO, table)),
        Writer(FLINK, sql(engines.flink, FLINK, table)),
        Writer(PYICEBERG, patiently(append)),
    ]
    _all_there(together(writers), writers, engines, table)
    snapshots = engines.spark.value(f"SELECT count(*) FROM {table}.snapshots")
    assert snapshots == len(writers) * COMMITS


@pytest.mark.operation("appends at once", engine="all")
@pytest.mark.parametrize("fmt", [DELTA], ids=str)
def test_delta(  # noqa: PLR0913, PLR0917 (all are fixtures)
    fmt: Format,
    engines: Engines,
    second_spark: Spark,
    second_clients: Any,
    delta: Tables,
    namenode: NameNode,
) -> None:
    """HDFS renames a commit's file only where none has that name: this decides who was first."""
    table = delta.name()
    engines.spark.sql(f"CREATE TABLE {table} (id INT, writer STRING) USING {fmt}")

    def by(clients: Any) -> Callable[[int], object]:
        return patiently(lambda value: clients.append(f"delta.{table.short}", rows(value, DELTA_RS)))

    writers = [
        Writer(SPARK, sql(engines.spark, SPARK, table)),
        Writer(SPARK, sql(second_spark, SPARK, table)),
        Writer(DELTA_RS, by(engines.clients)),
        Writer(DELTA_RS, by(second_clients)),
    ]
    _all_there(together(writers), writers, engines, table)
    commits = [file for file in namenode.names(f"{table.path}/_delta_log") if file.endswith(".json")]
    assert commits == [f"{version:020}.json" for version in range(len(writers) * COMMITS + 1)]


def _all_there(acknowledged: list[int], writers: list[Writer], engines: Engines, table: Table) -> None:
    assert len(acknowledged) == len(writers) * COMMITS
    assert overlapping(writers)
    found: dict[str, Any] = {
        reader: sorted(id_ for (id_,) in engines.read(reader, table, ["id"]))
        for reader in READERS[table.format]
    }
    assert found == dict.fromkeys(found, acknowledged)
