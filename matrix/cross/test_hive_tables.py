"""Tables of Hive's own formats, made by each engine and read by each: values are kept, and found."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import pytest

from matrix.cross.dialects import DIALECTS
from matrix.cross.engines import FLINK, SPARK, SQL_ENGINES, TRINO, Engines
from matrix.cross.hive_differences import (
    BEFORE_1970,
    JULIAN,
    JULIAN_DAY,
    LAST,
    LIMIT,
    NO_DAYS,
    different,
)
from matrix.cross.limits import marks
from testbed.databases import Databases, Table
from testbed.formats import HIVE_ORC, HIVE_PARQUET, Format

# What follows the columns, of which the last one has a folder for each of its values.
CLAUSES = {
    SPARK: "PARTITIONED BY (p STRING) STORED AS {format}",
    TRINO: "WITH (format = '{format}', partitioned_by = ARRAY['p'])",
    FLINK: "PARTITIONED BY (p) WITH ('connector' = 'hive', 'hive.storage.file-format' = '{lower}')",
}
PARTITION = {SPARK: "", TRINO: ", p VARCHAR", FLINK: ", p STRING"}
TYPED = {"moment": "TIMESTAMP ", "born": "DATE "}
MOMENT = {SPARK: "TIMESTAMP", TRINO: "TIMESTAMP(6)", FLINK: "TIMESTAMP(9)"}
# By column, of one row after the other. The name of a folder must escape most of the last ones.
VALUES: dict[str, tuple[str | None, ...]] = {
    "moment": ("2024-05-01 10:00:00.123456", LAST, BEFORE_1970, JULIAN, None, "2024-05-01 10:00:00.000001"),
    "born": ("2024-02-29", "9999-12-31", "1969-12-31", JULIAN_DAY, "1582-10-15", "2024-03-01"),
    "code": ("ab", "", "a b c", "it's", None, "x"),
    "word": ("ab", "", "a b c", "it's", None, "x"),
    "p": ("a b/c", "it's", "%2F:#?=", "%", None, ""),
}


PAIRS = [
    pytest.param(
        fmt, writer, reader,
        id=f"{fmt}-{writer}-{reader}", marks=marks(LIMIT if different(fmt, writer, reader) else None),
    )
    for fmt in (HIVE_PARQUET, HIVE_ORC)
    for writer in SQL_ENGINES
    for reader in SQL_ENGINES
]  # fmt: skip


def row(engine: str, number: int, values: Iterable[str | None]) -> str:
    """Spell a row of texts; Flink takes no bare null there."""
    return f"({number}, {', '.join(DIALECTS[engine].text('null' if one is None else one) for one in values)})"


def condition(engine: str, column: str, value: str | None) -> str:
    """Spell what finds a value."""
    if value is None:
        return f"{column} IS NULL"
    text = DIALECTS[engine].text(value)
    return f"{column} = {TYPED.get(column, '')}{text}"


@pytest.fixture(scope="module")
def written(_engines: Engines, matrix_databases: Databases) -> Callable[[Format, str], Table]:
    """Give the table into which a writer has put the rows."""

    @cache
    def write(fmt: Format, writer: str) -> Table:
        table = matrix_databases.table(fmt, f"{fmt.prefix}_kept_by_{writer}")
        clause = CLAUSES[writer].format(format=fmt.prefix.upper(), lower=fmt.prefix)
        columns = (
            f"id INT, moment {MOMENT[writer]}, born DATE, code CHAR(6), word VARCHAR(6){PARTITION[writer]}"
        )
        _engines.sql(writer, f"CREATE TABLE {table.full(writer)} ({columns}) {clause}")
        rows = ", ".join(row(writer, *one) for one in enumerate(zip(*VALUES.values(), strict=True)))
        kinds = zip(VALUES, (MOMENT[writer], "DATE", "CHAR(6)", "VARCHAR(6)", "VARCHAR(20)"), strict=True)
        casts = ", ".join(f"CAST(nullif({name}, 'null') AS {kind})" for name, kind in kinds)
        _engines.sql(
            writer,
            f"INSERT INTO {table.full(writer)} SELECT id, {casts}"
            f" FROM (VALUES {rows}) AS x (id, {', '.join(VALUES)})",
        )
        return table

    return write


def spelt(column: str, value: Any) -> str | None:
    """Spell a value as it went in: text of a fixed length is filled with blanks."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value).rstrip(" ") if column == "code" and value is not None else value


