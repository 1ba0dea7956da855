"""`lakehouse tables maintain`: worn tables become fast, and no row or pinned snapshot is lost."""

from __future__ import annotations

import json
import secrets
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Inventory
from lakehouse.run import ROOT
from lakehouse.tables import census_program, upkeep_program
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, path_of
from suites.testbed.engines import EngineError
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.trino import Trino
from suites.testbed.waiting import wait_for
from tests import pages
from tests.cluster import looking
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.longdrill]

SECONDS = 900
# Rows of the worn table, how many a MERGE changes, and how many it gets.
ROWS, CHANGED, ROUNDS = 400_000, 4_000, 20
PAGE = ROOT / "docs" / "tables" / "maintenance.md"
PROGRAM = Path(__file__).with_name("upkeep_api.py")
# Of the writers beside upkeep.
WRITING_SECONDS = 120
UNIT = "lakehouse-upkeep.service"
# The process that holds the lock, by the kernel's list.
_KILL_HOLDER = """
inode=$(stat -c %%i %s)
kill -KILL $(awk -v end=":$inode" '$2 == "FLOCK" && $6 ~ end "$" { print $5 }' /proc/locks)
"""
_PYICEBERG = """
import sys, time, pyarrow as pa, lakehouse_clients
lake = lakehouse_clients.connect()
until, number = time.monotonic() + {seconds}, 0
while time.monotonic() < until:
    try:
        row = {{"writer": ["pyiceberg"], "n": pa.array([number], pa.int64())}}
        lake.append("iceberg.{table}", pa.table(row))
    except Exception as error:
        print("refused", type(error).__name__, file=sys.stderr)
        number += 1_000_000
        continue
    print(number, flush=True)
    number += 1
"""


@pytest.fixture
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


@pytest.fixture
def client(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group("clients")[0].name]


@pytest.fixture
def database(trino: Trino) -> Iterator[str]:
    """A database of the first policy of tests/inventory, gone at the end."""
    name = f"kit_worn_{secrets.token_hex(4)}"
    trino.sql(f"create schema iceberg.{name}")
    yield name
    trino.sql(f"drop schema if exists iceberg.{name} cascade")


def spark(path: str, *statements: str) -> list[Any]:
    done = looking.look(
        "sql", path, "--engine", "spark", "--json", "-f", "-", seconds=SECONDS, given=";\n".join(statements)
    )
    assert done.code == 0, done.out + done.err
    results: list[Any] = json.loads(done.out)["results"]
    return results


