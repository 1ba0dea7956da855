"""Views of one engine in another: where they work, and how they are refused where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from smoke.matrix.cross.engines import FLINK, SPARK, TRINO, Engines
from smoke.matrix.cross.making import AnyEnginesTables
from smoke.tables import Table, suffix


@dataclass(frozen=True)
class View:
    """A kind of view: who makes it, how its statements begin, and what each engine makes of it.

    `answers` holds for each engine None (it reads the rows) or the words with which it refuses.
    """

    kind: str
    maker: str
    catalog: str
    reads: str
    answers: dict[str, str | None]

    def __str__(self) -> str:
        return self.kind


# Where each engine looks for a view that the metastore holds.
LOOKS = {SPARK: ("spark_catalog", "iceberg"), TRINO: ("hive", "iceberg"), FLINK: ("iceberg",)}
VIEWS = (
    View("hive", SPARK, "spark_catalog", "iceberg", {SPARK: None, TRINO: None, FLINK: "?"}),
    View("iceberg", SPARK, "iceberg", "iceberg", {SPARK: None, TRINO: "?", FLINK: "?"}),
    View("trino-hive", TRINO, "hive", "iceberg", {SPARK: "?", TRINO: None, FLINK: "?"}),
    View("trino-iceberg", TRINO, "iceberg", "iceberg", {SPARK: "?", TRINO: None, FLINK: "?"}),
)


@pytest.fixture(scope="module")
def numbers(iceberg: AnyEnginesTables) -> Table:
    """What the views show a part of."""
    return iceberg.new("", "SELECT CAST(id AS INT) AS id FROM range(1, 4, 1, 1)")


@pytest.fixture(scope="module", params=VIEWS, ids=str)
def view(request: pytest.FixtureRequest, _engines: Engines, numbers: Table) -> Iterator[tuple[View, str]]:
    """A view, and its name with its database."""
    kind: View = request.param
    short = f"{numbers.database}.view_{suffix()}"
    _engines.sql(
        kind.maker,
        f"CREATE VIEW {kind.catalog}.{short} AS SELECT id FROM {kind.reads}.{numbers.short} WHERE id > 1",
    )
    yield kind, short
    _engines.sql(kind.maker, f"DROP VIEW {kind.catalog}.{short}")


@pytest.mark.operation("views of another engine")
@pytest.mark.parametrize("reader", LOOKS)
def test_a_view(reader: str, view: tuple[View, str], engines: Engines) -> None:
    kind, short = view
    query = f"SELECT id FROM {LOOKS[reader][0]}.{short} ORDER BY id"
    print("PROBE", reader, kind, end=" ")
    for cat in LOOKS[reader]:
        try:
            print(cat, engines.sql(reader, f"SELECT id FROM {cat}.{short} ORDER BY id"), end="; ")
        except Exception as e:
            print(cat, repr(str(e)[:300]), end="; ")
    print()
