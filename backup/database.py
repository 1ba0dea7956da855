"""PostgreSQL's side of a backup: runs as its own user on its host, and answers with JSON.

The moment T0 is exact: while the catalog's tables are locked against writers, they are read and a restore
point is made. Whoever restores to that point has these tables and no others.

Two sessions do it. The metastore's role locks and reads its tables; the superuser, who alone may make a
restore point, makes it in the database `postgres`, in which no other role can have made a function.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from backup import catalog
from backup.config import BackupError, Settings, checked

STANZA = "lakehouse"
# Writers wait so long for the catalog's tables at the most, and the restore point is made within it.
_SECONDS = 10
# What psql prints when the catalog is read; no value of JSON is a line like this.
_READ = "@@lakehouse read"
# The lock ends with its session where that is left alone for longer than the other session may take.
_LOCK = (
    catalog.FUNCTIONS,
    "BEGIN",
    f"SET LOCAL lock_timeout = '{_SECONDS}s'",
    f"SET LOCAL idle_in_transaction_session_timeout = '{3 * _SECONDS}s'",
    'LOCK TABLE "DBS", "TBLS", "SDS", "TABLE_PARAMS", "SERDE_PARAMS" IN SHARE MODE',
    "SELECT pg_temp.catalog()",
    f"SELECT '{_READ}'",
)
_ENVIRONMENT = {"PGCONNECT_TIMEOUT": str(_SECONDS), "PGAPPNAME": "lakehouse-backup"}
_POINT = """
SELECT json_build_object('lsn', pg_create_restore_point('{name}')::text,
                         'at', extract(epoch FROM clock_timestamp()),
                         'bytes', (SELECT sum(pg_database_size(oid)) FROM pg_database),
                         'version', current_setting('server_version'))
"""


def answer(settings: Settings, words: Sequence[str]) -> object:
    """Return what one of the four questions of the repository's host has for an answer.

    `backup NAME`, `info`, `verify` and `expire COUNT`. Raises BackupError for any other, and where one fails.
    """
    match list(words):
        case ["backup", name]:
            return back_up(settings, checked(name))
        case ["info"]:
            return info()
        case ["verify"]:
            return {
                "said": _run(["pgbackrest", f"--stanza={STANZA}", "--output=text", "--verbose", "verify"])
            }
        case ["expire", count] if count.isdigit() and int(count):
            _pgbackrest("expire", f"--repo1-retention-full={count}")
            return {}
        case _:
            raise BackupError(f"nobody answers {' '.join(words)!r} here")


def back_up(settings: Settings, name: str) -> Mapping[str, Any]:
    """Copy the database, make the restore point, wait until it is archived; return what is known of it."""
    _pgbackrest("backup", "--type=full", "--no-expire-auto", f"--annotation=lakehouse={name}")
    known, moment = _at_t0(settings, name)
    # It switches the WAL and waits until that segment is in the repository: T0 is before it.
    _pgbackrest("check")
    [last] = [one for one in info() if one["annotation"].get("lakehouse") == name]
    return {"label": last["label"], "restore_point": name, **moment, "catalog": known}


def info() -> list[dict[str, Any]]:
    """Return the backups of PostgreSQL that are in the repository, the oldest first."""
    [stanza] = json.loads(_pgbackrest("info", "--output=json")) or [{"backup": []}]
    return [
        {"label": one["label"], "annotation": one.get("annotation", {}), "bytes": one["info"]["size"]}
        for one in stanza["backup"]
    ]


def _at_t0(settings: Settings, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the catalog and the restore point that is made while its tables are locked."""
    with tempfile.TemporaryFile("w+") as errors, _session(settings, errors) as session:
        lines = list(_lines(session))
        moment = json.loads(_point(settings, name)) if lines[-1:] == [_READ] else None
        session.communicate("COMMIT;\n")
        errors.seek(0)
        said = errors.read()
    # Where it does not end well its lock may have gone before the restore point was made.
    if session.returncode or moment is None:
        raise BackupError(f"the catalog's tables in database {settings.database}: {_complaint(_full(said))}")
    # json_agg puts each row on a line of its own.
    return json.loads("\n".join(lines[:-1])), moment


def _session(settings: Settings, errors: IO[str]) -> subprocess.Popen[str]:
    """Begin a session of the metastore's role in its database; it rolls back when its input is closed."""
    statements = [word for statement in _LOCK for word in ("-c", statement)]
    argv = [*_psql(settings, settings.database_user, settings.database), *statements, "-f", "-"]
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        env={**os.environ, **_ENVIRONMENT},
    )  # fmt: skip


def _lines(session: subprocess.Popen[str]) -> Iterator[str]:
    """Give what a session prints, up to the line after which the catalog is read."""
    assert session.stdout  # noqa: S101 -- a pipe was asked for
    for line in session.stdout:
        yield line.rstrip("\n")
        if line == f"{_READ}\n":
            return


def _point(settings: Settings, name: str) -> str:
    limited = {**_ENVIRONMENT, "PGOPTIONS": f"-c statement_timeout={_SECONDS}s"}
    return _run([*_psql(settings, "postgres", "postgres"), "-c", _POINT.format(name=name)], limited)


def _psql(settings: Settings, role: str, database: str) -> list[str]:
    """Return the call of psql as a role that PostgreSQL's own OS user may log in as."""
    place = ["-p", str(settings.database_port), "-U", role, "-d", database]
    return ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *place]


def _pgbackrest(command: str, *options: str) -> str:
    return _run(["pgbackrest", f"--stanza={STANZA}", *options, command])


def _run(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    if done.returncode:
        raise BackupError(f"{argv[0]} {argv[-1]}: {_complaint(_full(done.stdout + done.stderr))}")
    return done.stdout


def _full(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _complaint(lines: list[str]) -> str:
    errors = [line for line in lines if "ERROR" in line]
    return " ".join((errors or lines or ["it failed and said nothing"])[0].split())
