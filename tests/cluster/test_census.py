"""`lakehouse tables census` of the cluster: three formats, three engines, and only changes are written."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.model import inventory, placement
from lakehouse.run import ROOT
from lakehouse.tables import census_program
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, path_of
from suites.testbed.engines.trino import Trino
from tests.cluster import census_api, looking
from tests.cluster.changing import Verb

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.longdrill]

LIMIT_SECONDS = 300
UNITS = "lakehouse_meta.units"


@dataclass(frozen=True)
class Census:
    """The census of a cluster, and what an engine reads of its units."""

    inventory: str
    trino: Trino

    def run(self, *arguments: str, codes: tuple[int, ...] = (0, 1)) -> dict[str, Any]:
        """Run a command of `lakehouse tables`; tables of other tests may be damaged, which is exit code 1."""
        argv = [sys.executable, "-m", "lakehouse.cli", "tables", *arguments, "--json", "-i", self.inventory]
        done = subprocess.run(
            argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
        )
        assert done.returncode in codes, done.stdout + done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def units(self, database: str, kind: str) -> dict[str, list[dict[str, Any]]]:
        """Return the additional metadata of the units of a type, by table."""
        rows = self.trino.sql(
            f"select table_name, additional_metadata from iceberg.{UNITS}"
            f" where workspace = '{database}' and metadata_type = '{kind}'"
        )
        listed: dict[str, list[dict[str, Any]]] = {}
        for table, facts in rows:
            listed.setdefault(table, []).append(json.loads(facts))
        return listed


@pytest.fixture
def census(pytestconfig: pytest.Config, trino: Trino) -> Census:
    return Census(str(pytestconfig.getoption("--inventory")), trino)


@pytest.fixture
def tables(census: Census, trino: Trino, schema: str) -> Iterator[str]:
    """A database with `ice` in two partitions, `days` with two partitions, and `log` of Delta."""
    trino.sql(
        f"create table iceberg.{schema}.ice with (partitioning = array['p'])"
        " as select * from (values (1, 'a'), (2, 'b')) as t (id, p)"
    )
    trino.sql(
        f"create table hive.{schema}.days (a integer, ds varchar)"
        " with (partitioned_by = array['ds'], format = 'PARQUET')"
    )
    trino.sql(f"insert into hive.{schema}.days values (1, '2026-01-01'), (2, '2026-01-02')")
    spark(census, f"CREATE TABLE {schema}.log USING delta AS SELECT 1 AS a")
    yield schema
    trino.sql(f"drop table if exists hive.{schema}.days")
    spark(census, f"DROP TABLE IF EXISTS {schema}.log")


def spark(census: Census, *statements: str) -> list[Any]:
    done = looking.look(
        "sql", census.inventory, "--engine", "spark", "--json", "-f", "-", seconds=LIMIT_SECONDS,
        given=";\n".join(statements),
    )  # fmt: skip
    assert done.code == 0, done.out + done.err
    results: list[Any] = json.loads(done.out)["results"]
    return results


def test_three_formats_have_units_and_only_changes_are_written(
    census: Census, trino: Trino, tables: str, hdfs: WebHdfs
) -> None:
    first = census.run("census")
    assert not [row for row in first["failed"] if row["table"].startswith(f"{tables}.")]
    about = census.units(tables, "TABLE")
    assert {name: [row["files"], row["rows"]] for name, [row] in about.items()} == {
        "ice": [2, 2], "days": [2, 2], "log": [1, 1],
    }  # fmt: skip
    for name in ("days", "log"):
        [(location,)] = trino.sql(
            f"select location from iceberg.{UNITS} where workspace = '{tables}'"
            f" and table_name = '{name}' and metadata_key = 'GENERAL_INFO'"
        )
        assert about[name][0]["bytes"] == size_of_data(hdfs, str(path_of(location)))
    rows = trino.sql(f'select sum(file_size_in_bytes) from iceberg.{tables}."ice$files"')
    assert about["ice"][0]["bytes"] == rows[0][0]
    assert {name: len(rows) for name, rows in census.units(tables, "ROW_GROUP").items()} == {
        "ice": 2, "days": 2, "log": 1
    }  # fmt: skip

    second = census.run("census")
    assert (second["written"], second["version"]) == (False, first["version"])
    sizes = trino.sql(
        "select sum(table_count), sum(files), min(free_bytes) from iceberg.lakehouse_meta.sizes"
        f" where workspace = '{tables}' group by measured_at order by measured_at desc limit 2"
    )
    # Each census adds its sizes; three tables have five files.
    assert [list(row[:2]) for row in sizes] == [[3, 5], [3, 5]]
    assert min(row[2] for row in sizes) > 0

    files = unit_files(trino, tables)
    trino.sql(f"insert into iceberg.{tables}.ice values (3, 'b')")
    third = census.run("census")
    assert third["changed"] == 1
    assert third["version"] != first["version"]
    replaced = {key for key, paths in files.items() if paths != unit_files(trino, tables).get(key)}
    assert replaced == {("ice", "GENERAL_INFO"), ("ice", "p=b")}

    spark(census, f"DROP TABLE {tables}.log")
    assert census.run("census")["dropped"] == 1
    assert set(census.units(tables, "TABLE")) == {"ice", "days"}


def test_the_python_api_modifies_in_one_commit(census: Census) -> None:
    cluster = placement.read(inventory.load(census.inventory))
    program = replace(
        census_program.reporter(cluster, 90),
        launcher=Path(census_api.__file__).read_text(encoding="utf-8"),
        verb=f"kit_census_{secrets.token_hex(4)}",
    )
    reply = census_program.run(program, LIMIT_SECONDS)
    assert reply.code.value == 0, reply.complaint
    assert reply.document == {
        "no version": None,
        "changed": [True, False],
        "same units": True,
        "projection": [{"owner": "ann"}],
        "nothing": [],
        "replaced files": 1,
        "commits": 1,
        "keys": [["t", "GENERAL_INFO"], ["t", "a"], ["t", "b"], ["u", "GENERAL_INFO"], ["u", "c"]],
        "after a failure": [True, True],
        "pushed": True,
        "purged": 0,
        "history": 14,
        "matches": True,
    }


def test_three_engines_read_the_same_units(census: Census, trino: Trino, tables: str) -> None:
    census.run("census")
    arguments = f"where workspace = '{tables}' group by metadata_type"
    expected = {(str(kind), int(count)) for kind, count in trino.sql(
        f"select metadata_type, count(*) from iceberg.{UNITS} {arguments}"
    )}  # fmt: skip
    statement = f"SELECT metadata_type, count(*) FROM iceberg.{UNITS} {arguments}"
    for engine in ("spark", "flink"):
        done = looking.look(
            "sql", census.inventory, "--engine", engine, "--csv", statement, seconds=LIMIT_SECONDS
        )
        assert done.code == 0, done.err
        rows = [line.split(",") for line in done.out.splitlines()[1:]]
        assert {(kind, int(count)) for kind, count in rows} == expected
    derived = (
        "SELECT (SELECT count(spark_sql) FROM iceberg.lakehouse_meta.findings),"
        " (SELECT sum(size_bytes + table_count) FROM iceberg.lakehouse_meta.sizes)"
    )
    done = looking.look("sql", census.inventory, "--engine", "flink", "--csv", derived, seconds=LIMIT_SECONDS)
    assert done.code == 0, done.err
    assert [int(number) for number in done.out.splitlines()[1].split(",")] == list(trino.sql(derived)[0])


def test_a_damaged_table_is_a_line_and_the_others_are_done(
    census: Census, trino: Trino, tables: str, hdfs: WebHdfs
) -> None:
    trino.sql(f"create table iceberg.{tables}.broken as select 1 a")
    *_, (path,) = trino.sql(
        f'select file from iceberg.{tables}."broken$metadata_log_entries" order by timestamp'
    )
    place = str(path_of(path))
    hdfs.call("PUT", "RENAME", place, destination=f"{place}.away")
    try:
        result = census.run("census", codes=(1,))
        reasons = {row["table"]: row["reason"] for row in result["failed"]}
        assert "is not there" in reasons[f"{tables}.broken"]
        assert {"ice", "days", "log"} <= set(census.units(tables, "TABLE"))
    finally:
        hdfs.call("PUT", "RENAME", f"{place}.away", destination=place)


def test_the_report_finds_partitions_and_directories_without_each_other(  # noqa: PLR0913, PLR0917 -- fixtures
    census: Census, trino: Trino, tables: str, hdfs: WebHdfs, verb: Verb, tmp_path: Path
) -> None:
    census.run("census")
    [(location,)] = trino.sql(
        f"select location from iceberg.{UNITS} where workspace = '{tables}'"
        " and table_name = 'days' and metadata_key = 'GENERAL_INFO'"
    )
    place = str(path_of(location))
    hdfs.call("PUT", "RENAME", f"{place}/ds=2026-01-01", destination=f"{place}/ds=2026-01-09")
    census.run("census")
    report = census.run("report", codes=(1,))
    codes = {
        row["code"] for row in report["tables"] if (row["workspace"], row["table_name"]) == (tables, "days")
    }
    assert codes >= {"partitions_without_directory", "directories_without_partition"}
    assert {row["name"] for row in report["formats"]} == {"iceberg", "delta", "hive"}
    stored = f"select code from iceberg.lakehouse_meta.findings where workspace = '{tables}'"
    assert {code for (code,) in trino.sql(f"{stored} and table_name = 'days'")} == codes
    printed = verb.run("tables", "report", "--out", str(tmp_path / "tables.html"))
    assert "MSCK REPAIR TABLE" in printed.stderr
    page = (tmp_path / "tables.html").read_text(encoding="utf-8")
    assert f"{tables}.days" in page
    # Two censuses of this test have changed something.
    assert "<polyline" in page


def size_of_data(hdfs: WebHdfs, folder: str) -> int:
    """Return the bytes of the files below a folder whose names are not hidden."""
    total = 0
    for row in hdfs.call("GET", "LISTSTATUS", folder)["FileStatuses"]["FileStatus"]:
        name = row["pathSuffix"]
        if name.startswith((".", "_")):
            continue
        total += size_of_data(hdfs, f"{folder}/{name}") if row["type"] == "DIRECTORY" else row["length"]
    return total


def unit_files(trino: Trino, database: str) -> dict[tuple[str, str], frozenset[str]]:
    """Return the files that hold the units of a database, by table and key."""
    rows = trino.sql(
        "select partition.table_name, partition.metadata_key, file_path"
        ' from iceberg.lakehouse_meta."units$files"'
        f" where partition.workspace = '{database}'"
    )
    listed: dict[tuple[str, str], set[str]] = {}
    for table, key, path in rows:
        listed.setdefault((table, key), set()).add(path)
    return {key: frozenset(paths) for key, paths in listed.items()}
