"""Tables of Hive's own formats, written and read by each engine: values are preserved, and filters match."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import pytest

from lakehouse.tables import risky
from suites.matrix.cross.dialects import DIALECTS
from suites.matrix.cross.engines import FLINK, SPARK, SQL_ENGINES, TRINO, Engines
from suites.matrix.cross.hive_differences import (
    BEFORE_1970,
    JULIAN,
    JULIAN_DAY,
    LAST,
    LIMIT,
    NO_DAYS,
    different,
)
from suites.matrix.cross.limits import marks
from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.formats import HIVE_ORC, HIVE_PARQUET, Format
from suites.testbed.tables import suffix

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
    """Spell a row of texts; Flink accepts no untyped null there."""
    texts = (DIALECTS[engine].text("null" if value is None else value) for value in values)
    return f"({number}, {', '.join(texts)})"


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
        rows = ", ".join(row(writer, *numbered) for numbered in enumerate(zip(*VALUES.values(), strict=True)))
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


def matches(engines: Engines, reader: str, table: Table, conditions: Sequence[str]) -> list[list[int]]:
    """Return the rows that match each condition."""
    if reader == FLINK:
        # Each part of a union needs 512 buffers. Conditions on p skip folders: others share a scan.
        unpartitioned = [text for text in conditions if not text.startswith("p ")]
        cases = ", ".join(f"CASE WHEN {text} THEN 1 ELSE 0 END" for text in unpartitioned)
        rows = engines.sql(reader, f"SELECT id, {cases} FROM {table.full(reader)}")
        numbers = {
            text: [int(row[0]) for row in rows if row[place]] for place, text in enumerate(unpartitioned, 1)
        }
        for text in conditions:
            if text not in numbers:
                query = f"SELECT id FROM {table.full(reader)} WHERE {text}"
                numbers[text] = [int(number) for (number,) in engines.sql(reader, query)]
        return [numbers[text] for text in conditions]
    queries = [
        f"SELECT {place} AS cell, id FROM {table.full(reader)} WHERE {text}"
        for place, text in enumerate(conditions)
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
    values_read = {int(fields[0]): fields[1:] for fields in engines.read(reader, table, ["id", *VALUES])}
    cells = [(column, number, value) for column in VALUES for number, value in enumerate(VALUES[column])]
    answers = matches(
        engines, reader, table, [condition(reader, column, value) for column, _, value in cells]
    )
    differ = {}
    for place, (column, number, value) in enumerate(cells):
        value_read = spelt(column, values_read[number][list(VALUES).index(column)])
        # An empty text is null there, and found as null.
        nulls = [row for row, folder in enumerate(VALUES["p"]) if not folder]
        rows = nulls if (column, value) == ("p", None) else [number]
        if value_read != value or sorted(answers[place]) != rows:
            differ[column, value] = f"read as {value_read!r}, found in {answers[place]} and not in {rows}"
    assert set(differ) == different(fmt, writer, reader), differ


ORC = {SPARK: "STORED AS ORC", TRINO: "WITH (format = 'ORC')", FLINK: CLAUSES[FLINK].partition(") ")[2]}


@pytest.mark.operation("changes by others", engine="{owner}")
@pytest.mark.parametrize("owner", SQL_ENGINES)
def test_a_session_that_has_read_a_table_sees_what_others_change(
    owner: str, engines: Engines, matrix_databases: Databases
) -> None:
    """Rows of each engine, and a column less in the middle: a session keeps what it knows of a table."""
    table = matrix_databases.table(HIVE_ORC, f"changed_of_{owner}")
    clause = ORC[owner].format(lower="orc")
    engines.sql(owner, f"CREATE TABLE {table.full(owner)} (a INT, b VARCHAR(8), c VARCHAR(8)) {clause}")
    rows: list[tuple[Any, ...]] = []
    for number, writer in enumerate(SQL_ENGINES):
        values = f"SELECT {number}, CAST('gone' AS VARCHAR(8)), CAST('kept' AS VARCHAR(8))"
        engines.sql(writer, f"INSERT INTO {table.full(writer)} {values}")
        rows.append((number, "gone", "kept"))
        for reader in SQL_ENGINES:
            assert sorted(engines.read(reader, table)) == rows, (writer, reader)
    engines.sql(TRINO, f"ALTER TABLE {table.full(TRINO)} DROP COLUMN b")
    for reader in SQL_ENGINES:
        assert sorted(engines.read(reader, table)) == [(a, c) for a, _, c in rows], reader


# How Spark makes a table of Hive's formats where no format is said, and as rows that it knows.
PLAIN = {
    "columns": "CREATE TABLE {table} (id INT)",
    "rows": "CREATE TABLE {table} AS SELECT 1 AS id",
    "partitions": "CREATE TABLE {table} (id INT) PARTITIONED BY (p STRING)",
}


@pytest.mark.operation("a table without a format: {kind}, altered by trino", engine=SPARK)
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("fmt", [HIVE_PARQUET], ids=str)
def test_spark_sees_what_another_engine_adds_to_a_table_without_a_format(
    fmt: Format, kind: str, engines: Engines, matrix_databases: Databases, endpoints: Endpoints
) -> None:
    """Spark's own kind of table, its default, has a second schema that no other engine changes."""
    table = matrix_databases.table(fmt, f"plain_{kind}_{suffix()}")
    spark, trino = table.full(SPARK), table.full(TRINO)
    engines.spark.sql(PLAIN[kind].format(table=spark))
    engines.trino.sql(f"ALTER TABLE {trino} ADD COLUMN note VARCHAR")
    p = ", 'a'" if kind == "partitions" else ""
    engines.trino.sql(f"INSERT INTO {trino} VALUES (2, 'x'{p})")
    engines.spark.sql(f"INSERT INTO {spark} VALUES (3, 'y'{p})")
    expected = [(2, "x"), (3, "y")] if kind != "rows" else [(1, None), (2, "x"), (3, "y")]
    for reader in SQL_ENGINES:
        assert sorted(engines.read(reader, table, ["id", "note"])) == expected, reader
    assert "format = 'PARQUET'" in engines.trino.value(f"SHOW CREATE TABLE {trino}")
    assert risky.of_table(endpoints.path, table.database, table.name) == []


