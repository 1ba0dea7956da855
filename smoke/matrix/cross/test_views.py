"""Views of one engine in another: where they work, and how they are refused where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from smoke.matrix.cross.engines import FLINK, SPARK, TRINO, Engines
from smoke.matrix.cross.making import AnyEnginesTables
from smoke.tables import suffix

_HIVE = "https://trino.io/docs/476/connector/hive.html#hive-views"
_ICEBERG = "https://trino.io/docs/476/connector/iceberg.html#views"
_OF_TRINO = "https://github.com/trinodb/trino/issues/13080"


@dataclass(frozen=True)
class View:
    """A kind of view: who makes it, in which catalog, and what it shows a part of.

    `refused` holds the words with which an engine refuses to read it; the other engines must read it. `link`
    is where that is explained.
    """

    kind: str
    maker: str
    catalog: str
    base: str
    refused: dict[str, str]
    link: str

    def __str__(self) -> str:
        return self.kind


_UNKNOWN_TO_FLINK = {FLINK: r"not found within 'iceberg"}
_NO_SQL_FOR_SPARK = {SPARK: r"PARSE_SYNTAX_ERROR"}
VIEWS = (
    View("hive-view", SPARK, "spark_catalog", "{hive}", _UNKNOWN_TO_FLINK, _HIVE),
    View(
        "hive-view-that-names-a-catalog",
        SPARK,
        "spark_catalog",
        "iceberg.{iceberg}",
        {TRINO: r"Failed to translate Hive view"} | _UNKNOWN_TO_FLINK,
        _HIVE,
    ),
    View(
        "iceberg-view",
        SPARK,
        "iceberg",
        "iceberg.{iceberg}",
        {TRINO: r"Not an Iceberg table"} | _UNKNOWN_TO_FLINK,
        _ICEBERG,
    ),
    View("trino-view", TRINO, "hive", "iceberg.{iceberg}", _NO_SQL_FOR_SPARK | _UNKNOWN_TO_FLINK, _OF_TRINO),
    View(
        "trino-view-in-iceberg",
        TRINO,
        "iceberg",
        "hive.{hive}",
        _NO_SQL_FOR_SPARK | _UNKNOWN_TO_FLINK,
        _OF_TRINO,
    ),
)
# Where an engine finds what another made: views are Hive's to Spark, unless they are Iceberg's.
_CATALOGS = {SPARK: "spark_catalog", TRINO: "hive", FLINK: "iceberg"}


@pytest.fixture(scope="module")
def numbers(_engines: Engines, iceberg: AnyEnginesTables) -> dict[str, str]:
    """What the views show a part of: a table of Iceberg, and one of Hive."""
    query = "SELECT CAST(id AS INT) AS id FROM range(1, 4, 1, 1)"
    made, hive = iceberg.new("", query), iceberg.name()
    _engines.spark.sql(f"CREATE TABLE spark_catalog.{hive.short} USING parquet AS {query}")
    return {"iceberg": made.short, "hive": hive.short}


@pytest.fixture(scope="module", params=VIEWS, ids=str)
def view(
    request: pytest.FixtureRequest, _engines: Engines, numbers: dict[str, str]
) -> Iterator[tuple[View, str]]:
    """A view, and its name with its database."""
    kind: View = request.param
    short = f"{numbers['iceberg'].partition('.')[0]}.view_{suffix()}"
    base = kind.base.format(**numbers)
    _engines.sql(kind.maker, f"CREATE VIEW {kind.catalog}.{short} AS SELECT id FROM {base} WHERE id > 1")
    yield kind, short
    _engines.sql(kind.maker, f"DROP VIEW {kind.catalog}.{short}")


@pytest.mark.operation("read a {view}", engine="{reader}")
@pytest.mark.parametrize("reader", _CATALOGS)
def test_a_view(reader: str, view: tuple[View, str], engines: Engines) -> None:
    kind, short = view
    catalog = "iceberg" if kind.catalog == "iceberg" else _CATALOGS[reader]
    if reader == SPARK and kind.maker == TRINO:
        catalog = _CATALOGS[SPARK]
    query = f"SELECT id FROM {catalog}.{short}"
    if reader in kind.refused:
        engines.refuses(reader, query, kind.refused[reader])
    else:
        assert sorted(engines.sql(reader, query)) == [(2,), (3,)]
