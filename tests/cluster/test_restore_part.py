"""One table and one database come back into the cluster that runs, and nothing else is touched."""

from __future__ import annotations

import re
import secrets
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lakehouse.model.inventory import Inventory
from suites.testbed.engines.trino import Trino
from tests.cluster.changing import Verb, line_with
from tests.cluster.looking import Said, look
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

SECONDS = 240
# Each is written by the engine that people write it with. `more` comes after the backup.
MADE = """
CREATE DATABASE {db};
CREATE DATABASE {db}_empty;
CREATE TABLE iceberg.{db}.ice USING iceberg AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t (id, word);
CREATE TABLE {db}.delta USING delta AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t (id, word);
CREATE TABLE {db}.hive (id INT, word STRING) PARTITIONED BY (day STRING) STORED AS PARQUET;
INSERT INTO {db}.hive PARTITION (day = '1') VALUES (1, 'a');
INSERT INTO {db}.hive PARTITION (day = '2') VALUES (2, 'b');
CREATE VIEW {db}.view AS SELECT id FROM {db}.hive;
"""
MORE = """
INSERT INTO {db}.delta VALUES (3, 'c');
INSERT INTO {db}.hive PARTITION (day = '3') VALUES (3, 'c');
"""
ROWS = [(1, "a"), (2, "b")]
NEWER = [*ROWS, (3, "c")]


@dataclass(frozen=True)
class Kept:
    """A database that is in a backup, and the cluster that it came from."""

    path: str
    db: str
    backup: str
    trino: Trino

    def restore(self, *options: str) -> Said:
        return look("restore", self.path, self.backup, *options, seconds=SECONDS)

    def spark(self, statements: str) -> None:
        spark(self.path, statements.format(db=self.db))

    def rows(self, name: str, catalog: str = "") -> list[tuple[Any, ...]]:
        table = f"{catalog or name}.{self.db}.{name}"
        found = self.trino.sql(f"SELECT id, word FROM {table}")
        return sorted(tuple(row) for row in found)


def spark(path: str, statements: str) -> None:
    said = look("sql", path, "--engine", "spark", "-f", "-", seconds=SECONDS, given=statements)
    assert said.code == 0, said.out + said.err


@pytest.fixture(scope="module")
def kept(pytestconfig: pytest.Config, trino: Trino) -> Iterator[Kept]:
    path, db = str(pytestconfig.getoption("--inventory")), f"kit_part_{secrets.token_hex(4)}"
    spark(path, MADE.format(db=db))
    try:
        made = look("backup", path, seconds=SECONDS)
        assert made.code == 0, made.out + made.err
        found = re.search(r"\d{8}T\d{6}Z", made.out)
        assert found, made.out
        yield Kept(path, db, found[0], trino)
    finally:
        spark(path, f"DROP DATABASE IF EXISTS {db} CASCADE; DROP DATABASE IF EXISTS {db}_empty;")


@pytest.fixture
def keeper(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.hosts[0].variables["lakehouse_backup_host"]]


def test_a_table_that_was_dropped_with_its_files_is_there_again(kept: Kept) -> None:
    table = f"iceberg.{kept.db}.ice"
    # Trino removes the folder too.
    kept.trino.sql(f"DROP TABLE {table}")
    said = kept.restore("--table", f"{kept.db}.ice", "--yes")
    assert said.code == 0, said.out + said.err
    last = said.out.splitlines()[-1]
    assert last.startswith(f"restore {kept.backup} {kept.db}.ice: done; ")
    assert "1 of 1 table counted, and equal to the manifest" in last
    assert kept.rows("ice", "iceberg") == ROWS
    kept.trino.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    assert kept.rows("ice", "iceberg") == NEWER


def test_a_table_that_is_there_is_left_alone_until_its_name_is_typed(kept: Kept) -> None:
    table = f"{kept.db}.ice"
    for options in ((), ("--yes",), ("--confirm", "another")):
        said = kept.restore("--table", table, *options)
        assert said.code == 4, said.out + said.err
        last = said.out.splitlines()[-1]
        assert f"{table} exists and becomes what it was; newer rows leave it" in last
        assert last.endswith(
            f".venv/bin/lakehouse restore {kept.backup} --table {table} -i {kept.path} --confirm {table}"
        )
    # Its metadata names files by their whole path.
    said = kept.restore("--table", table, "--as", "other", "--yes")
    assert said.code == 3, said.out + said.err
    assert "two tables of the same files destroy each other" in said.out
    assert kept.rows("ice", "iceberg") == NEWER

    said = kept.restore("--table", table, "--confirm", table)
    assert said.code == 0, said.out + said.err
    newer = re.search(r"until now it was (\S+\.metadata\.json)", said.out)
    assert newer, said.out
    assert kept.rows("ice", "iceberg") == ROWS
    # What it was until then is not lost: its own metadata file and its data are where they were.
    folder, _, name = newer[1].rpartition("/metadata/")
    # The metastore lets no second table have its folder.
    kept.trino.sql(f"call iceberg.system.unregister_table('{kept.db}', 'ice')")
    kept.trino.sql(f"call iceberg.system.register_table('{kept.db}', 'ice', '{folder}', '{name}')")
    assert kept.rows("ice", "iceberg") == NEWER


