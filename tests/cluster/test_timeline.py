"""`lakehouse tables timeline` of the cluster: commits of four engines in order, once, and in time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from lakehouse.run import ROOT
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, path_of
from suites.testbed.engines.trino import Trino
from suites.testbed.waiting import wait_for
from tests.cluster import looking
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

LIMIT_SECONDS = 120
# From the answer of the engine to the line on the timeline.
MOST_SECONDS = 30
UNIT = "lakehouse-timeline"
PROGRAM = "/usr/local/sbin/lakehouse-timeline"
# Of one look; with one each ten seconds that is a twentieth of a core.
MOST_CPU_SECONDS = 0.5
Note = Callable[[str, object], None]


@dataclass(frozen=True)
class Timeline:
    """The timeline of the cluster, and engines that write."""

    inventory: str
    trino: Trino

    def ask(self, *arguments: str, codes: tuple[int, ...] = (0, 1)) -> dict[str, Any]:
        """Run the command; tables of other tests may be damaged, which is exit code 1."""
        argv = [sys.executable, "-m", "lakehouse.cli", "tables", "timeline", *arguments, "--json"]
        done = subprocess.run(
            [*argv, "-i", self.inventory], cwd=ROOT, capture_output=True, text=True, check=False,
            timeout=LIMIT_SECONDS,
        )  # fmt: skip
        assert done.returncode in codes, done.stdout + done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def actions(self, pattern: str, *arguments: str) -> list[tuple[str, str]]:
        """Return table and action of commits, the oldest first."""
        commits = self.ask(pattern, *arguments)["commits"]
        return [(commit["table"], commit["action"]) for commit in reversed(commits)]

    def spark(self, *statements: str) -> None:
        done = looking.look(
            "sql", self.inventory, "--engine", "spark", "--json", "-f", "-", seconds=LIMIT_SECONDS,
            given=";\n".join(statements),
        )  # fmt: skip
        assert done.code == 0, done.out + done.err


@pytest.fixture
def timeline(pytestconfig: pytest.Config, trino: Trino) -> Timeline:
    return Timeline(str(pytestconfig.getoption("--inventory")), trino)


@pytest.fixture
def host(cluster: Inventory, machines: Machines) -> Machine:
    return machines[placement.read(cluster).active("postgresql").name]


@pytest.fixture
def tables(timeline: Timeline, trino: Trino, schema: str) -> Iterator[str]:
    yield schema
    trino.sql(f"drop table if exists hive.{schema}.days")
    timeline.spark(f"DROP TABLE IF EXISTS {schema}.log")


def test_commits_of_all_formats_are_there_in_time_in_order_and_once(
    timeline: Timeline, trino: Trino, tables: str, record_property: Note
) -> None:
    pattern, waited = f"{tables}.*", list[float]()

    def is_there(table: str, action: str) -> None:
        began = time.monotonic()
        wait_for(
            f"{action} of {table}", lambda: (table, action) in timeline.actions(pattern), seconds=MOST_SECONDS
        )
        waited.append(time.monotonic() - began)

    trino.sql(f"create table iceberg.{tables}.ice (id integer)")
    trino.sql(f"insert into iceberg.{tables}.ice values 1, 2")
    trino.sql(f"delete from iceberg.{tables}.ice where id = 1")
    is_there("ice", "delete")
    timeline.spark(
        f"CREATE TABLE {tables}.log USING delta AS SELECT 1 AS a", f"INSERT INTO {tables}.log VALUES (2)"
    )
    is_there("log", "write")
    trino.sql(
        f"create table hive.{tables}.days (a integer, ds varchar)"
        " with (partitioned_by = array['ds'], format = 'PARQUET')"
    )
    is_there("days", "create")
    trino.sql(f"insert into hive.{tables}.days values (1, '2026-01-01')")
    is_there("days", "add partitions")
    trino.sql(f"alter table iceberg.{tables}.ice rename to iceberg.{tables}.ice2")
    is_there("ice2", "rename")
    trino.sql(f"drop table iceberg.{tables}.ice2")
    is_there("ice2", "drop")

    commits = timeline.ask(pattern)["commits"]
    numbers = [commit["number"] for commit in reversed(commits)]
    assert numbers == sorted(set(numbers))
    keys = [(commit["table"], commit["commit"]) for commit in commits]
    assert len(keys) == len(set(keys))
    inserted = next(commit for commit in commits if commit["details"].get("added_records") == 2)
    assert (inserted["engine"], inserted["author"] != "") == ("trino", True)
    assert inserted["details"]["query"]
    record_property("note", f"on the timeline within {max(waited):.0f} s")


def test_each_table_at_a_moment_is_that_of_its_engine(timeline: Timeline, trino: Trino, tables: str) -> None:
    names = [f"t{number}" for number in range(3)]
    for name in names:
        trino.sql(f"create table iceberg.{tables}.{name} as select 1 as id")
    moment = trino.sql("select to_iso8601(current_timestamp at time zone 'UTC')")[0][0]
    for name in names:
        trino.sql(f"insert into iceberg.{tables}.{name} values 2")

    def at(when: str) -> dict[str, str]:
        commits = timeline.ask(f"{tables}.*", "--at", when)["commits"]
        return {commit["table"]: commit["commit"] for commit in commits}

    wait_for("all commits", lambda: len(timeline.actions(f"{tables}.*")) >= 6, seconds=MOST_SECONDS)
    before = at(moment)
    assert sorted(before) == names
    for name in names:
        read = f"select count(*) from iceberg.{tables}.{name}"
        assert trino.sql(f"{read} for version as of {before[name].partition('@')[0]}")[0][0] == 1
        assert at("0s")[name] != before[name]


@contextmanager
def stopped(host: Machine) -> Iterator[None]:
    """Looks are made by the test alone."""
    host.run(f"systemctl stop {UNIT}.timer {UNIT}.service")
    try:
        yield
    finally:
        host.run(f"systemctl start {UNIT}.timer")


def test_a_damaged_table_is_named_and_the_others_are_looked_at(
    timeline: Timeline, trino: Trino, tables: str, hdfs: WebHdfs, host: Machine
) -> None:
    for name in ("bad", "good"):
        trino.sql(f"create table iceberg.{tables}.{name} as select 1 as id")
    with stopped(host):
        host.run(f"systemctl start {UNIT}")
        for name in ("bad", "good"):
            trino.sql(f"insert into iceberg.{tables}.{name} values 2")
        [(newest,)] = trino.sql(
            f'select file from iceberg.{tables}."bad$metadata_log_entries" order by timestamp desc limit 1'
        )
        path = str(path_of(newest))
        hdfs.call("PUT", "RENAME", path, destination=f"{path}.away")
        try:
            host.run(f"systemctl start {UNIT}")
            troubled = {row["table"]: row["fault"] for row in timeline.ask(f"{tables}.*")["troubled"]}
        finally:
            hdfs.call("PUT", "RENAME", f"{path}.away", destination=path)
        assert "is not there" in troubled["bad"]
        assert "good" not in troubled
        assert timeline.actions(f"{tables}.good") == [("good", "append")] * 2
        host.run(f"systemctl start {UNIT}")
        assert timeline.actions(f"{tables}.bad") == [("bad", "append")] * 2


def test_a_look_that_is_killed_is_completed_by_the_next(
    timeline: Timeline, trino: Trino, tables: str, host: Machine
) -> None:
    trino.sql(f"create table iceberg.{tables}.t as select 1 as id")
    with stopped(host):
        for number in range(10):
            trino.sql(f"insert into iceberg.{tables}.t values {number}")
            host.run(
                f"systemctl start --no-block {UNIT}; sleep 0.{number}; systemctl kill -s KILL {UNIT} || true"
            )
            host.run(f"systemctl stop {UNIT}; systemctl reset-failed {UNIT} || true")
        host.run(f"systemctl start {UNIT}")
        assert timeline.actions(f"{tables}.t") == [("t", "append")] * 11


@pytest.mark.parametrize("account", ["spark", "trino", "nobody"])
def test_other_accounts_do_not_reach_the_database(cluster: Inventory, host: Machine, account: str) -> None:
    port = cluster.hosts[0].variables["lakehouse_ports"]["postgresql"]
    users = cluster.hosts[0].variables["lakehouse_users"]
    refused = host.shell.run(
        "cd / && runuser -u %s -- psql -p %s -U lakehouse_timeline -d lakehouse_timeline -c 'select 1'",
        users.get(account, account), str(port),
    )  # fmt: skip
    assert refused.rc != 0
    assert "authentication failed" in refused.stderr


def test_a_look_at_an_unchanged_lake_is_cheap(
    cluster: Inventory, host: Machine, record_property: Note
) -> None:
    user = cluster.hosts[0].variables["lakehouse_users"]["hive"]
    with stopped(host):
        for _ in range(2):
            printed = host.run(
                f"cd / && runuser -u %s -- bash -c '{{ time -p {PROGRAM} collect; }} 2>&1'", user
            )
        real, *used = (float(line.split()[1]) for line in printed.splitlines()[-3:])
    record_property("note", f"{real:.1f} s, of which {sum(used):.2f} s of a core")
    assert sum(used) < MOST_CPU_SECONDS
