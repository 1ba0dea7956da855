"""One engine changes the columns of a table; every other reads old and new rows as they are now."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache

import pytest

from smoke.formats import DELTA, ICEBERG, Format
from smoke.lake import Row
from smoke.matrix.cross.engines import READERS, SPARK, TRINO, Engines, name
from smoke.tables import Table, Tables

# By engine: what adds a column, renames one, drops one, makes another of the same name, and widens three.
CHANGES = {
    SPARK: (
        "ADD COLUMN note STRING",
        "RENAME COLUMN name TO title",
        "DROP COLUMN gone",
        "ADD COLUMN gone INT",
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN ratio TYPE DOUBLE",
        "ALTER COLUMN amount TYPE DECIMAL(9, 2)",
    ),
    TRINO: (
        "ADD COLUMN note VARCHAR",
        "RENAME COLUMN name TO title",
        "DROP COLUMN gone",
        "ADD COLUMN gone INTEGER",
        "ALTER COLUMN id SET DATA TYPE BIGINT",
        "ALTER COLUMN ratio SET DATA TYPE DOUBLE",
        "ALTER COLUMN amount SET DATA TYPE DECIMAL(9, 2)",
    ),
}
COLUMNS = ["id", "title", "ratio", "amount", "note", "gone"]
ROWS: list[Row] = [
    (1, "old", 0.5, Decimal("999.99"), None, None),
    (2**40, "new", 1e300, Decimal("9999999.99"), "added", 7),
]
PAIRS = [
    pytest.param(ICEBERG, changer, reader, id=f"iceberg-{changer}-{reader}")
    for changer in CHANGES
    for reader in READERS[ICEBERG]
]


@pytest.fixture(scope="module")
def changed(_engines: Engines, iceberg: Tables) -> Callable[[str], Table]:
    """Give the table that an engine has changed: one row is older than the change, one is newer."""

    @cache
    def change(engine: str) -> Table:
        table = iceberg.name()
        columns = "id INT, name STRING, ratio FLOAT, amount DECIMAL(5, 2), gone STRING"
        _engines.spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg")
        _engines.spark.sql(f"INSERT INTO {table} VALUES (1, 'old', 0.5, 999.99, 'lost')")
        for clause in CHANGES[engine]:
            _engines.sql(engine, f"ALTER TABLE {name(engine, table)} {clause}")
        _engines.sql(
            engine,
            f"INSERT INTO {name(engine, table)} ({', '.join(COLUMNS)})"
            f" VALUES ({2**40}, 'new', 1e300, 9999999.99, 'added', 7)",
        )
        return table

    return change


@pytest.mark.operation("columns changed by {changer}", engine="{reader}")
@pytest.mark.parametrize(("fmt", "changer", "reader"), PAIRS)
def test_iceberg(
    fmt: Format, changer: str, reader: str, changed: Callable[[str], Table], engines: Engines
) -> None:
    assert fmt is ICEBERG
    assert sorted(engines.columns(reader, changed(changer))) == sorted(COLUMNS)
    assert sorted(engines.read(reader, changed(changer), COLUMNS)) == ROWS


@pytest.fixture(scope="module")
def extended(_engines: Engines, delta: Tables) -> Table:
    """A Delta table with a new column: the one change that asks for no feature which others misread."""
    table = delta.name()
    _engines.spark.sql(f"CREATE TABLE {table} (id INT) USING delta")
    _engines.spark.sql(f"INSERT INTO {table} VALUES (1)")
    _engines.spark.sql(f"ALTER TABLE {table} ADD COLUMN note STRING")
    _engines.spark.sql(f"INSERT INTO {table} VALUES (2, 'added')")
    return table


@pytest.mark.operation("column added by spark", engine="{reader}")
@pytest.mark.parametrize("fmt", [DELTA], ids=str)
@pytest.mark.parametrize("reader", READERS[DELTA])
def test_delta(fmt: Format, reader: str, extended: Table, engines: Engines) -> None:
    assert extended.format is fmt
    assert sorted(engines.read(reader, extended, ["id", "note"])) == [(1, None), (2, "added")]