@pytest.mark.parametrize("name", ["delta", "hive"])
def test_a_copy_has_the_old_rows_beside_the_new_ones(kept: Kept, name: str) -> None:
    if name == "delta":
        kept.spark(MORE)
    table = f"{kept.db}.{name}"
    said = kept.restore("--table", table, "--as", f"{name}_then", "--yes")
    assert said.code == 0, said.out + said.err
    assert kept.rows(f"{name}_then", name) == ROWS
    assert kept.rows(name) == NEWER
    again = kept.restore("--table", table, "--as", f"{name}_then", "--yes")
    assert again.code == 3, again.out
    assert f"{kept.db}.{name}_then exists" in again.out


@pytest.mark.parametrize("name", ["delta", "hive"])
def test_what_is_newer_is_set_aside(kept: Kept, name: str) -> None:
    said = kept.restore("--table", f"{kept.db}.{name}", "--confirm", f"{kept.db}.{name}")
    assert said.code == 0, said.out + said.err
    assert " set aside in /user/" in said.out
    assert kept.rows(name) == ROWS


def test_a_restore_that_was_interrupted_is_completed(kept: Kept) -> None:
    table, verb = f"{kept.db}.ice", Verb(kept.path)
    kept.trino.sql(f"drop table iceberg.{table}")
    with verb.started("restore", kept.backup, "--table", table, "--yes") as process:
        line_with("writes the catalog", process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, out
    run = re.search(r".venv/bin/lakehouse resume (r\d+)", out)
    assert run, out
    assert run[1] in verb.run("runs").stdout
    done = verb.run("resume", run[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert kept.rows("ice", "iceberg") == ROWS


def test_a_database_that_was_dropped_is_there_again(kept: Kept) -> None:
    kept.spark("DROP DATABASE {db} CASCADE;")
    said = kept.restore("--database", kept.db, "--yes")
    assert said.code == 0, said.out + said.err
    assert "3 of 4 tables counted, and equal to the manifest" in said.out
    for name, catalog in (("ice", "iceberg"), ("delta", "delta"), ("hive", "hive")):
        assert kept.rows(name, catalog) == ROWS
    kept.spark("SELECT id FROM {db}.view;")


def test_a_database_without_tables_is_there_again(kept: Kept) -> None:
    name = f"{kept.db}_empty"
    kept.spark("DROP DATABASE {db}_empty;")
    said = kept.restore("--database", name, "--yes")
    assert said.code == 0, said.out + said.err
    assert "the database is there, and has no tables" in said.out.splitlines()[-1]
    kept.spark("DESCRIBE DATABASE {db}_empty;")
    again = kept.restore("--database", name)
    assert (again.code, "there is nothing to do" in again.out) == (0, True), again


def test_only_what_is_needed_must_be_whole(kept: Kept, keeper: Machine) -> None:
    files = f"{keeper.variable('lakehouse_backup_dir')}/backups/{kept.backup}/files"
    victim = keeper.run(f"find {files} -path '*{kept.db}*/hive/*' -type f -size +0 | sort | head -n 1")
    assert victim
    keeper.run("mv %s %s && (cat %s; printf x) > %s", victim, f"{victim}.kept", f"{victim}.kept", victim)
    try:
        refused = kept.restore("--table", f"{kept.db}.hive", "--confirm", f"{kept.db}.hive")
        assert refused.code == 3, refused.out
        assert "refused; damaged: files/" in refused.out
        ready = kept.restore("--table", f"{kept.db}.delta", "--dry-run")
        assert ready.code == 0, ready.out
    finally:
        keeper.run("mv %s %s", f"{victim}.kept", victim)
        # It is no longer noted as damaged.
        again = look("backup", kept.path, "verify", kept.backup, seconds=SECONDS)
        assert again.code == 0, again.out + again.err


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--table", "default.nobody_knows"), "has no table default.nobody_knows"),
        (("--database", "nobody_knows"), "has no database nobody_knows"),
    ],
)
def test_bad_input_is_one_line(kept: Kept, options: tuple[str, ...], what: str) -> None:
    said = kept.restore(*options)
    assert (said.code, said.out) == (64, "")
    [line] = said.err.splitlines()
    assert what in line
    assert "; next: " in line
