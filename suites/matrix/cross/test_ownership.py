"""A writer creates a table, another changes, fills and drops it; for all pairs of writers of a format."""

from __future__ import annotations

from itertools import permutations

import pytest

from suites.matrix.cross.engine_tables import EngineTables
from suites.matrix.cross.engines import Engines
from suites.matrix.cross.lifecycles import LIFECYCLES
from suites.testbed import formats
from suites.testbed.databases import Databases
from suites.testbed.namenode import NameNode
from suites.testbed.tables import suffix

PAIRS = [
    pytest.param(formats.BY_NAME[fmt], maker, successor, id=f"{fmt}-{maker}-{successor}")
    for (fmt, maker), (successor_format, successor) in permutations(LIFECYCLES, 2)
    if fmt == successor_format
]


@pytest.mark.operation("change and drop a table of {maker}", engine="{successor}")
@pytest.mark.parametrize(("fmt", "maker", "successor"), PAIRS)
def test_a_table_belongs_to_nobody(  # noqa: PLR0913, PLR0917 (fixtures and a pair)
    fmt: formats.Format,
    maker: str,
    successor: str,
    matrix_databases: Databases,
    iceberg: EngineTables,
    engines: Engines,
    namenode: NameNode,
) -> None:
    table = matrix_databases.table(fmt, f"owned_{suffix()}")
    first, second = LIFECYCLES[fmt.name, maker], LIFECYCLES[fmt.name, successor]
    first.make(engines, table)
    second.change(engines, table)
    expected = [(1, None), (2, "added")] if second.alters else [(1,), (2,)]
    columns = ["id", "note"] if second.alters else ["id"]
    assert sorted(engines.read(maker, table, columns)) == expected

    location = iceberg.location(table)
    assert location
    assert namenode.files(location)
    second.drop(engines, table)
    assert iceberg.location(table) is None
    assert bool(namenode.files(location)) is first.keeps
