"""The queries of each command would call a stranger's functions: the cluster's test can fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backup import catalog as backup_catalog
from lakehouse.catalog import query
from lakehouse.commands.metastore import check as metastore
from lakehouse.console import look
from lakehouse.doctor import probes
from lakehouse.status import questions
from tests import strangers
from tests.unit.metastore_database import Database, server

ROWS = """
insert into "CDS" values (1);
insert into "SERDES" ("SERDE_ID") values (1);
insert into "SDS" ("SD_ID", "CD_ID", "SERDE_ID", "IS_COMPRESSED", "IS_STOREDASSUBDIRECTORIES", "NUM_BUCKETS",
  "LOCATION") values (1, 1, 1, false, false, 0, 'hdfs://lake/t');
insert into "TBLS" ("TBL_ID", "CREATE_TIME", "DB_ID", "LAST_ACCESS_TIME", "RETENTION", "SD_ID", "TBL_NAME",
  "TBL_TYPE", "IS_REWRITE_ENABLED") values (1, 0, 1, 0, 0, 1, 't', 'MANAGED_TABLE', false);
insert into "TABLE_PARAMS" values (1, 'table_type', 'ICEBERG');
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with server() as found:
        found.run(ROWS)
        found.run(strangers.MAKE)
        yield found
        found.run(strangers.REMOVE)


@pytest.mark.parametrize(
    "sql",
    [
        questions._SQL, probes._SQL, look._SQL, metastore._SQL, query.script(),
        ";".join(backup_catalog.QUERIES),
    ],
    ids=["status", "doctor", "console", "metastore check", "catalog", "backup"],
)  # fmt: skip
def test_a_strangers_functions_are_called(sql: str, database: Database) -> None:
    log = database.sockets / "log"
    before = len(list(strangers.callers(log.read_text(encoding="utf-8"))))
    database.run(sql)
    made = list(strangers.callers(log.read_text(encoding="utf-8")))[before:]
    assert set(made) == {("postgres", True, "psql")}
