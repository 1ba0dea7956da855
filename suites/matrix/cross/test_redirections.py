"""Trino redirects a table of another catalog to the right one, in every direction."""

from __future__ import annotations

import pytest

from suites.matrix.cross.engine_tables import EngineTables
from suites.matrix.cross.engines import TRINO, Engines
from suites.testbed.databases import Table
from suites.testbed.formats import DELTA, ICEBERG

CATALOGS = ("iceberg", "delta", "hive")


@pytest.fixture(scope="module")
def kinds(_engines: Engines, makers: dict[str, EngineTables]) -> dict[str, Table]:
    """Create a table of each kind, by its catalog, whose name is the table's row."""
    tables = {}
    for fmt in (ICEBERG, DELTA):
        tables[fmt.name] = makers[fmt.name].new("", f"SELECT '{fmt}' AS kind")
    tables["hive"] = makers[ICEBERG.name].name()
    _engines.trino.sql(f"CREATE TABLE hive.{tables['hive'].short} AS SELECT 'hive' AS kind")
    return tables


@pytest.mark.operation("redirection", engine=TRINO)
@pytest.mark.parametrize("kind", CATALOGS)
@pytest.mark.parametrize("catalog", CATALOGS)
def test_every_table_through_every_catalog(
    catalog: str, kind: str, kinds: dict[str, Table], engines: Engines
) -> None:
    assert engines.trino.value(f"SELECT kind FROM {catalog}.{kinds[kind].short}") == kind


@pytest.mark.operation("redirected write", engine=TRINO)
@pytest.mark.parametrize("catalog", ["delta", "hive"])
def test_a_write_is_redirected_too(catalog: str, kinds: dict[str, Table], engines: Engines) -> None:
    table = kinds["iceberg"]
    engines.trino.sql(f"INSERT INTO {catalog}.{table.short} VALUES '{catalog}'")
    assert engines.spark.value(f"SELECT count(*) FROM {table} WHERE kind = '{catalog}'") == 1
    engines.trino.sql(f"DELETE FROM {catalog}.{table.short} WHERE kind = '{catalog}'")
