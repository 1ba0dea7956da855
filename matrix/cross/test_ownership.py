"""A table that one writer made, another changes, fills and drops; for all pairs of writers of a format."""

from __future__ import annotations

from itertools import permutations

import pytest

from matrix.cross.engine_tables import EngineTables
from matrix.cross.engines import Engines
from matrix.cross.lifecycles import LIFECYCLES
from testbed import formats
from testbed.databases import Databases
from testbed.namenode import NameNode
from testbed.tables import suffix

PAIRS = [
    pytest.param(formats.BY_NAME[fmt], maker, other, id=f"{fmt}-{maker}-{other}")
    for (fmt, maker), (same, other) in permutations(LIFECYCLES, 2)
    if fmt == same
]


@pytest.mark.operation("change and drop a table of {maker}", engine="{other}")
@pytest.mark.parametrize(("fmt", "maker", "other"), PAIRS)
def test_a_table_belongs_to_nobody(  # noqa: PLR0913, PLR0917 (fixtures and a pair)
    fmt: formats.Format,
    maker: str,
    other: str,
    matrix_databases: Databases,
    iceberg: EngineTables,
    engines: Engines,
    namenode: NameNode,
) -> None:
    table = matrix_databases.table(fmt, f"owned_{suffix()}")
    made, taken = LIFECYCLES[fmt.name, maker], LIFECYCLES[fmt.name, other]
    made.make(engines, table)
    taken.change(engines, table)
    expected = [(1, None), (2, "added")] if taken.alters else [(1,), (2,)]
    columns = ["id", "note"] if taken.alters else ["id"]
    assert sorted(engines.read(maker, table, columns)) == expected

    location = iceberg.location(table)
    assert location
    assert namenode.files(location)
    taken.drop(engines, table)
    assert iceberg.location(table) is None
    assert bool(namenode.files(location)) is made.keeps
