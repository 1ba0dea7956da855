"""A schema is made in an empty database alone; what else is found there is refused, with its name."""

from __future__ import annotations

import base64
import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from ansible.module_utils.lakehouse import credentials
from ansible.module_utils.lakehouse import metastore_schema as schema
from ansible.module_utils.lakehouse import postgresql_database as postgresql
from ansible.module_utils.lakehouse.environment_file import environment_of
from ansible.module_utils.lakehouse.refused import DeniedError, RefusedError, UnansweredError


class Database:
    """A database with so many tables, and a table of versions or none."""

    def __init__(self, tables: int, versions: list[str] | None = None) -> None:
        self.answers = {
            schema.TABLE_COUNT: str(tables),
            schema.HAS_VERSION_TABLE: "f" if versions is None else "t",
            schema.VERSIONS: "\n".join(versions or []),
        }

    def run(self, sql: str) -> str:
        return self.answers[sql]


def found(database: Database) -> object:
    return schema.found_version(database, "metastore", "3.1.0")


def test_an_empty_database_has_no_version() -> None:
    assert found(Database(0)) is None


def test_a_complete_schema_has_one() -> None:
    assert found(Database(74, ["3.1.0"])) == "3.1.0"


@pytest.mark.parametrize("versions", [None, [], ["3.1.0", "4.0.0"]])
def test_an_interrupted_initialisation_or_a_stranger_s_tables_are_refused(versions: list[str] | None) -> None:
    with pytest.raises(RefusedError, match=r"^database metastore has 12 tables but no single schema version"):
        found(Database(12, versions))


def test_a_schema_of_another_release_is_refused() -> None:
    with pytest.raises(
        RefusedError, match=r"has schema version 2\.3\.0 \(expected 3\.1\.0\); nothing was touched; next: "
    ):
        found(Database(60, ["2.3.0"]))


class Making:
    """A database whose tables a program makes, which may be interrupted; it keeps what is run."""

    def __init__(self, *, interrupted: bool, used: str = "", sessions: int = 0) -> None:
        self.marked, self.tables = interrupted, 3 if interrupted else 0
        self.ran: list[str] = []
        self.used = {schema.USED: used, schema.SESSIONS: str(sessions)}

    def run(self, sql: str) -> str:
        self.ran.append(sql)
        self.marked = {schema.BEGIN: True, schema.CLEAR: False}.get(sql, self.marked)
        self.tables = 0 if sql == schema.CLEAR else self.tables
        if sql == schema.FINISH:
            self.marked = False
        complete = not self.marked and self.tables
        return {
            schema.IS_MAKING: "t" if self.marked else "f",
            schema.TABLE_COUNT: str(self.tables),
            schema.HAS_VERSION_TABLE: "t" if complete else "f",
            schema.VERSIONS: "3.1.0",
            schema.MAY_MAKE: "t",
            **self.used,
        }.get(sql, "")

    def lock(self) -> nullcontext[None]:
        return nullcontext()


OLD, NEW = "the installed one", "the next one"


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str | None) -> bool:
    """Ask a complete schema that only the old password opens, with the new one."""

    class Locked(Making):
        def __init__(self, parameters: dict[str, str]) -> None:
            super().__init__(interrupted=False)
            self.tables, self.open = 74, parameters["password"] == OLD

        def run(self, sql: str) -> str:
            if not self.open:
                raise DeniedError("password authentication failed", "ping it")
            return super().run(sql)

    path = tmp_path / "credentials.json"
    if file is not None:
        path.write_text(file, encoding="utf-8")
    monkeypatch.setattr(schema, "Database", Locked)
    parameters = {"database": "metastore", "version": "3.1.0", "password": NEW, "credentials_file": str(path)}
    needed: bool = schema.is_needed(parameters)
    return needed


def test_a_password_that_is_to_change_makes_no_new_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not asked(tmp_path, monkeypatch, json.dumps({credentials.PASSWORD: OLD}))


@pytest.mark.parametrize(
    "file",
    [None, "", "[]", *(json.dumps({credentials.PASSWORD: word}) for word in (NEW, "other"))],
)
def test_a_database_that_no_known_password_opens_cannot_be_asked(
    file: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DeniedError):
        asked(tmp_path, monkeypatch, file)


