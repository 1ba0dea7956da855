"""`lakehouse catalog` of the cluster, as a person starts it: tables of three formats come, change and go."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakehouse.run import ROOT
from suites.testbed.engines.trino import Trino
from tests.cluster import looking

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

LIMIT_SECONDS = 150


@dataclass(frozen=True)
class History:
    """A history of the cluster's catalog in a repository of the test's."""

    inventory: str
    store: Path

    def run(self, *words: str, code: int = 0) -> Any:
        """Return what the verb says to programs; it has to end with this code."""
        argv = [sys.executable, "-m", "lakehouse.cli", "catalog", *words, "--json"]
        done = subprocess.run(
            [*argv, "-i", self.inventory, "--store", str(self.store)],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def changes(self, schema: str, *words: str, code: int = 0) -> dict[tuple[str, ...], tuple[Any, Any]]:
        """Return values before and after, by action and what changed in a database that is the test's own."""
        return {
            (
                one["action"],
                one["kind"],
                *(one[key] for key in ("table", "partition", "field") if key in one),
            ): (
                one["before"],
                one["after"],
            )
            for one in self.run(*words, code=code)["changes"]
            if one.get("database") == schema
        }


@pytest.fixture
def history(pytestconfig: pytest.Config, tmp_path: Path) -> History:
    return History(pytestconfig.getoption("--inventory"), tmp_path / "catalog.git")


@pytest.fixture
def tables(history: History, trino: Trino, schema: str) -> Iterator[str]:
    """A database with a table of each format: `ice`, `days` with two partitions, and `log` of Delta."""
    trino.sql(f"create table iceberg.{schema}.ice as select 1 a")
    trino.sql(
        f"create table hive.{schema}.days (a integer, ds varchar)"
        " with (partitioned_by = array['ds'], format = 'PARQUET')"
    )
    trino.sql(f"insert into hive.{schema}.days values (1, '2026-01-01'), (2, '2026-01-02')")
    spark(history, f"CREATE TABLE {schema}.log USING delta AS SELECT 1 AS a")
    yield schema
    trino.sql(f"drop table if exists hive.{schema}.days")
    spark(history, f"DROP TABLE IF EXISTS {schema}.log")


def spark(history: History, *statements: str) -> None:
    done = looking.look(
        "sql",
        history.inventory,
        "--engine",
        "spark",
        "-f",
        "-",
        seconds=LIMIT_SECONDS,
        given=";\n".join(statements),
    )
    assert done.code == 0, done.err


@pytest.mark.longdrill
def test_tables_of_three_formats_come_change_and_go(history: History, trino: Trino, tables: str) -> None:
    first = history.run("commit")
    assert first["outcome"] == "OK", first["findings"]
    # The kit's metastore is the standalone release, which cannot carry the listener.
    assert first["event"] is None
    assert history.run("commit")["changed"] is False
    versions = {
        name: history.run("show", "HEAD", f"{tables}.{name}")["document"]["data"]
        for name in ("ice", "days", "log")
    }
    assert (versions["days"], versions["log"]) == ({"format": "hive"}, {"format": "delta", "version": "0"})
    assert versions["ice"].keys() >= {"format", "metadata", "snapshot"}
    assert history.changes(tables, "show")["added", "table", "days"][1]["storage"]["columns"]

    trino.sql(f"insert into iceberg.{tables}.ice values (2)")
    trino.sql(f"insert into hive.{tables}.days values (3, '2026-01-03')")
    trino.sql(f"alter table hive.{tables}.days add column b varchar")
    spark(history, f"INSERT INTO {tables}.log VALUES (2)")
    drift = history.changes(tables, "diff", "--expect", "HEAD", code=1)
    assert drift.keys() == {
        ("changed", "table", "ice", "data"),
        ("added", "partition", "days", "ds=2026-01-03"),
        ("changed", "table", "days", "column b"),
        ("changed", "table", "log", "data"),
    }
    assert [one["version"] for one in drift["changed", "table", "log", "data"]] == ["0", "1"]
    was, now = drift["changed", "table", "ice", "data"]
    assert was == versions["ice"]
    assert not set(was.values()) & {now["snapshot"], now["metadata"]}

    history.run("commit", "-m", "more days")
    assert history.changes(tables, "diff", "HEAD~1", "HEAD") == drift
    assert history.changes(tables, "diff", "--expect", "HEAD") == {}
    blamed = {one["field"]: one["commit"] for one in history.run("blame", f"{tables}.days")["fields"]}
    second, _ = (one["id"] for one in history.run("log")["commits"])
    assert (blamed["column b"], blamed["column a"]) == (second, first["commit"])

    trino.sql(f"drop table iceberg.{tables}.ice")
    trino.sql(f"drop table hive.{tables}.days")
    gone = history.changes(tables, "diff", "--expect", "HEAD", code=1)
    assert gone.keys() == {("removed", "table", "ice"), ("removed", "table", "days")}
    assert history.run("fsck")["findings"] == []