@pytest.mark.operation("days that are all null, by trino", engine=FLINK)
@NO_DAYS.mark
@pytest.mark.parametrize("fmt", [HIVE_PARQUET], ids=str)
def test_flink_refuses_a_column_in_which_trino_wrote_no_day(
    fmt: Format, engines: Engines, matrix_databases: Databases, note: Callable[[str], None]
) -> None:
    """Without the statistics that Trino writes beside the rows, Flink reads them."""
    table, unanalyzed = (matrix_databases.table(fmt, f"{fmt.prefix}_no_days_{number}") for number in (1, 2))
    statement = "CREATE TABLE {} WITH (format = 'PARQUET') AS SELECT 1 AS id, CAST(NULL AS DATE) AS born"
    engines.sql(TRINO, statement.format(table.full(TRINO)))
    note(engines.refuses(FLINK, f"SELECT * FROM {table.full(FLINK)}", NO_DAYS.reason))
    for reader in (SPARK, TRINO):
        assert engines.read(reader, table) == [(1, None)]
    engines.sql(TRINO, "SET SESSION hive.collect_column_statistics_on_write = false")
    engines.sql(TRINO, statement.format(unanalyzed.full(TRINO)))
    engines.sql(TRINO, "RESET SESSION hive.collect_column_statistics_on_write")
    assert engines.read(FLINK, unanalyzed) == [(1, None)]


# What follows the columns of a table with buckets, by who can make one.
BUCKETS = {
    SPARK: "CLUSTERED BY (id) INTO 4 BUCKETS STORED AS {format}",
    TRINO: "WITH (format = '{format}', bucketed_by = ARRAY['id'], bucket_count = 4)",
}
# More than there are buckets.
IN_BUCKETS = range(8)


@pytest.mark.operation("buckets made by {owner}", engine="all")
@pytest.mark.parametrize("owner", BUCKETS)
@pytest.mark.parametrize("fmt", [HIVE_PARQUET, HIVE_ORC], ids=str)
def test_rows_in_buckets_are_read_and_found(
    fmt: Format, owner: str, engines: Engines, matrix_databases: Databases
) -> None:
    """Spark and Trino fill them; Flink's files are of no bucket, which Trino refuses until Spark mends it."""
    table = matrix_databases.table(fmt, f"{fmt.prefix}_buckets_of_{owner}")
    clause = BUCKETS[owner].format(format=fmt.prefix.upper())
    engines.sql(owner, f"CREATE TABLE {table.full(owner)} (id INT, word VARCHAR(8)) {clause}")
    numbers = ", ".join(f"({number})" for number in IN_BUCKETS)
    rows: list[tuple[Any, ...]] = []

    def fill(writer: str) -> None:
        words = f"SELECT id, CAST('{writer}' AS VARCHAR(8)) FROM (VALUES {numbers}) AS x (id)"
        engines.sql(writer, f"INSERT INTO {table.full(writer)} {words}")
        rows.extend((number, writer) for number in IN_BUCKETS)

    def read(*readers: str) -> None:
        for reader in readers:
            assert sorted(engines.read(reader, table)) == sorted(rows), reader
            expected = [[number for number, _ in rows if number == key] for key in IN_BUCKETS]
            conditions = [f"id = {key}" for key in IN_BUCKETS]
            assert matches(engines, reader, table, conditions) == expected, reader

    for writer in (SPARK, TRINO, SPARK):
        fill(writer)
    read(*SQL_ENGINES)
    fill(FLINK)
    read(SPARK, FLINK)
    engines.refuses(TRINO, f"SELECT * FROM {table.full(TRINO)}", "is corrupt")
    copy = matrix_databases.table(fmt, f"{fmt.prefix}_copy_of_{owner}")
    engines.sql(SPARK, f"CREATE TABLE {copy.full(SPARK)} AS SELECT * FROM {table.full(SPARK)}")
    engines.sql(SPARK, f"INSERT OVERWRITE {table.full(SPARK)} SELECT * FROM {copy.full(SPARK)}")
    read(*SQL_ENGINES)