def maintain(verb: Verb, *words: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    done = verb.run("tables", "maintain", *words, "--json")
    assert done.returncode in codes, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def actions(path: str, table: str, *listed: tuple[str, int], seconds: int = 0) -> dict[str, Any]:
    """Run actions on a table, each as if so many days had passed, again and again for some seconds."""
    cluster = placement.read(inventory.load(path))
    request = {"table": table, "actions": listed, "seconds": seconds}
    text = PROGRAM.read_text(encoding="utf-8")
    program = upkeep_program.maintainer(cluster, upkeep_program.MAINTAIN, "*.*")
    reply = census_program.run(replace(program, launcher=f"REQUEST = {request!r}\n{text}"), SECONDS)
    assert reply.code.value == 0, reply
    return dict(reply.document)


def seconds_of(work: Callable[[], object]) -> float:
    """Return the median time of three runs after one that warms up."""
    times = []
    for _ in range(4):
        start = time.monotonic()
        work()
        times.append(time.monotonic() - start)
    return statistics.median(times[1:])


@contextmanager
def one_line(document: dict[str, Any]) -> Iterator[str]:
    [finding] = document["findings"]
    assert "\n" not in finding["what"]
    yield finding["what"]


def test_a_table_worn_out_by_merges_is_twice_as_fast_to_scan(
    path: str, verb: Verb, trino: Trino, database: str
) -> None:
    table = f"iceberg.{database}.worn"
    merges = [
        f"MERGE INTO {table} t USING (SELECT DISTINCT id * {7 + number} % {ROWS} AS id, {number} AS v"
        f" FROM range({CHANGED})) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v, w = concat(w, 'x')"
        for number in range(ROUNDS)
    ]
    spark(
        path,
        f"CREATE TABLE {table} (id BIGINT, v BIGINT, w STRING) USING iceberg PARTITIONED BY (bucket(8, id))"
        " TBLPROPERTIES ('write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read')",
        f"INSERT INTO {table} SELECT id, 0, uuid() FROM range({ROWS})",
        *merges,
    )
    query = f"select count(*), sum(v), sum(length(w)), max(w) from {table}"
    before = trino.sql(query)
    worn = seconds_of(lambda: trino.sql(query))

    planned = maintain(verb, "--dry-run", f"{database}.*", codes=(0, 2))
    if planned["exit"] == 2:
        assert "no census has been written" in planned["findings"][0]["what"]
    document = maintain(verb, "--scan", f"{database}.*")
    [compacted] = [row for row in document["actions"] if row["action"] == "compact"]
    assert compacted["files_before"] > 10 * compacted["files_after"]
    assert trino.sql(query) == before
    fast = seconds_of(lambda: trino.sql(query))
    assert compacted["scan_before"] >= 2 * compacted["scan_after"], compacted
    assert worn >= 2 * fast, (worn, fast)
    # Nothing has changed since: nothing is done.
    assert maintain(verb, f"{database}.*")["actions"] == []
    rows = trino.sql(
        "select action, files_before, files_after from iceberg.lakehouse_meta.upkeep"
        f" where table_name = '{database}.worn' and action = 'compact'"
    )
    assert rows == [("compact", compacted["files_before"], compacted["files_after"])]


def test_a_pinned_commit_keeps_its_snapshot(path: str, verb: Verb, trino: Trino, database: str) -> None:
    table, tag = f"{database}.pinned", f"kit-{secrets.token_hex(4)}"
    trino.sql(f"create table iceberg.{table} as select 1 a")
    verb.committed("-m", "before upkeep")
    [(pinned,)] = trino.sql(f'select snapshot_id from iceberg.{database}."pinned$snapshots"')
    verb.json("catalog", "tag", tag)
    try:
        for number in range(2, 6):
            trino.sql(f"insert into iceberg.{table} values {number}")
        document = actions(path, table, ("compact", 0), ("expire-snapshots", 10), ("remove-orphans", 10))
        assert document["pins"] == ""
        assert {row["outcome"] for row in document["actions"]} == {"done"}, document
        snapshots = {
            row[0] for row in trino.sql(f'select snapshot_id from iceberg.{database}."pinned$snapshots"')
        }
        assert pinned in snapshots
        assert len(snapshots) == 2
        assert trino.sql(f"select a from iceberg.{table} for version as of {pinned}") == [(1,)]
        checked = verb.run("catalog", "check", tag, table)
        assert checked.returncode == 0, checked.stderr
    finally:
        verb.json("catalog", "tag", "--delete", tag)
    actions(path, table, ("expire-snapshots", 10))
    [(count,)] = trino.sql(f'select count(*) from iceberg.{database}."pinned$snapshots"')
    assert count == 1


def test_writers_of_four_engines_lose_no_row(
    path: str, cluster: Inventory, client: Machine, trino: Trino, database: str
) -> None:
    table = f"{database}.ledger"
    trino.sql(f"create table iceberg.{table} (writer varchar, n bigint)")
    flink_host = cluster.group("flink_jobmanager")[0]
    port = flink_host.variables["lakehouse_ports"]["flink_sql_gateway"]
    session = Flink.connect(f"http://{flink_host.address}:{port}")
    until = time.monotonic() + WRITING_SECONDS

    def inserts(writer: str, sql: Callable[[str], object], target: str) -> list[int]:
        acknowledged, number = [], 0
        while time.monotonic() < until:
            number += 1
            # A row of a failed statement may be there or not, and counts for nothing.
            with suppress(EngineError):
                sql(f"insert into {target} values ('{writer}', {number})")
                acknowledged.append(number)
        return acknowledged

    def by_spark() -> list[int]:
        numbers = list(range(1, 31))
        spark(path, *(f"INSERT INTO iceberg.{table} VALUES ('spark', {number})" for number in numbers))
        return numbers

    def by_pyiceberg() -> list[int]:
        program = _PYICEBERG.format(seconds=WRITING_SECONDS, table=table)
        user = client.variable("lakehouse_users")["spark"]
        return [
            int(line)
            for line in client.run("runuser -u %s -- lakehouse-python -c %s", user, program).splitlines()
            if line.isdecimal()
        ]

    upkeep = (("compact", 0), ("rewrite-manifests", 0), ("expire-snapshots", 2), ("remove-orphans", 0))
    with ThreadPoolExecutor() as pool:
        writers = {
            "trino": pool.submit(inserts, "trino", trino.sql, f"iceberg.{table}"),
            "flink": pool.submit(inserts, "flink", session.run, table),
            "spark": pool.submit(by_spark),
            "pyiceberg": pool.submit(by_pyiceberg),
        }
        maintained = pool.submit(actions, path, table, *upkeep, seconds=WRITING_SECONDS - 30)
        ledger = {writer: future.result() for writer, future in writers.items()}
        document = maintained.result()
    session.close()
    assert all(ledger.values()), ledger
    outcomes = [(row["action"], row["outcome"]) for row in document["actions"]]
    assert ("compact", "done") in outcomes, document
    assert ("expire-snapshots", "done") in outcomes, document
    rows = trino.sql(f"select writer, n, count(*) from iceberg.{table} group by 1, 2")
    counts = {(writer, number): count for writer, number, count in rows}
    missing = [
        (name, number)
        for name, numbers in ledger.items()
        for number in numbers
        if (name, number) not in counts
    ]
    assert missing == []
    assert {key for key, count in counts.items() if count > 1} == set()
    actions(path, table, ("compact", 0))
    assert len(trino.sql(f"select writer, n from iceberg.{table}")) == len(counts)


def test_a_kill_leaves_the_table_whole_and_the_lock_free(
    verb: Verb, client: Machine, trino: Trino, database: str
) -> None:
    """Commits of Iceberg are atomic: a table is as before or as after one of them."""
    small(trino, database, "killed")
    rows = trino.sql(f"select sum(a), count(*) from iceberg.{database}.killed")
    lock = f"{client.variable('lakehouse_data_dir')}/spark/upkeep.lock"
    # From the start of the session to the commits of the first action.
    for pause in (5, 25, 45):
        with verb.started("tables", "maintain", f"{database}.*", "--json") as process:
            wait_for(
                "the lock is taken",
                lambda: client.shell.run("! flock --nonblock %s true", lock).rc == 0,
                seconds=120,
            )
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=pause)
            client.shell.run(_KILL_HOLDER, lock)
            process.communicate(timeout=SECONDS)
        assert trino.sql(f"select sum(a), count(*) from iceberg.{database}.killed") == rows
    document = maintain(verb, f"{database}.*")
    assert {row["outcome"] for row in document["actions"]} <= {"done"}
    assert trino.sql(f"select sum(a), count(*) from iceberg.{database}.killed") == rows


