"""Views of one engine in another: where they work, and how they are refused where they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from suites.matrix.cross.engine_tables import EngineTables
from suites.matrix.cross.engines import SPARK, TRINO, Engines
from suites.matrix.cross.limits import marks
from suites.matrix.cross.views import READERS, VIEWS, View
from suites.testbed.tables import suffix

PAIRS = [
    pytest.param(
        view,
        reader,
        id=f"{view}-{reader}",
        marks=marks(view.refused.get(reader)),
    )
    for view in VIEWS
    for reader in READERS
]


@pytest.fixture(scope="module")
def numbers(_engines: Engines, iceberg: EngineTables) -> dict[str, str]:
    """What the views show a part of: a table of Iceberg, and one of Hive."""
    query = "SELECT CAST(id AS INT) AS id FROM range(1, 4, 1, 1)"
    iceberg_table, hive_table = iceberg.new("", query), iceberg.name()
    _engines.spark.sql(f"CREATE TABLE spark_catalog.{hive_table.short} USING parquet AS {query}")
    return {"iceberg": iceberg_table.short, "hive": hive_table.short}


@pytest.fixture(scope="module")
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
@pytest.mark.parametrize(("view", "reader"), PAIRS, indirect=["view"])
def test_a_view(reader: str, view: tuple[View, str], engines: Engines, note: Callable[[str], None]) -> None:
    kind, short = view
    catalog = "iceberg" if kind.catalog == "iceberg" else READERS[reader]
    if reader == SPARK and kind.maker == TRINO:
        catalog = READERS[SPARK]
    query = f"SELECT id FROM {catalog}.{short}"
    if limit := kind.refused.get(reader):
        note(engines.refuses(reader, query, limit.reason))
    else:
        assert sorted(engines.sql(reader, query)) == [(2,), (3,)]
