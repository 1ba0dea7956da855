"""Rows that one engine deletes or changes are gone or changed for every other, however it wrote that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from lakehouse.tables import risky
from suites.matrix.cross.engines import DUCKDB, FLINK, POLARS, PYICEBERG, READERS, SPARK, TRINO, Engines
from suites.matrix.cross.limits import marks, refused
from suites.testbed.databases import Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines import telling
from suites.testbed.formats import DELTA, ICEBERG, Format
from suites.testbed.tables import Tables

MODES = ("delete", "update", "merge")
LEFT = [(id_, "changed" if id_ == 5 else "first") for id_ in range(1, 21) if id_ % 4]


@dataclass(frozen=True)
class Way:
    """Who deletes and how: `files` tells whether the deleted rows are listed in files of their own."""

    engine: str
    fmt: Format
    mode: str = ""
    files: bool = False

    def __str__(self) -> str:
        return f"{self.engine}, {self.mode}" if self.mode else self.engine


WAYS = (
    Way(SPARK, ICEBERG, "merge-on-read", files=True),
    Way(SPARK, ICEBERG, "copy-on-write"),
    Way(TRINO, ICEBERG, files=True),
    Way(SPARK, DELTA),
)
PAIRS = [
    pytest.param(way.fmt, way, reader, id=f"{way.fmt}-{way}-{reader}")
    for way in WAYS
    for reader in READERS[way.fmt]
]


# What a delete file holds, in Iceberg's metadata: rows by their place (1) or by columns that are equal.
EQUALITY_DELETES = 2
UPSERTED = [(id_, "first" if id_ % 4 else "changed") for id_ in range(1, 21)]
# PyIceberg, and what reads through it.
UNREAD = dict.fromkeys(
    (PYICEBERG, DUCKDB, POLARS),
    refused(
        r"PyIceberg does not yet support equality deletes",
        "https://github.com/apache/iceberg-python/issues/1210",
    ),
)
UPSERT_READERS = [
    pytest.param(ICEBERG, reader, id=f"{ICEBERG}-{reader}", marks=marks(UNREAD.get(reader)))
    for reader in READERS[ICEBERG]
]


@pytest.fixture(scope="module")
def thinned(_engines: Engines, makers: dict[str, Tables]) -> Callable[[Way], Table]:
    """Give the table in which every fourth row was deleted and one was changed."""

    @cache
    def thin(way: Way) -> Table:
        properties = ", ".join(f"'write.{mode}.mode' = '{way.mode}'" for mode in MODES)
        table = makers[way.fmt.name].new(
            f"TBLPROPERTIES ({properties})" if way.mode else "",
            "SELECT CAST(id AS INT) AS id, 'first' AS state FROM range(1, 21, 1, 2)",
        )
        _engines.sql(way.engine, f"DELETE FROM {table.full(way.engine)} WHERE id % 4 = 0")
        _engines.sql(way.engine, f"UPDATE {table.full(way.engine)} SET state = 'changed' WHERE id = 5")
        return table

    return thin


@pytest.mark.operation("rows deleted by {way}", engine="{reader}")
@pytest.mark.parametrize(("fmt", "way", "reader"), PAIRS)
def test_deleted_rows_are_gone(
    fmt: Format, way: Way, reader: str, thinned: Callable[[Way], Table], engines: Engines
) -> None:
    assert fmt is way.fmt
    assert sorted(engines.read(reader, thinned(way), ["id", "state"])) == LEFT


def upsert(engines: Engines, iceberg: Tables) -> Table:
    """Write with Flink every fourth row of a table twice: the first one is gone by its key."""
    table = iceberg.name()
    engines.flink.sql(
        f"CREATE TABLE {table.full(FLINK)} (id INT NOT NULL, state STRING, PRIMARY KEY (id) NOT ENFORCED)"
        " WITH ('format-version' = '2', 'write.upsert.enabled' = 'true')"
    )
    for state, step in (("first", 1), ("changed", 4)):
        rows = ", ".join(f"({id_}, '{state}')" for id_ in range(step, 21, step))
        engines.flink.sql(f"INSERT INTO {table.full(FLINK)} VALUES {rows}")
    return table


@pytest.fixture(scope="module")
def upserted(_engines: Engines, iceberg: Tables) -> Table:
    """A table of Flink's upserts that is not changed any more."""
    return upsert(_engines, iceberg)


@pytest.mark.operation("rows upserted by flink", engine="{reader}")
@pytest.mark.parametrize(("fmt", "reader"), UPSERT_READERS)
def test_upserted_rows_are_there_once(
    fmt: Format,
    reader: str,
    upserted: Table,
    engines: Engines,
    note: Callable[[str], None],
) -> None:
    assert upserted.format is fmt
    if limit := UNREAD.get(reader):
        with pytest.raises(ValueError, match=limit.reason) as refusal:
            engines.read(reader, upserted, ["id", "state"])
        note(telling(str(refusal.value), limit.reason))
    else:
        assert sorted(engines.read(reader, upserted, ["id", "state"])) == UPSERTED


@pytest.mark.operation("delete files of flink, upsert")
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_an_upsert_writes_what_is_gone_by_its_key(
    fmt: Format, upserted: Table, engines: Engines, endpoints: Endpoints
) -> None:
    """The check of risky tables finds it."""
    assert upserted.format is fmt
    kinds = engines.spark.sql(f"SELECT DISTINCT content FROM {upserted}.delete_files")
    assert kinds == [(EQUALITY_DELETES,)]
    risks = [
        finding.risk.feature for finding in risky.find(endpoints.path) if finding.table == upserted.short
    ]
    assert risks == ["equality deletes"]


@pytest.mark.operation("compact what flink upserted", engine=TRINO)
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_everybody_reads_upserts_that_were_compacted(fmt: Format, iceberg: Tables, engines: Engines) -> None:
    table = upsert(engines, iceberg)
    assert table.format is fmt
    engines.trino.sql(f"ALTER TABLE {table.full(TRINO)} EXECUTE optimize")
    rows_by_reader = {
        reader: sorted(engines.read(reader, table, ["id", "state"])) for reader in READERS[ICEBERG]
    }
    assert rows_by_reader == dict.fromkeys(READERS[ICEBERG], UPSERTED)


@pytest.mark.operation("delete files of {way}")
@pytest.mark.parametrize("way", [way for way in WAYS if way.fmt is ICEBERG], ids=str)
def test_what_the_deletes_were_written_as(
    way: Way, thinned: Callable[[Way], Table], engines: Engines
) -> None:
    files = engines.spark.value(f"SELECT count(*) FROM {thinned(way)}.delete_files")
    assert bool(files) == way.files
