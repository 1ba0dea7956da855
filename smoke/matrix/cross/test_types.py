"""Write with one engine, read with all: rows, types, nulls and a checksum are what went in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from smoke.formats import DELTA, ICEBERG, Format
from smoke.matrix.cross import canonical, dialects
from smoke.matrix.cross.engines import DELTA_RS, FLINK, PYICEBERG, READERS, SPARK, TRINO, Engines, name
from smoke.matrix.cross.kinds import COLUMNS, ROWS
from smoke.tables import Table, Tables

WRITERS = {ICEBERG: (SPARK, TRINO, FLINK, PYICEBERG), DELTA: (SPARK, DELTA_RS)}
PAIRS = [
    pytest.param(fmt, writer, reader, id=f"{fmt}-{writer}-{reader}")
    for fmt, writers in WRITERS.items()
    for writer in writers
    for reader in READERS[fmt]
]
# Columns that an engine cannot give back as they went in, and the issue that explains it.
CUT = {(TRINO, DELTA): ({"moment"}, "https://github.com/trinodb/trino/issues/20359")}


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


@pytest.mark.operation("types written by {writer}", engine="{reader}")
@pytest.mark.parametrize(("fmt", "writer", "reader"), PAIRS)
def test_rows_are_what_was_written(
    fmt: Format, writer: str, reader: str, written: Callable[[Format, str], Table], engines: Engines
) -> None:
    cut, _ = CUT.get((reader, fmt), (set(), ""))
    kept = {column: kind for column, kind in COLUMNS.items() if column not in cut}
    sent = [[value for column, value in zip(COLUMNS, row, strict=True) if column in kept] for row in ROWS]

    got = canonical.rows(engines.read(reader, written(fmt, writer), tuple(kept)), kept.values())
    expected = canonical.rows(sent, kept.values())
    assert got == expected
    assert canonical.checksum(got) == canonical.checksum(expected)
