"""The doctor finds a type that Trino cannot read in a real PostgreSQL with Hive's tables."""

from __future__ import annotations

import json

from lakehouse.doctor import probes
from lakehouse.tables import hive_types
from tests.unit import metastore_database

TABLES = """
INSERT INTO "TBLS" ("TBL_ID", "CREATE_TIME", "DB_ID", "LAST_ACCESS_TIME", "RETENTION", "TBL_NAME", "TBL_TYPE",
    "IS_REWRITE_ENABLED", "SD_ID")
  SELECT 1, 0, "DB_ID", 0, 0, 't', 'MANAGED_TABLE', false, 1 FROM "DBS" WHERE "NAME" = 'default';
INSERT INTO "PARTITION_KEYS" ("TBL_ID", "PKEY_NAME", "PKEY_TYPE", "INTEGER_IDX") VALUES (1, 'p', 'uuid', 0);
INSERT INTO "COLUMNS_V2" ("CD_ID", "COLUMN_NAME", "TYPE_NAME", "INTEGER_IDX") VALUES
  (1, 'a', 'decimal(10,2)', 0), (1, 'b', 'string', 1), (1, 'c', 'struct<x:int>', 2),
  (1, 'd', 'struct<content-type:string>', 3), (1, 'e', 'array<struct<a:b:int>>', 4)
"""
STORAGE = """
INSERT INTO "CDS" ("CD_ID") VALUES (1);
INSERT INTO "SERDES" ("SERDE_ID") VALUES (1);
INSERT INTO "SDS" ("SD_ID", "CD_ID", "SERDE_ID", "NUM_BUCKETS", "IS_COMPRESSED", "IS_STOREDASSUBDIRECTORIES")
  VALUES (1, 1, 1, 0, false, false);
"""


def test_types_that_trino_cannot_read_come_first() -> None:
    with metastore_database.server() as database:
        database.run(STORAGE + TABLES)
        [(name, found)] = [line.split("|", 1) for line in database.run(probes._TYPES).splitlines()]
    assert name == "types"
    columns = json.loads(found)
    assert [one["column"] for one in columns] == ["d", "e", "c", "p"]
    unreadable = [one["column"] for one in columns if hive_types.unreadable(one["type"])]
    assert unreadable == ["d", "e", "p"]
    assert (columns[0]["database"], columns[0]["table"]) == ("default", "t")
