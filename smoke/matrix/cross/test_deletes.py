"""Rows that one engine deletes or changes are gone or changed for every other, however it wrote that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from smoke.formats import DELTA, ICEBERG, Format
from smoke.matrix.cross.engines import READERS, SPARK, TRINO, Engines, name
from smoke.tables import Table, Tables

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
        _engines.sql(way.engine, f"DELETE FROM {name(way.engine, table)} WHERE id % 4 = 0")
        _engines.sql(way.engine, f"UPDATE {name(way.engine, table)} SET state = 'changed' WHERE id = 5")
        return table

    return thin


@pytest.mark.operation("rows deleted by {way}", engine="{reader}")
@pytest.mark.parametrize(("fmt", "way", "reader"), PAIRS)
def test_deleted_rows_are_gone(
    fmt: Format, way: Way, reader: str, thinned: Callable[[Way], Table], engines: Engines
) -> None:
    assert fmt is way.fmt
    assert sorted(engines.read(reader, thinned(way), ["id", "state"])) == LEFT


@pytest.mark.operation("delete files of {way}")
@pytest.mark.parametrize("way", [way for way in WAYS if way.fmt is ICEBERG], ids=str)
def test_what_the_deletes_were_written_as(
    way: Way, thinned: Callable[[Way], Table], engines: Engines
) -> None:
    files = engines.spark.value(f"SELECT count(*) FROM {thinned(way)}.delete_files")
    assert bool(files) == way.files
