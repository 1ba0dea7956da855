"""Write with one engine, read with all: rows, types, nulls and a checksum are what went in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest

from smoke.formats import DELTA, ICEBERG, Format
from smoke.matrix.cross import canonical, dialects
from smoke.matrix.cross.engines import DELTA_RS, FLINK, PYICEBERG, READERS, SPARK, TRINO, Engines, name
from smoke.matrix.cross.kinds import COLUMNS, ROWS
from smoke.matrix.cross.limits import Limit, marks, wrong
from smoke.tables import Table, Tables

WRITERS = {ICEBERG: (SPARK, TRINO, FLINK, PYICEBERG), DELTA: (SPARK, DELTA_RS)}
# Columns that an engine cannot give back as they went in.
CUT = {
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
def written(_engines: Engines, makers: dict[str, Tables]) -> Callable[[Format, str], Table]:
    """Give the table into which a writer has put the rows."""

    @cache
    def write(fmt: Format, writer: str) -> Table:
        table = makers[fmt.name].name()
        if writer in dialects.DIALECTS:
            dialect = dialects.DIALECTS[writer]
            using = f" USING {fmt}" if writer == SPARK else ""
            _engines.sql(writer, f"CREATE TABLE {name(writer, table)} ({dialect.columns()}){using}")
            _engines.sql(writer, f"INSERT INTO {name(writer, table)} VALUES {dialect.rows(ROWS)}")
        elif writer == PYICEBERG:
            rows = dialects.arrow(ROWS)
            _engines.clients.iceberg.create_table(table.short, rows.schema).append(rows)
        else:
            _engines.spark.sql(f"CREATE TABLE {table} ({dialects.SPARK.columns()}) USING {fmt}")
            _engines.clients.append(f"{fmt}.{table.short}", dialects.arrow(ROWS))
        return table

    return write


def sent(columns: Sequence[str]) -> list[canonical.Spelt]:
    """Spell some columns of what went in."""
    rows = [[row[list(COLUMNS).index(column)] for column in columns] for row in ROWS]
    return canonical.rows(rows, [COLUMNS[column] for column in columns])


@pytest.mark.operation("types written by {writer}", engine="{reader}")
@pytest.mark.parametrize(("fmt", "writer", "reader"), PAIRS)
def test_rows_are_what_was_written(
    fmt: Format, writer: str, reader: str, written: Callable[[Format, str], Table], engines: Engines
) -> None:
    cut, _ = CUT.get((reader, fmt), NOTHING)

    def seen(columns: Sequence[str]) -> list[canonical.Spelt]:
        found = engines.read(reader, written(fmt, writer), columns)
        return canonical.rows(found, [COLUMNS[column] for column in columns])

    kept = [column for column in COLUMNS if column not in cut]
    got, expected = seen(kept), sent(kept)
    assert got == expected
    assert canonical.checksum(got) == canonical.checksum(expected)
    for column in cut:
        assert seen(["id", column]) != sent(["id", column]), f"{column} is right now: it is not to be cut"