def found(engines: Engines, reader: str, table: Table, conditions: Sequence[str]) -> list[list[int]]:
    """Return the rows that each condition finds."""
    if reader == FLINK:
        # Each part of a union wants 512 buffers. A condition skips folders, and no part of a file.
        whole = [one for one in conditions if not one.startswith("p ")]
        cases = ", ".join(f"CASE WHEN {one} THEN 1 ELSE 0 END" for one in whole)
        rows = engines.sql(reader, f"SELECT id, {cases} FROM {table.full(reader)}")
        told = {one: [int(row[0]) for row in rows if row[place]] for place, one in enumerate(whole, 1)}
        for one in conditions:
            if one not in told:
                query = f"SELECT id FROM {table.full(reader)} WHERE {one}"
                told[one] = [int(number) for (number,) in engines.sql(reader, query)]
        return [told[one] for one in conditions]
    queries = [
        f"SELECT {place} AS cell, id FROM {table.full(reader)} WHERE {one}"
        for place, one in enumerate(conditions)
    ]
    answers: list[list[int]] = [[] for _ in conditions]
    for place, number in engines.sql(reader, " UNION ALL ".join(queries)):
        answers[int(place)].append(int(number))
    return answers


@pytest.mark.operation("values kept by {writer}", engine="{reader}")
@pytest.mark.parametrize(("fmt", "writer", "reader"), PAIRS)
def test_values_are_read_and_found_as_they_were_written(
    fmt: Format, writer: str, reader: str, written: Callable[[Format, str], Table], engines: Engines
) -> None:
    table = written(fmt, writer)
    read = {int(one[0]): one[1:] for one in engines.read(reader, table, ["id", *VALUES])}
    cells = [(column, number, value) for column in VALUES for number, value in enumerate(VALUES[column])]
    answers = found(engines, reader, table, [condition(reader, column, value) for column, _, value in cells])
    differ = {}
    for place, (column, number, value) in enumerate(cells):
        seen = spelt(column, read[number][list(VALUES).index(column)])
        # An empty text is null there, and found as null.
        nulls = [row for row, folder in enumerate(VALUES["p"]) if not folder]
        rows = nulls if (column, value) == ("p", None) else [number]
        if seen != value or sorted(answers[place]) != rows:
            differ[column, value] = f"read as {seen!r}, found in {answers[place]} and not in {rows}"
    assert set(differ) == different(fmt, writer, reader), differ


@pytest.mark.operation("days that are all null, by trino", engine=FLINK)
@NO_DAYS.mark
@pytest.mark.parametrize("fmt", [HIVE_PARQUET], ids=str)
def test_flink_refuses_a_column_in_which_trino_wrote_no_day(
    fmt: Format, engines: Engines, matrix_databases: Databases, note: Callable[[str], None]
) -> None:
    """Without the statistics that Trino writes beside the rows, Flink reads them."""
    table, other = (matrix_databases.table(fmt, f"{fmt.prefix}_no_days_{number}") for number in (1, 2))
    made = "CREATE TABLE {} WITH (format = 'PARQUET') AS SELECT 1 AS id, CAST(NULL AS DATE) AS born"
    engines.sql(TRINO, made.format(table.full(TRINO)))
    note(engines.refuses(FLINK, f"SELECT * FROM {table.full(FLINK)}", NO_DAYS.reason))
    for reader in (SPARK, TRINO):
        assert engines.read(reader, table) == [(1, None)]
    engines.sql(TRINO, "SET SESSION hive.collect_column_statistics_on_write = false")
    engines.sql(TRINO, made.format(other.full(TRINO)))
    engines.sql(TRINO, "RESET SESSION hive.collect_column_statistics_on_write")
    assert engines.read(FLINK, other) == [(1, None)]
