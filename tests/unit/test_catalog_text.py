"""Text of the catalog that is no number fails no query.

A user of one table writes it, and the query reads all tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from backup import catalog as backup_catalog
from lakehouse.catalog import query
from lakehouse.console import look
from lakehouse.console.view import parse_tables
from lakehouse.doctor import probes
from lakehouse.run import ROOT
from lakehouse.status import questions, reading
from tests.unit import metastore_database
from tests.unit.metastore_database import Database

HOSTILE = (
    "abc",
    "",
    " ",
    "-1",
    "-" + "9" * 30,
    "9" * 30,
    "9" * 19,
    "1e9",
    "0x10",
    "1700000000000\n",
    "\u0661",
    "NaN",
)
TABLE = """
INSERT INTO "TBLS" ("TBL_ID", "CREATE_TIME", "DB_ID", "LAST_ACCESS_TIME", "RETENTION", "TBL_NAME", "TBL_TYPE",
                    "IS_REWRITE_ENABLED")
VALUES ({number}, 0, 1, 0, 0, 't{number}', 'EXTERNAL_TABLE', false)"""
PARAMETER = """INSERT INTO "TABLE_PARAMS" VALUES ({number}, '{name}', '{value}')"""
GOOD = 1_700_000_000_000
# A conversion to a number or a time in SQL, with the last word of what is converted.
CAST = re.compile(
    r"(\w+)[\s'\")(]*::(?:bigint|int|integer|smallint|numeric|float8|real|double|timestamp\w*|date|interval)\b"
    r"|(CAST)\(|\b(to_(?:number|timestamp|date))\("
)
# Every one in the SQL that reads the catalog, and why text that a user writes does not fail it.
CASTS = {
    ("lakehouse/status/questions.py", "value"): "of as many digits as a bigint has",
    ("lakehouse/catalog/query.py", "NULL"): "no text",
    ("lakehouse/catalog/query.py", "key"): "a TBL_ID that the same script has written",
    ("lakehouse/catalog/query.py", "tables"): "numbers that the same script has read",
    ("lakehouse/catalog/query.py", "transaction_timestamp"): "no text",
    ("lakehouse/catalog/ranges.py", "32"): "bits of a checksum",
    ("lakehouse/census/report.py", "CAST"): "try_cast of text; numbers of the program",
    ("lakehouse/doctor/probes.py", "max_connections"): "a setting of the server",
    ("lakehouse/doctor/probes.py", "superuser_reserved_connections"): "a setting of the server",
    **{
        ("lakehouse/timeline/schema.py", name): "numbers of the collector; another table is looked at"
        for name in ("source", "created", "time_ms", "to_timestamp", "1000000")
    },
    ("lakehouse/timeline/question.py", "to_timestamp"): "a number of the program",
}  # fmt: skip
READERS = ("lakehouse/**/*.py", "backup/*.py")


@pytest.fixture(scope="module")
def catalog() -> Iterator[Database]:
    with metastore_database.server() as database:
        for number, value in enumerate([*HOSTILE, str(GOOD), str(GOOD - 1)], start=1):
            database.run(TABLE.format(number=number))
            for name in ("current-snapshot-timestamp-ms", "numRows", "totalSize", "transient_lastDdlTime"):
                database.run(PARAMETER.format(number=number, name=name, value=value))
            database.run(PARAMETER.format(number=number, name="table_type", value="ICEBERG"))
        yield database


def test_status_counts_tables_whose_properties_are_no_numbers(catalog: Database) -> None:
    found = reading.tables(catalog.run(questions._SQL))
    [iceberg] = found.tables
    assert (iceberg.format, iceberg.count, iceberg.committed) == ("iceberg", len(HOSTILE) + 2, GOOD / 1000)


def test_the_console_lists_them(catalog: Database) -> None:
    assert len(parse_tables(catalog.run(look._SQL))) == len(HOSTILE) + 2


def test_the_doctor_reads_beside_them(catalog: Database) -> None:
    assert catalog.run(probes._SQL)


def test_a_backup_and_a_commit_read_them(catalog: Database) -> None:
    assert sum(len(catalog.run(one).splitlines()) for one in backup_catalog.QUERIES) > len(HOSTILE)
    assert list(catalog.lines(query.script()))


def test_every_conversion_of_text_in_sql_is_known() -> None:
    found = {
        (str(path.relative_to(ROOT)), next(filter(None, hit.groups())))
        for pattern in READERS
        for path in ROOT.glob(pattern)
        for hit in CAST.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == CASTS.keys()
