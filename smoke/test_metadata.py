"""What a new table leaves behind: rows in the metastore's database, and files in HDFS."""

from __future__ import annotations

from typing import Any

import pytest

from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.formats import CATALOGUED
from suites.testbed.namenode import NameNode
from suites.testbed.nodes import Nodes

# PostgreSQL folds names to lower case unless they are quoted, and the metastore's are upper case.
TABLE = """
SELECT t."TBL_NAME", t."TBL_TYPE", d."DB_LOCATION_URI", s."LOCATION", s."INPUT_FORMAT",
  (SELECT json_object_agg(p."PARAM_KEY", p."PARAM_VALUE") FROM "TABLE_PARAMS" p
    WHERE p."TBL_ID" = t."TBL_ID") AS parameters,
  (SELECT json_object_agg(p."PARAM_KEY", p."PARAM_VALUE") FROM "SERDE_PARAMS" p
    WHERE p."SERDE_ID" = s."SERDE_ID") AS serde,
  (SELECT json_agg(json_build_array(c."COLUMN_NAME", c."TYPE_NAME") ORDER BY c."INTEGER_IDX")
    FROM "COLUMNS_V2" c WHERE c."CD_ID" = s."CD_ID") AS columns
FROM "TBLS" t JOIN "DBS" d ON d."DB_ID" = t."DB_ID" JOIN "SDS" s ON s."SD_ID" = t."SD_ID"
WHERE d."NAME" = '{database}' AND t."TBL_NAME" = '{name}'
"""
COLUMNS = [["id", "int"], ["customer", "string"], ["day", "date"], ["amount", "decimal(10,2)"]]


@pytest.fixture
def rows(table: Table, nodes: Nodes, endpoints: Endpoints) -> list[dict[str, Any]]:
    query = TABLE.format(database=table.database, name=table.name)
    return nodes.select(endpoints.postgresql.host, endpoints.database, endpoints.database_role, query)


@pytest.mark.operation("metastore rows")
def test_the_metastore_stores_the_table(
    rows: list[dict[str, Any]], table: Table, databases: Databases, endpoints: Endpoints
) -> None:
    expected = CATALOGUED[table.format]
    [row] = rows
    authority = endpoints.warehouse.removesuffix(endpoints.root)
    assert row["DB_LOCATION_URI"] == authority + databases.path(table.format)
    assert row["TBL_TYPE"] == expected.table_type
    assert row["INPUT_FORMAT"] == expected.input_format
    assert row["parameters"].items() >= expected.parameters.items()
    place = ({**row, **(row["serde"] or {})})[expected.real_path]
    assert place == authority + table.path
    assert place.startswith(f"{authority}{databases.path(table.format)}/{table.name}")
    assert row["columns"] == (expected.columns or COLUMNS)


@pytest.mark.operation("files")
def test_the_table_has_data_and_a_log(namenode: NameNode, table: Table) -> None:
    files = {file.path.removeprefix(f"{table.path}/") for file in namenode.files(table.path)}
    log = {path for path in files if path.startswith(f"{table.format.log_folder}/")}
    assert log
    assert any(path.endswith(".parquet") for path in files - log), files
