"""A table that is asked for in the wrong catalog of Trino is found in the right one, in every direction."""

from __future__ import annotations

import pytest

from matrix.cross.engine_tables import EngineTables
from matrix.cross.engines import TRINO, Engines
from testbed.databases import Table
from testbed.formats import DELTA, ICEBERG

CATALOGS = ("iceberg", "delta", "hive")


@pytest.fixture(scope="module")
def kinds(_engines: Engines, makers: dict[str, EngineTables]) -> dict[str, Table]:
    """A table of each kind, by the catalog that it belongs to; each holds the name of that catalog."""
    found = {}
    for fmt in (ICEBERG, DELTA):
        found[fmt.name] = makers[fmt.name].new("", f"SELECT '{fmt}' AS kind")
    found["hive"] = makers[ICEBERG.name].name()
    _engines.trino.sql(f"CREATE TABLE hive.{found['hive'].short} AS SELECT 'hive' AS kind")
    return found


@pytest.mark.operation("redirection", engine=TRINO)
@pytest.mark.parametrize("kind", CATALOGS)
@pytest.mark.parametrize("asked", CATALOGS)
def test_every_table_through_every_catalog(
    asked: str, kind: str, kinds: dict[str, Table], engines: Engines
) -> None:
    assert engines.trino.value(f"SELECT kind FROM {asked}.{kinds[kind].short}") == kind


@pytest.mark.operation("redirected write", engine=TRINO)
@pytest.mark.parametrize("asked", ["delta", "hive"])
def test_a_write_is_redirected_too(asked: str, kinds: dict[str, Table], engines: Engines) -> None:
    table = kinds["iceberg"]
    engines.trino.sql(f"INSERT INTO {asked}.{table.short} VALUES '{asked}'")
    assert engines.spark.value(f"SELECT count(*) FROM {table} WHERE kind = '{asked}'") == 1
    engines.trino.sql(f"DELETE FROM {asked}.{table.short} WHERE kind = '{asked}'")
