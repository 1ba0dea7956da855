"""A table that one engine made, another changes, fills and drops; for all pairs of SQL engines."""

from __future__ import annotations

from itertools import permutations

import pytest

from smoke.formats import ICEBERG, Format
from smoke.matrix.cross.dialects import DIALECTS
from smoke.matrix.cross.engines import FLINK, SPARK, SQL_ENGINES, Engines, name
from smoke.matrix.cross.kinds import TEXT
from smoke.matrix.cross.making import AnyEnginesTables
from smoke.namenode import NameNode

ADD = {FLINK: "ADD note {type}"}
# Without this word Spark forgets the table and keeps its files.
PURGE = {SPARK: " PURGE"}
PAIRS = [pytest.param(ICEBERG, *pair, id="-".join(pair)) for pair in permutations(SQL_ENGINES, 2)]


@pytest.mark.operation("change and drop a table of {maker}", engine="{other}")
@pytest.mark.parametrize(("fmt", "maker", "other"), PAIRS)
def test_iceberg(  # noqa: PLR0913, PLR0917 (fixtures and a pair)
    fmt: Format, maker: str, other: str, iceberg: AnyEnginesTables, engines: Engines, namenode: NameNode
) -> None:
    table = iceberg.name()
    assert table.format is fmt
    theirs = name(other, table)
    engines.sql(maker, f"CREATE TABLE {name(maker, table)} (id INT)")
    engines.sql(maker, f"INSERT INTO {name(maker, table)} VALUES (1)")

    change = ADD.get(other, "ADD COLUMN note {type}").format(type=DIALECTS[other].type(TEXT))
    engines.sql(other, f"ALTER TABLE {theirs} {change}")
    engines.sql(other, f"INSERT INTO {theirs} VALUES (2, 'added')")
    assert sorted(engines.read(maker, table, ["id", "note"])) == [(1, None), (2, "added")]

    location = iceberg.location(table)
    assert location
    assert namenode.files(location)
    engines.sql(other, f"DROP TABLE {theirs}{PURGE.get(other, '')}")
    assert iceberg.location(table) is None
    assert not namenode.files(location)
