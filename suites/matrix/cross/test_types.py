"""Write with one engine, read with all: rows, types, nulls and a checksum are what went in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from suites.matrix.cross import canonical, dialects
from suites.matrix.cross.data_types import COLUMNS, ROWS, DataType
from suites.matrix.cross.engines import (
    CLAUSES,
    DELTA_RS,
    FLINK,
    PYICEBERG,
    READERS,
    SPARK,
    SQL_ENGINES,
    TRINO,
    Engines,
)
from suites.matrix.cross.limits import Limit, marks, wrong
from suites.testbed.databases import Databases, Table
from suites.testbed.formats import DELTA, HIVE_PARQUET, ICEBERG, Format
from suites.testbed.tables import Tables

WRITERS: Mapping[Format, tuple[str, ...]] = {
    ICEBERG: (SPARK, TRINO, FLINK, PYICEBERG),
    DELTA: (SPARK, DELTA_RS),
    HIVE_PARQUET: SQL_ENGINES,
}
# A Hive table has one type for moments, and what it means is the session's business: test_instant.
LEFT_OUT: Mapping[Format, set[str]] = {HIVE_PARQUET: {"moment", "local_time"}}
# Columns that an engine cannot give back as they went in.
CUT: Mapping[tuple[str, Format], tuple[set[str], Limit]] = {
    (TRINO, DELTA): (
        {"moment"},
        wrong("moment is cut to milliseconds", "https://github.com/trinodb/trino/issues/20359"),
    )
}
NOTHING: tuple[set[str], Limit | None] = (set(), None)
PAIRS = [
    pytest.param(
        fmt,
        writer,
        reader,
        id=f"{fmt}-{writer}-{reader}",
        marks=marks(CUT.get((reader, fmt), NOTHING)[1]),
    )
    for fmt, writers in WRITERS.items()
    for writer in writers
    for reader in READERS[fmt]
]


@pytest.fixture(scope="module")
def written(
    _engines: Engines, makers: dict[str, Tables], matrix_databases: Databases
) -> Callable[[Format, str], Table]:
    """Give the table into which a writer has put the rows."""

    @cache
    def write(fmt: Format, writer: str) -> Table:
        maker = makers.get(fmt.name)
        table = maker.name() if maker else matrix_databases.table(fmt, f"types_of_{writer}")
        if writer in dialects.DIALECTS:
            dialect, kinds = dialects.DIALECTS[writer], kept(fmt)
            clause, columns = CLAUSES.get((fmt.name, writer), ""), dialect.columns(kinds)
            rows = dialect.rows(picked(list(kinds)), kinds)
            _engines.sql(writer, f"CREATE TABLE {table.full(writer)} ({columns}){clause}")
            _engines.sql(writer, f"INSERT INTO {table.full(writer)} VALUES {rows}")
        elif writer == PYICEBERG:
            rows = dialects.arrow(ROWS)
            _engines.clients.iceberg.create_table(table.short, rows.schema).append(rows)
        else:
            _engines.spark.sql(f"CREATE TABLE {table} ({dialects.SPARK.columns()}) USING {fmt}")
            _engines.clients.append(f"{fmt}.{table.short}", dialects.arrow(ROWS))
        return table

    return write


def kept(fmt: Format) -> dict[str, DataType]:
    """Return the columns of a format's table."""
    return {column: kind for column, kind in COLUMNS.items() if column not in LEFT_OUT.get(fmt, set())}


def picked(columns: Sequence[str]) -> list[list[Any]]:
    """Return some columns of what goes in."""
    return [[row[list(COLUMNS).index(column)] for column in columns] for row in ROWS]


def sent(columns: Sequence[str]) -> list[canonical.Spelt]:
    """Spell some columns of what went in."""
    return canonical.rows(picked(columns), [COLUMNS[column] for column in columns])


@pytest.mark.operation("types written by {writer}", engine="{reader}")
@pytest.mark.parametrize(("fmt", "writer", "reader"), PAIRS)
def test_rows_are_what_was_written(
    fmt: Format,
    writer: str,
    reader: str,
    written: Callable[[Format, str], Table],
    engines: Engines,
) -> None:
    cut, _ = CUT.get((reader, fmt), NOTHING)

    def read(columns: Sequence[str]) -> list[canonical.Spelt]:
        rows = engines.read(reader, written(fmt, writer), columns)
        return canonical.rows(rows, [COLUMNS[column] for column in columns])

    exact = [column for column in kept(fmt) if column not in cut]
    actual, expected = read(exact), sent(exact)
    assert actual == expected
    assert canonical.checksum(actual) == canonical.checksum(expected)
    for column in cut:
        assert read(["id", column]) != sent(["id", column]), f"{column} is right now: it is not to be cut"
