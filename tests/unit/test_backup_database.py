"""A backup's moment: the metastore's role locks its tables, and another session makes the restore point."""

from __future__ import annotations

import io
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backup import database
from backup.config import BackupError, Settings
from plugins.module_utils.lakehouse import backup_manifest
from tests.unit.metastore_database import Database, server

NAME = "20260102T030405Z"
LOGINS = """
create role hive login; grant usage on schema public to hive;
grant select, insert, update, delete on all tables in schema public to hive;
"""


@pytest.fixture(scope="module")
def metastore() -> Iterator[Database]:
    with server() as found:
        found.run(LOGINS)
        yield found


@pytest.fixture
def settings(metastore: Database, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PGHOST", str(metastore.sockets))
    return Settings(
        cluster="kit", folder="", keep=1, namenode="", superuser="", root="", left_out=(),
        database=metastore.name, database_user="hive", database_port=5432, database_ssh=(), checkpoint=(),
        checkpoint_folder="", spark_submit=(), spark_user="",
    )  # fmt: skip


def at_t0(settings: Settings) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Return the rows of the catalog by kind, and the moment."""
    out = io.StringIO()
    moment = database._at_t0(settings, NAME, out)
    rows: dict[str, list[dict[str, Any]]] = {"database": [], "table": [], "partition": []}
    for line in out.getvalue().splitlines():
        kind, row = backup_manifest.catalog_row(json.loads(line))
        rows[kind].append(row)
    return rows, moment


def test_the_point_is_made_while_nobody_writes(
    settings: Settings, metastore: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    point, held = database._point, []

    def watched(*arguments: object) -> str:
        writer = replace(metastore, user="hive").attempt(
            "set lock_timeout = '100ms'; update \"DBS\" set \"DESC\" = 'new'"
        )
        held.append("lock timeout" in writer.stderr)
        return point(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "_point", watched)
    known, moment = at_t0(settings)
    assert held == [True]
    assert [one["name"] for one in known["database"]] == ["default"]
    assert moment.keys() == {"lsn", "at", "bytes", "version"}
    replace(metastore, user="hive").run('update "DBS" set "DESC" = \'new\'')


@contextmanager
def holding(metastore: Database, sql: str) -> Iterator[Callable[[], None]]:
    """Have a session hold what a statement takes; what it gives commits and ends it."""
    with subprocess.Popen(
        [*metastore.argv, "-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as held:
        stdin, stdout = held.stdin, held.stdout
        assert stdin
        assert stdout
        stdin.write(f"begin; {sql}; select 'held';\n".encode())
        stdin.flush()
        while stdout.readline() != b"held\n":
            assert held.poll() is None

        def end() -> None:
            stdin.write(b"commit;\n")
            stdin.close()
            held.wait()

        yield end


def test_the_catalog_is_read_as_it_was_at_the_point_while_others_write(
    settings: Settings, metastore: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read only when a writer, who waited for the point, has written."""
    hive, point = replace(metastore, user="hive"), database._point
    hive.run("""update "DBS" set "DESC" = E'a "quoted" \\\\ word\nin lines'""")
    with ThreadPoolExecutor(1) as beside, holding(metastore, "select pg_advisory_xact_lock(7)") as end:
        written: list[Future[None]] = []

        def write() -> None:
            hive.run("set lock_timeout = '60s'; update \"DBS\" set \"DESC\" = 'later'")
            end()

        def watched(*arguments: object) -> str:
            said = point(*arguments)  # type: ignore[arg-type]
            written.append(beside.submit(write))
            return said

        wait = "SET LOCAL lock_timeout = '60s'; DO $$ BEGIN PERFORM pg_advisory_xact_lock(7); END $$"
        monkeypatch.setattr(database, "_point", watched)
        monkeypatch.setattr(database, "_READ", (database._READ[0], wait, *database._READ[1:]))
        known, _ = at_t0(settings)
        written[0].result()
    assert known["database"][0]["description"] == 'a "quoted" \\ word\nin lines'
    assert hive.run('select "DESC" from "DBS"') == "later\n"


def test_a_writer_that_holds_the_tables_is_waited_for_and_does_not_make_others_wait(
    settings: Settings, metastore: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two attempts others write; the long one ends after the third."""
    hive, paused = replace(metastore, user="hive"), []
    with holding(hive, 'update "DBS" set "DESC" = \'long\'') as end:

        def pause(_: float) -> None:
            other = "set lock_timeout = '5s'; delete from \"SDS\" where false"
            paused.append(hive.attempt(other).returncode)
            if len(paused) == 3:
                end()

        monkeypatch.setattr(time, "sleep", pause)
        known, _ = at_t0(settings)
    assert paused == [0, 0, 0]
    assert known["database"][0]["description"] == "long"


def test_a_writer_that_never_ends_is_a_line(
    settings: Settings, metastore: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_ATTEMPTS", 2)
    monkeypatch.setattr(database, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(database, "_point", pytest.fail)
    busy = r"in database hive: others held them at each of 2 attempts$"
    with holding(metastore, 'lock table "SDS" in row exclusive mode'), pytest.raises(BackupError, match=busy):
        at_t0(settings)


def test_what_somebody_made_in_the_database_runs_as_the_metastores_role(
    settings: Settings, metastore: Database
) -> None:
    metastore.run("""
        create table public.seen (who text, is_super text);
        grant insert on public.seen to hive;
        create function public.jsonb_build_object(text, varchar, text, varchar, text, varchar, text, varchar,
            text, varchar, text, jsonb) returns jsonb language plpgsql as $$ begin
          insert into public.seen values (session_user, current_setting('is_superuser'));
          return '{"name": "d", "location": "l", "parameters": {}}'; end $$;
    """)
    try:
        known, _ = at_t0(settings)
        assert known["database"] == [{"name": "d", "location": "l", "parameters": {}}]
        assert metastore.run("select distinct who, is_super from public.seen").split() == ["hive|off"]
    finally:
        metastore.run("drop function public.jsonb_build_object; drop table public.seen")


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ('revoke all on "SDS" from hive', "permission denied for table SDS"),
        ('alter table "SERDE_PARAMS" rename to "OTHER"', 'relation "SERDE_PARAMS" does not exist'),
    ],
)
def test_a_catalog_that_cannot_be_locked_or_read_has_no_moment(
    settings: Settings, metastore: Database, before: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = {"r": 'grant all on "SDS" to hive', "a": 'alter table "OTHER" rename to "SERDE_PARAMS"'}[
        before[0]
    ]
    monkeypatch.setattr(database, "_point", pytest.fail)
    metastore.run(before)
    try:
        with pytest.raises(BackupError, match=rf"^the catalog's tables in database hive: .*{said}"):
            at_t0(settings)
    finally:
        metastore.run(after)


def test_a_session_that_ended_before_the_point_was_made_makes_no_backup(
    settings: Settings, metastore: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> str:
        metastore.run(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where application_name = 'lakehouse-backup'"
        )
        return "{}"

    monkeypatch.setattr(database, "_point", killed)
    with pytest.raises(
        BackupError, match=r"^the catalog's tables in database hive: .*terminating connection"
    ):
        at_t0(settings)


def test_a_point_that_is_refused_gives_the_lock_back(
    settings: Settings, metastore: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_POINT", "select 1/0 -- {name}")
    with pytest.raises(BackupError, match="division by zero"):
        at_t0(settings)
    replace(metastore, user="hive").run("set lock_timeout = '5s'; update \"DBS\" set \"DESC\" = 'again'")


def test_a_database_that_does_not_answer_is_one_line(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGHOST", str(tmp_path))
    with pytest.raises(
        BackupError, match=r"^the catalog's tables in database hive: psql: error: connection to"
    ):
        at_t0(settings)
