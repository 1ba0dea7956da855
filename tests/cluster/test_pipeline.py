"""The pipeline on a cluster: from files to gold, a kill in the middle, and the commands of its page."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lakehouse.model.inventory import Inventory
from lakehouse.run import ROOT
from pipeline.sources import FLIGHTS
from plugins.module_utils.lakehouse.webhdfs import WebHdfs
from suites.testbed.engines.trino import Trino
from suites.testbed.waiting import wait_for
from tests import pages
from tests.cluster import looking
from tests.cluster.machines import Machine, Machines
from tests.unit.flight_lines import line

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.longdrill]

PAGE = ROOT / "docs" / "pipeline.md"
UNIT = "kit-pipeline"
SECONDS = 600
TABLES = ("bronze", "rejected", "silver", "gold")
GOLD = "select cast(flight_date as varchar), origin, flights, cancelled, delayed, mean_delay from"


@dataclass(frozen=True)
class Lake:
    """The program on the client host, with a database and a folder of batches of its own."""

    client: Machine
    trino: Trino
    hdfs: WebHdfs
    database: str
    folder: str

    @property
    def words(self) -> list[str]:
        """The program with its options; those of the installed program come before."""
        return ["lakehouse-pipeline", "--landing", self.folder, "--database", self.database]

    def land(self, batch: str, *lines: str, header: str = FLIGHTS.header) -> None:
        content = "\n".join([header, *lines, ""]).encode()
        self.hdfs.write(f"{self.folder}/{batch}.csv", io.BytesIO(content), len(content))

    def run(self, *options: str) -> tuple[int, list[str], list[str]]:
        """Run the program; return its exit code, the tables that it wrote, and its errors."""
        words = [self.client.variable("lakehouse_users")["spark"], "--", *self.words, *options]
        done = self.client.shell.run(f"cd / && runuser -u {' '.join(['%s'] * len(words))}", *words)
        # spark-submit prints what Python writes to stderr on stdout.
        lines = done.stdout.splitlines()
        results = [json.loads(text) for text in lines if text.startswith("{")]
        errors = [text for text in lines if text.startswith("lakehouse-pipeline: ")]
        assert results or errors or done.rc == 0, done.stderr
        return done.rc, [result["table"].rpartition(".")[2] for result in results], errors

    def rows(self, query: str, table: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.trino.sql(f"{query} iceberg.{self.database}.{table}")]

    def snapshots(self) -> dict[str, list[Any]]:
        return {table: self.rows("select snapshot_id from", f'"{table}$snapshots"') for table in TABLES}


@pytest.fixture
def client(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group("clients")[0].name]


@pytest.fixture
def lake(client: Machine, trino: Trino, hdfs: WebHdfs, root: str) -> Iterator[Lake]:
    database = f"kit_pipeline_{secrets.token_hex(4)}"
    opened = Lake(client, trino, hdfs, database, f"{root}/landing/{database}")
    hdfs.call("PUT", "MKDIRS", opened.folder, permission="755")
    yield opened
    drop(trino, database)
    hdfs.call("DELETE", "DELETE", opened.folder, recursive="true")


def drop(trino: Trino, database: str) -> None:
    for table in TABLES:
        trino.sql(f"drop table if exists iceberg.{database}.{table}")
    trino.sql(f"drop schema if exists iceberg.{database}")


def test_files_become_bronze_silver_and_gold(lake: Lake, pytestconfig: pytest.Config) -> None:
    lake.land("2013-03", line(3, 1), line(3, 1), line(3, 1, origin="JFK", dep_time="NA", dep_delay="NA"),
              line(3, 2, distance="0"), "2013,3")  # fmt: skip
    assert lake.run() == (0, list(TABLES), [])
    first = [("2013-03-01", "EWR", 1, 0, 0, 2.0), ("2013-03-01", "JFK", 1, 1, 0, None)]
    assert sorted(lake.rows(GOLD, "gold")) == first

    # The same input changes nothing.
    snapshots = lake.snapshots()
    assert lake.run() == (0, [], [])
    assert lake.snapshots() == snapshots

    # A row again, a newer version of it, a late row, and a file with another column.
    lake.land("2013-04", line(3, 1), line(3, 1, dep_delay="40"), line(1, 5))
    lake.land("2013-05", line(5, 1), header=f"{FLIGHTS.header},gate")
    code, written, errors = lake.run()
    assert (code, written) == (1, list(TABLES))
    assert errors == ["lakehouse-pipeline: 2013-05.csv: column 'gate' is unknown;"
                      " change the file, or pipeline/sources.py"]  # fmt: skip
    newer = [("2013-03-01", "EWR", 1, 0, 1, 40.0), first[1]]
    assert sorted(lake.rows(GOLD, "gold")) == newer
    reasons = [("2 fields instead of 19",), ("expectation: distance is positive",)]
    late = ("late: 30 days before 2013-03-01",)
    assert sorted(lake.rows("select reason from", "rejected")) == [*reasons, late]

    lake.hdfs.call("DELETE", "DELETE", f"{lake.folder}/2013-05.csv")
    code, written, _ = lake.run("--backfill", "2013-01-01", "2013-01-31")
    assert (code, written) == (0, ["rejected", "silver", "gold"])
    assert sorted(lake.rows(GOLD, "gold")) == [("2013-01-05", "EWR", 1, 0, 0, 2.0), *newer]
    assert sorted(lake.rows("select reason from", "rejected")) == reasons
    same_by_spark(lake, str(pytestconfig.getoption("--inventory")))
    summaries = lake.rows("select summary from", '"gold$snapshots"')
    assert len({summary["lakehouse.run"] for (summary,) in summaries}) == len(summaries) == 3
    assert {summary["lakehouse.stage"] for (summary,) in summaries} == {"gold"}


def same_by_spark(lake: Lake, inventory: str) -> None:
    """Compare silver and gold as Spark and Trino read them."""
    for table in ("silver", "gold"):
        name = f"iceberg.{lake.database}.{table}"
        query = f"SELECT count(*), CAST(min(flight_date) AS STRING), max(origin) FROM {name}"
        done = looking.look("sql", inventory, "--engine", "spark", "--json", query, seconds=SECONDS)
        assert done.code == 0, done.err
        [result] = json.loads(done.out)["results"]
        [expected] = lake.rows("select count(*), cast(min(flight_date) as varchar), max(origin) from", table)
        assert [tuple(row) for row in result["rows"]] == [expected]


def test_a_run_that_was_killed_is_completed_by_the_next(lake: Lake, root: str) -> None:
    with lake.hdfs.reading(f"{root}/landing/nycflights13/flights.csv") as stream:
        content = stream.read()
    lake.hdfs.write(f"{lake.folder}/2013.csv", io.BytesIO(content), len(content))
    account = lake.client.variable("lakehouse_users")["spark"]
    with lake.client.transient(UNIT):
        lake.client.run(f"systemd-run --unit={UNIT} --uid=%s {' '.join(lake.words)}", account)
        wait_for("a batch in bronze", lambda: lake.snapshots()["bronze"], seconds=SECONDS,
                 ignoring=(lake.trino.refusal,))  # fmt: skip
        lake.client.run("systemctl kill --signal=KILL %s", UNIT)
    assert lake.rows("select count(*) from", "silver") == [(0,)]
    assert lake.run() == (0, ["rejected", "silver", "gold"], [])
    assert lake.rows("select count(*) from", "bronze") == [(336_777,)]
    columns = ", ".join(FLIGHTS.names)
    silver = f"select {columns} from iceberg.{lake.database}.silver"
    loaded = f"select {columns} from iceberg.nycflights.flights"
    assert lake.trino.sql(f"({silver} except {loaded}) union all ({loaded} except {silver})") == []
    assert lake.rows("select sum(flights) from", "gold") == [(336_776,)]
    assert lake.run() == (0, [], [])


def test_the_commands_of_the_page_work(
    pytestconfig: pytest.Config, client: Machine, trino: Trino, hdfs: WebHdfs, root: str
) -> None:
    inventory = pytestconfig.getoption("--inventory")
    words = {
        ".venv/bin/lakehouse exec": f"{sys.executable} -m lakehouse.cli exec -i {inventory}",
        ".venv/bin/lakehouse sql": f"{sys.executable} -m lakehouse.cli sql -i {inventory}",
        ".venv/bin/python": sys.executable,
        "-u spark": f"-u {client.variable('lakehouse_users')['spark']}",
        " /lakehouse/": f" {root}/",
        "build/pipeline.svg": "build/test-pipeline.svg",
    }
    pattern = re.compile("|".join(map(re.escape, words)))
    blocks = [block for block in pages.blocks(PAGE) if "ansible-playbook" not in block]
    assert len(blocks) == 3
    picture = ROOT / "build" / "test-pipeline.svg"
    picture.parent.mkdir(exist_ok=True)
    try:
        for block in blocks:
            script = pattern.sub(lambda match: words[match[0]], block)
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, capture_output=True, text=True,
                check=False, timeout=2 * SECONDS, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
            assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        assert picture.read_bytes() == PAGE.with_name("pipeline.svg").read_bytes()
    finally:
        picture.unlink(missing_ok=True)
        drop(trino, "flights")
        hdfs.call("DELETE", "DELETE", f"{root}/landing/flights/2013.csv")
