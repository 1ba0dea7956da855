"""A backup's moment: the metastore's role locks its tables, and another session makes the restore point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backup import database
from backup.config import BackupError, Settings
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


def test_the_catalog_is_read_and_the_point_is_made_while_nobody_writes(
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
    known, moment = database._at_t0(settings, NAME)
    assert held == [True]
    assert [one["name"] for one in known["databases"]] == ["default"]
    assert moment.keys() == {"lsn", "at", "bytes", "version"}
    replace(metastore, user="hive").run('update "DBS" set "DESC" = \'new\'')


def test_what_somebody_made_in_the_database_runs_as_the_metastores_role(
    settings: Settings, metastore: Database
) -> None:
    metastore.run("""
        create table public.seen (who text, is_super text);
        grant insert on public.seen to hive;
        create function public.json_build_object(text, varchar, text, varchar, text, varchar, text, varchar,
            text, varchar, text, json) returns json language plpgsql as $$ begin
          insert into public.seen values (session_user, current_setting('is_superuser')); return '{}'; end $$;
    """)
    try:
        known, _ = database._at_t0(settings, NAME)
        assert known["databases"] == [{}]
        assert metastore.run("select distinct who, is_super from public.seen").split() == ["hive|off"]
    finally:
        metastore.run("drop function public.json_build_object; drop table public.seen")


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
            database._at_t0(settings, NAME)
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
        database._at_t0(settings, NAME)


def test_a_point_that_is_refused_gives_the_lock_back(
    settings: Settings, metastore: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_POINT", "select 1/0 -- {name}")
    with pytest.raises(BackupError, match="division by zero"):
        database._at_t0(settings, NAME)
    replace(metastore, user="hive").run("set lock_timeout = '5s'; update \"DBS\" set \"DESC\" = 'again'")


def test_a_database_that_does_not_answer_is_one_line(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGHOST", str(tmp_path))
    with pytest.raises(
        BackupError, match=r"^the catalog's tables in database hive: psql: error: connection to"
    ):
        database._at_t0(settings, NAME)