@pytest.mark.parametrize(
    ("psql", "ready", "kind"),
    [
        (
            'connection to server failed: FATAL:  password authentication failed for user "hive"',
            0,
            DeniedError,
        ),
        ("connection to server failed: FATAL:  sorry, too many clients already", 0, DeniedError),
        ('connection to server failed: FATAL:  database "metastore" does not exist', 0, UnansweredError),
        ("connection to server failed: Connection refused", 2, UnansweredError),
        ("FATAL:  the database system is starting up", 1, UnansweredError),
    ],
)
def test_a_server_that_answers_with_a_refusal_is_no_empty_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, psql: str, ready: int, kind: type[UnansweredError]
) -> None:
    for name, script in (("psql", f"echo '{psql}' >&2; exit 2"), ("pg_isready", f"exit {ready}")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    parameters = {"host": "h", "port": 5432, "database": "metastore", "user": "hive", "password": "x"}
    with pytest.raises(UnansweredError) as error:
        schema.Database(parameters).run("select 1")
    assert type(error.value) is kind


@pytest.mark.parametrize("interrupted", [False, True])
def test_what_an_interrupted_run_made_is_made_anew(
    interrupted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Making(interrupted=interrupted)
    monkeypatch.setattr(schema, "Database", lambda _: database)
    monkeypatch.setattr(schema, "_initialise", lambda _: setattr(database, "tables", 74))
    parameters = {"database": "metastore", "version": "3.1.0"}
    assert schema.apply(parameters) is True
    assert (schema.CLEAR in database.ran, database.tables, database.marked) == (interrupted, 74, False)
    assert schema.apply(parameters) is False


def test_a_role_that_may_make_no_tables_is_told_how_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(Making):
        def run(self, sql: str) -> str:
            return "f" if sql == schema.MAY_MAKE else super().run(sql)

    database = Closed(interrupted=False)
    monkeypatch.setattr(schema, "Database", lambda _: database)
    with pytest.raises(
        RefusedError,
        match=r"^database m is empty, and role hive may make no tables in it; next: run site.yml with ",
    ):
        schema.apply({"database": "m", "version": "3.1.0", "user": "hive"})
    assert not database.marked


@pytest.mark.parametrize(
    ("used", "sessions", "said"),
    [
        ("DBS\nTBLS", 0, "rows in DBS, TBLS"),
        ("", 2, "2 other sessions"),
        ("TBLS", 1, "rows in TBLS; 1 other session"),
    ],
)
def test_a_mark_does_not_give_a_catalog_away_that_is_in_use(
    used: str, sessions: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Making(interrupted=True, used=used, sessions=sessions)
    monkeypatch.setattr(schema, "Database", lambda _: database)
    with pytest.raises(RefusedError) as refused:
        schema.apply({"database": "metastore", "version": "3.1.0"})
    assert f"but is in use ({said}); nothing was touched" in refused.value.what
    assert "\n" not in str(refused.value)
    assert schema.CLEAR not in database.ran
    assert database.marked


def test_an_environment_file_is_read_without_its_comments(tmp_path: Path) -> None:
    path = tmp_path / "a.env"
    path.write_text('# not=this\nA="1=2"\n\nB="say \\"hi\\" \\\\ there"\n', encoding="utf-8")
    assert environment_of(str(path)) == {"A": "1=2", "B": 'say "hi" \\ there'}


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("plain", "'plain'"), ("it's", "'it''s'"), ("'; drop table t; --", "'''; drop table t; --'")],
)
def test_a_literal_cannot_end_its_quotes(text: str, quoted: str) -> None:
    assert postgresql.literal(text) == quoted


@pytest.mark.parametrize(
    ("name", "quoted"), [("hive", '"hive"'), ('a"b', '"a""b"'), ("Upper Case", '"Upper Case"')]
)
def test_an_identifier_cannot_end_its_quotes(name: str, quoted: str) -> None:
    assert postgresql.identifier(name) == quoted


def test_a_verifier_is_that_of_the_specification() -> None:
    """The example of RFC 7677, whose salt and number of rounds are those of PostgreSQL's own verifiers."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    found = postgresql.verifier("pencil", salt)
    assert found == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ=="
        "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


@pytest.mark.parametrize(("one", "other"), [("a\u00a0b", "a b"), ("I\u00adX", "IX"), ("\u2168", "IX")])
def test_a_password_is_prepared_as_clients_do(one: str, other: str) -> None:
    assert postgresql.prepared(one) == other.encode()
