"""A data directory of PostgreSQL is made whole or not at all, and never twice."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.lakehouse.refused import RefusedError
from service.steps import postgresql

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
POSTGRES = next((user for user in pwd.getpwall() if user.pw_name == "postgres"), pwd.getpwuid(0))
MAY_TRY = bool(PROGRAMS) and os.geteuid() == 0 and POSTGRES.pw_uid != 0


@pytest.fixture
def parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the step is told, as a user who is not root."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    secrets = tmp_path / "secrets.json"
    secrets.write_text('{"hive": "p"}', encoding="utf-8")
    return {
        "bin": "/no/such/bin",
        "data": str(tmp_path / "data"),
        "version": "17",
        "initdb": [],
        "settings": [],
        "databases": [{"name": "metastore", "user": "hive", "owner": "hive_owner"}],
        "rules": "/no/such/pg_hba.conf",
        "port": 5432,
        "secrets": str(secrets),
    }


def refused(parameters: dict[str, Any]) -> str:
    with pytest.raises(RefusedError) as error:
        postgresql.apply(parameters)
    return str(error.value)


def a_directory(path: Path, version: str = "17") -> None:
    path.mkdir(parents=True)
    (path / "PG_VERSION").write_text(f"{version}\n", encoding="utf-8")
    (path / "base").mkdir()


def names(path: str) -> set[str]:
    return {entry.name for entry in Path(path).iterdir()}


def test_root_is_refused(parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert refused(parameters) == "PostgreSQL does not run as root; next: set user: postgres in compose.yaml"


def test_a_role_without_a_password_is_refused_before_anything_is_made(parameters: dict[str, Any]) -> None:
    parameters["databases"].append({"name": "federation", "user": "reader"})
    assert refused(parameters) == (
        f"{parameters['secrets']} has no password of role reader; next: render the configuration again"
    )
    assert not Path(parameters["data"]).exists()


@pytest.mark.parametrize("place", [".", postgresql.MADE])
def test_another_version_s_volume_is_refused(parameters: dict[str, Any], place: str) -> None:
    a_directory(Path(parameters["data"]) / place, "16")
    assert refused(parameters) == (
        f"{parameters['data']} is a volume of PostgreSQL 16, the image has 17; nothing was touched;"
        " next: dump it with an image of PostgreSQL 16, or remove the volume"
    )


def test_something_else_s_volume_is_refused(parameters: dict[str, Any]) -> None:
    (Path(parameters["data"]) / "photos").mkdir(parents=True)
    assert refused(parameters) == (
        f"{parameters['data']} is neither empty nor of PostgreSQL (photos is in it); nothing was touched;"
        f" next: ls -la {parameters['data']}, then move it away"
    )


def test_a_directory_on_which_a_server_may_run_is_left_alone(parameters: dict[str, Any]) -> None:
    data = Path(parameters["data"])
    a_directory(data)
    (data / "postmaster.pid").touch()
    assert postgresql.apply(parameters) == f"left alone: a server runs on {data}, or was killed"


@pytest.mark.parametrize("moved", [(), ("base",), ("base", "PG_VERSION")])
def test_a_move_that_was_interrupted_is_finished(parameters: dict[str, Any], moved: tuple[str, ...]) -> None:
    data = Path(parameters["data"])
    a_directory(data / postgresql.MADE)
    (data / "lost+found").mkdir()
    for name in moved:
        (data / postgresql.MADE / name).rename(data / name)
    (data / "postmaster.pid").touch()
    assert postgresql.apply(parameters) == f"left alone: a server runs on {data}, or was killed"
    assert names(parameters["data"]) == {"PG_VERSION", "base", "lost+found", "postmaster.pid"}
    assert data.stat().st_mode & 0o777 == 0o700


def a_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def test_a_server_that_cannot_be_made_is_one_line_and_the_program_s_words(
    parameters: dict[str, Any], tmp_path: Path
) -> None:
    a_program(tmp_path / "initdb", "echo why >&2; echo no space left >&2; exit 1")
    with pytest.raises(RefusedError, match=r"^initdb: no space left; next: read the lines below$") as error:
        postgresql.apply({**parameters, "bin": str(tmp_path)})
    assert error.value.log == ["why", "no space left"]
    assert not names(parameters["data"])


def test_a_server_that_does_not_start_shows_its_log(parameters: dict[str, Any], tmp_path: Path) -> None:
    a_directory(Path(parameters["data"]))
    a_program(tmp_path / "pg_ctl", 'echo "the port is taken" > "$6"; echo could not start >&2; exit 1')
    with pytest.raises(RefusedError, match=r"^pg_ctl: could not start; next: read the log below") as error:
        postgresql.apply({**parameters, "bin": str(tmp_path)})
    assert error.value.log == ["could not start", "the port is taken"]


def test_who_is_interrupted_stops_the_server(
    parameters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise SystemExit(1)

    data = Path(parameters["data"])
    a_directory(data)
    a_program(
        tmp_path / "pg_ctl",
        f'case "$*" in *start) touch {data}/postmaster.pid;; *stop) rm {data}/postmaster.pid;; esac',
    )
    monkeypatch.setattr(postgresql, "left_behind", interrupt)
    with pytest.raises(SystemExit):
        postgresql.apply({**parameters, "bin": str(tmp_path)})
    assert names(parameters["data"]) == {"PG_VERSION", "base"}


class Catalogs:
    """A server of databases, each with the tables that hold rows, or None for one that is no catalog."""

    def __init__(self, **databases: str | None) -> None:
        self.databases = databases

    def admin(self, sql: str) -> str:
        return "\n".join(["postgres", *self.databases]) if sql == postgresql.DATABASES else "its-owner"

    def session(self, sql: str, database: str, user: str) -> str:
        assert user == "its-owner"
        tables = self.databases.get(database)
        if sql.endswith(postgresql.IS_CATALOG):
            return "f" if tables is None else "t"
        return tables or ""


@pytest.mark.parametrize(
    ("server", "forsaken", "is_refused"),
    [
        (Catalogs(old="TBLS"), [], True),
        (Catalogs(old="TBLS"), ["old"], False),
        (Catalogs(old=""), [], False),
        (Catalogs(sales=None), [], False),
        (Catalogs(old="TBLS", metastore="TBLS"), [], False),
    ],
)
def test_no_second_catalog_begins_beside_one_that_holds_data(
    server: Catalogs, forsaken: list[str], is_refused: bool
) -> None:
    logins: list[dict[str, Any]] = [
        {"name": "metastore", "user": "hive"},
        {"name": "federation", "user": "x", "read_only": True},
    ]
    refusal = postgresql.left_behind(server, logins, forsaken)
    assert (refusal is not None) == is_refused
    assert not refusal or str(refusal) == (
        "database old holds the data of the metastore (rows in TBLS), and lakehouse_database names metastore"
        " instead; nothing was touched; next: name old again, or give it up for ever with"
        " lakehouse_forsaken: ['old']"
    )


def attempt(parameters: dict[str, Any]) -> tuple[str, str]:
    """Run the step as the user postgres, in a process of its own; return its answer and its refusal."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answer = ["", "no answer"]
        try:
            os.setgroups([])
            os.setgid(POSTGRES.pw_gid)
            os.setuid(POSTGRES.pw_uid)
            answer = [postgresql.apply(parameters), ""]
        except RefusedError as error:
            answer = ["", "\n".join([str(error), *error.log])]
        finally:
            os.write(writing, json.dumps(answer).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        answer = json.load(stream)
    os.waitpid(child, 0)
    return answer[0], answer[1]


@dataclass(frozen=True)
class Made:
    """A volume that the step made, and what it said."""

    home: Path
    desired: dict[str, Any]
    answer: tuple[str, str] = ("", "")

    def configure(self, hive_password: str, *rules: str) -> None:
        """Write the password of one role, and who may log in."""
        secrets = json.dumps({"hive": hive_password, "reader": "r"})
        (self.home / "secrets.json").write_text(secrets, encoding="utf-8")
        (self.home / "pg_hba.conf").write_text("".join(f"{rule}\n" for rule in rules), encoding="utf-8")


ADMINISTRATOR, EVERYBODY = "local all postgres peer", "host all all 127.0.0.1/32 scram-sha-256"


@pytest.fixture(scope="module")
def made() -> Iterator[Made]:
    """A server's volume, made once in a folder of the user postgres (pytest's own are root's alone)."""
    if not MAY_TRY:
        pytest.skip("needs root, the user postgres and initdb (apt-get install postgresql)")
    home = Path(tempfile.mkdtemp(prefix="lakehouse-postgresql-"))
    volume = home / "volume"
    # An interrupted run was here before.
    (volume / postgresql.MAKING / "half").mkdir(parents=True)
    (volume / "lost+found").mkdir()
    for path in (home, volume, volume / postgresql.MAKING, volume / postgresql.MAKING / "half"):
        os.chown(path, POSTGRES.pw_uid, POSTGRES.pw_gid)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    desired = {
        "bin": str(PROGRAMS[-1].parent),
        "data": str(volume),
        "version": PROGRAMS[-1].parts[-3],
        "initdb": ["--data-checksums", "--encoding=UTF8", "--locale=C.UTF-8"],
        "settings": [f"hba_file = '{home}/pg_hba.conf'", "password_encryption = scram-sha-256"],
        "databases": [
            {"name": "metastore", "user": "hive", "owner": "hive_owner"},
            {"name": "federation", "user": "reader", "read_only": True, "schemas": ["public", "sales"]},
        ],
        "rules": f"{home}/pg_hba.conf",
        "port": port,
        "secrets": str(home / "secrets.json"),
    }
    Made(home, desired).configure("it's", ADMINISTRATOR, EVERYBODY)
    yield Made(home, desired, attempt(desired))
    shutil.rmtree(home)


def test_a_server_is_made_with_its_roles_and_databases(made: Made) -> None:
    assert made.answer == (
        f"initialised version {made.desired['version']} in {made.desired['data']};"
        " metastore: role, password, owner, database, grants, privileges;"
        " federation: role, password, database, grants, privileges",
        "",
    )


def test_a_server_is_made_at_a_mount_point_and_is_stopped_cleanly(made: Made) -> None:
    found = names(made.desired["data"])
    assert {"PG_VERSION", "base", "lost+found"} <= found
    assert not found & {postgresql.MAKING, postgresql.MADE, "postmaster.pid"}
    assert Path(made.desired["data"]).stat().st_mode & 0o777 == 0o700
    argv = [f"{made.desired['bin']}/pg_controldata", made.desired["data"]]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert re.search(r"cluster state: +shut down\n", shown)
    assert re.search(r"checksum version: +1\n", shown)


def test_a_new_password_is_set_once(made: Made) -> None:
    made.configure("new", ADMINISTRATOR, EVERYBODY)
    assert [attempt(made.desired), attempt(made.desired)] == [("metastore: password", ""), ("", "")]


def test_a_volume_of_before_gets_its_owner(made: Made) -> None:
    before = """alter database metastore owner to hive
alter database metastore reset search_path
grant pg_read_all_data to reader
"""
    argv = [f"{made.desired['bin']}/postgres", "--single", "-D", made.desired["data"], "postgres"]
    subprocess.run(
        ["runuser", "-u", "postgres", "--", *argv], input=before, text=True, cwd="/", check=True,
        capture_output=True,
    )  # fmt: skip
    assert [attempt(made.desired), attempt(made.desired)] == [
        ("metastore: password, grants, privileges; federation: password, grants", ""),
        ("", ""),
    ]


def test_a_refusal_shows_the_server_s_log_and_no_password(made: Made) -> None:
    hidden = "known-to-the-test-alone"
    made.configure(hidden, ADMINISTRATOR)
    answer, refusal = attempt(made.desired)
    assert answer == ""
    assert refusal.startswith(
        f"role hive cannot log in to database metastore on port {made.desired['port']};"
        " next: read the log below, and pg_hba.conf\n"
    )
    assert "no pg_hba.conf entry" in refusal
    assert hidden not in refusal
    assert not (made.home / "volume" / "postmaster.pid").exists()
