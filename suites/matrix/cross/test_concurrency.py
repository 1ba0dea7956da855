"""Writers of several engines change one table at once: what was acknowledged is there, as if in a row."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError
from pyiceberg.exceptions import CommitFailedException

from suites.matrix.cross.engines import DELTA_RS, FLINK, PYICEBERG, READERS, SPARK, TRINO, Engines
from suites.matrix.cross.limits import wrong
from suites.testbed import sessions
from suites.testbed.databases import Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.facade import Facade, Row
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, ICEBERG, Format
from suites.testbed.namenode import NameNode
from suites.testbed.tables import Tables

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
    """Retry a client without built-in retries after an error that excludes a commit."""

    def append_with_retries(value: int) -> None:
        for remaining in reversed(range(_RETRIES)):
            try:
                append(value)
            except _REFUSALS:
                if not remaining:
                    raise
            else:
                return

    return append_with_retries


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
    """Whether commits of different engines overlapped in time."""
    spans = [(span, writer.name) for writer in writers for span in writer.spans]
    return any(
        first_writer != second_writer and first[0] < second[1] and second[0] < first[1]
        for (first, first_writer), (second, second_writer) in itertools.combinations(spans, 2)
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


@dataclass(frozen=True)
class Change:
    """Two concurrent statements, and the rows that may result.

    `results` are the allowed states of the rows 1 and 7 by the acknowledged statements.
    """

    name: str
    statements: tuple[str, str]
    results: Mapping[frozenset[int], list[list[Row]]]

    def __str__(self) -> str:
        return self.name


_FIRST, _SECOND, _BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})
_ROW: Row = (1, 0, "d0")
_ADD = "UPDATE {table} SET amount = amount + 1 WHERE id = 1"


def _merge(amount: int) -> str:
    """Give the row 7 this amount, in a partition of its own."""
    return (
        f"MERGE INTO {{table}} t USING (SELECT 7 AS id, {amount} AS amount, 'd{amount}' AS p) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = s.amount, p = s.p"
        " WHEN NOT MATCHED THEN INSERT (id, amount, p) VALUES (s.id, s.amount, s.p)"
    )


MERGES = Change(
    "merge",
    (_merge(1), _merge(2)),
    {
        _FIRST: [[_ROW, (7, 1, "d1")]],
        _SECOND: [[_ROW, (7, 2, "d2")]],
        _BOTH: [[_ROW, (7, 1, "d1")], [_ROW, (7, 2, "d2")]],
    },
)
CHANGES = (
    MERGES,
    Change(
        "update", (_ADD, _ADD),
        {_FIRST: [[(1, 1, "d0")]], _SECOND: [[(1, 1, "d0")]], _BOTH: [[(1, 2, "d0")]]},
    ),
    Change(
        "delete", ("DELETE FROM {table} WHERE id = 1", _ADD),
        {_FIRST: [[]], _SECOND: [[(1, 1, "d0")]], _BOTH: [[]]},
    ),
)  # fmt: skip
PAIRS = [
    (ICEBERG, (TRINO, TRINO), "PARTITIONED BY (p)"),
    (ICEBERG, (TRINO, TRINO), ""),
    (ICEBERG, (SPARK, TRINO), "PARTITIONED BY (p)"),
    (ICEBERG, (SPARK, SPARK), "PARTITIONED BY (p)"),
    (DELTA, (SPARK, SPARK), "PARTITIONED BY (p)"),
]
ROUNDS, MOST_ROUNDS = 2, 5
# What an engine says whose statement met another one.
_CONFLICT = (
    r"(?i)conflict|concurrent|cannot commit|failed to commit|missing required files|missing data files"
)
DOUBLED = wrong("a key is there twice", "https://github.com/trinodb/trino/issues/31072")


def change_at_once(pair: list[Facade], names: list[str], change: Change) -> frozenset[int]:
    """Run both statements at once, on the table by its two names; return which were acknowledged."""
    start = Barrier(2)

    def run(number: int) -> int | None:
        session, statement = pair[number], change.statements[number].format(table=names[number])
        start.wait(60)
        try:
            session.sql(statement)
        except session.refusal as error:
            if not re.search(_CONFLICT, str(error)):
                raise
            return None
        return number

    with ThreadPoolExecutor(2) as pool:
        return frozenset(number for number in pool.map(run, range(2)) if number is not None)


def a_row(engines: Engines, tables: Tables, clause: str) -> Table:
    """Return a table with the row that is to be changed."""
    table = tables.name()
    columns = "(id INT, amount INT, p STRING)"
    engines.spark.sql(f"CREATE TABLE {table} {columns} USING {table.format} {clause}")
    engines.spark.sql(f"INSERT INTO {table} VALUES {_ROW}")
    return table


@pytest.mark.operation("changes at once: {change}", engine="all")
@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize(
    ("fmt", "pair", "clause"),
    [pytest.param(*row, id=f"{row[0]}-{'-'.join(row[1])}{'-partitions' * bool(row[2])}") for row in PAIRS],
)
def test_changes_at_once_are_as_if_in_some_order(  # noqa: PLR0913, PLR0917 (all are fixtures and parameters)
    change: Change,
    fmt: Format,
    pair: tuple[str, str],
    clause: str,
    engines: Engines,
    second_spark: Spark,
    second_trino: Facade,
    makers: Mapping[str, Tables],
) -> None:
    """Both are acknowledged and the rows equal those of a serial order, or one is refused."""
    second: dict[str, Facade] = {SPARK: second_spark, TRINO: second_trino}
    sessions_of_pair = [engines.of(pair[0]), second[pair[1]]]
    for _ in range(ROUNDS):
        table = a_row(engines, makers[fmt.name], clause)
        acknowledged = change_at_once(sessions_of_pair, [table.full(engine) for engine in pair], change)
        assert acknowledged
        rows = sorted(engines.read(SPARK, table, ["id", "amount", "p"]))
        assert rows in change.results[acknowledged], acknowledged


@pytest.mark.operation("merges at once, compared by partition", engine=TRINO)
@DOUBLED.mark
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_merges_that_are_compared_by_partition_double_a_key(
    fmt: Format, engines: Engines, endpoints: Endpoints, iceberg: Tables
) -> None:
    """Trino's default, which the kit switches off: when this fails, Trino compares correctly by now."""
    pair = [sessions.trino(endpoints) for _ in range(2)]
    for session in pair:
        session.sql("SET SESSION iceberg.file_based_conflict_detection_enabled = true")
    doubled: list[Row] = [_ROW, (7, 1, "d1"), (7, 2, "d2")]
    states: list[list[Row]] = []
    while doubled not in states:
        assert len(states) < MOST_ROUNDS, states
        table = a_row(engines, iceberg, "PARTITIONED BY (p)")
        assert table.format is fmt
        acknowledged = change_at_once([*pair], [table.full(TRINO)] * 2, MERGES)
        states.append(sorted(engines.read(TRINO, table, ["id", "amount", "p"])))
        assert states[-1] in [*MERGES.results[acknowledged], doubled]


def _all_there(acknowledged: list[int], writers: list[Writer], engines: Engines, table: Table) -> None:
    assert len(acknowledged) == len(writers) * COMMITS
    assert overlapping(writers)
    ids_by_reader: dict[str, Any] = {
        reader: sorted(id_ for (id_,) in engines.read(reader, table, ["id"]))
        for reader in READERS[table.format]
    }
    assert ids_by_reader == dict.fromkeys(ids_by_reader, acknowledged)