def test_a_second_run_is_refused_with_one_line(verb: Verb, client: Machine) -> None:
    lock = f"{client.variable('lakehouse_data_dir')}/spark/upkeep.lock"
    client.run("touch %s && chmod 0666 %s", lock, lock)
    with client.transient("kit-upkeep-lock"):
        client.run("systemd-run --unit kit-upkeep-lock flock %s sleep 120", lock)
        with one_line(maintain(verb, "none.*", codes=(2,))) as line:
            assert line.startswith(f"another run is at work; it holds {lock}")
        # A plan takes no lock.
        maintain(verb, "--dry-run", "none.*")


def test_a_damaged_table_is_a_line_and_the_others_are_done(
    verb: Verb, trino: Trino, database: str, hdfs: WebHdfs
) -> None:
    for name in ("broken", "whole"):
        small(trino, database, name)
    verb.run("tables", "census")
    *_, (file,) = trino.sql(
        f'select file from iceberg.{database}."broken$metadata_log_entries" order by timestamp'
    )
    place = str(path_of(file))
    hdfs.call("PUT", "RENAME", place, destination=f"{place}.away")
    try:
        document = maintain(verb, f"{database}.*", codes=(1,))
        outcomes = {(row["table"], row["action"]): row["outcome"] for row in document["actions"]}
        assert outcomes[f"{database}.broken", "compact"] == "failed"
        assert outcomes[f"{database}.whole", "compact"] == "done"
        assert any(line.startswith(f"{database}.broken: ") for line in document["warnings"])
    finally:
        hdfs.call("PUT", "RENAME", f"{place}.away", destination=place)


def test_delta_and_hive_tables_are_maintained(path: str, verb: Verb, trino: Trino, schema: str) -> None:
    table = f"{schema}.log"
    inserts = [f"INSERT INTO {table} VALUES ({number})" for number in range(12)]
    spark(path, f"CREATE TABLE {table} (a INT) USING delta", *inserts)
    try:
        document = maintain(verb, f"{schema}.*")
        outcomes = {row["action"]: row["outcome"] for row in document["actions"]}
        assert outcomes == {"compact": "done", "vacuum": "done"}, document
        [compacted] = [row for row in document["actions"] if row["action"] == "compact"]
        assert (compacted["files_before"], compacted["files_after"]) == (12, 1)
        assert trino.sql(f"select count(*) from delta.{table}") == [(12,)]
    finally:
        spark(path, f"DROP TABLE {table}")


def test_the_unit_of_the_timer_does_the_same(client: Machine, trino: Trino, database: str) -> None:
    small(trino, database, "clock")
    folder = f"/run/systemd/system/{UNIT}.d"
    start = f"[Service]\nExecStart=\nExecStart=/usr/local/sbin/lakehouse-upkeep '--pattern={database}.*'\n"
    client.run(
        "mkdir -p %s && printf %s > %s && systemctl daemon-reload", folder, start, f"{folder}/kit.conf"
    )
    try:
        client.run("systemctl start %s", UNIT)
        assert client.run("systemctl show -p Result --value %s", UNIT) == "success"
        assert trino.sql(f'select count(*) from iceberg.{database}."clock$files"') == [(1,)]
    finally:
        client.run("rm -r %s && systemctl daemon-reload && systemctl reset-failed %s || true", folder, UNIT)


def test_the_page(verb: Verb) -> None:
    lines = "".join(pages.blocks(PAGE)).splitlines()
    commands = [
        shlex.split(line.removeprefix(".venv/bin/lakehouse "), comments=True)
        for line in lines
        if line.startswith(".venv/bin/lakehouse ")
    ]
    assert commands
    for command in commands:
        done = verb.run(*command)
        assert done.returncode == 0, (command, done.stderr)


def small(trino: Trino, database: str, name: str) -> None:
    """Create a table of a dozen small files."""
    trino.sql(f"create table iceberg.{database}.{name} as select 0 a")
    for number in range(1, 12):
        trino.sql(f"insert into iceberg.{database}.{name} values {number}")
