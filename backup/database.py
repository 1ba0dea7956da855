"""PostgreSQL's side of a backup: runs as its own user on its host, and returns JSON.

T0 is exact: while the catalog's tables are locked against writers, a restore point is created and the
snapshot begins from which they are read. A restore to that point has exactly these tables. The lock
belongs to a savepoint, so that it ends before the tables are read, however long that takes.

Two sessions are used. The metastore's role locks and reads its tables; the superuser, which alone may create
a restore point, does so in the database `postgres`, in which no other role can have created a function.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from backup import catalog
from backup.config import BackupError, Settings, checked

STANZA = "lakehouse"
_SECONDS = 10
# While this session waits for the lock, new writers wait behind it: this long at most. They run before the
# next attempt.
_LOCK_MILLISECONDS = 500
_ATTEMPTS = 60
_PAUSE_SECONDS = 1.0
# PostgreSQL's code for a lock that was not available.
_BUSY = "55P03"
# psql prints this line when the tables are locked; no document equals it.
_LOCKED = "@@lakehouse locked"
# The first query of a transaction that reads repeatably begins its snapshot: it comes after the lock.
_LOCK = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    f"SET LOCAL lock_timeout = '{_LOCK_MILLISECONDS}ms'",
    # The lock ends with its session, which times out after the other session's own timeout.
    f"SET LOCAL idle_in_transaction_session_timeout = '{3 * _SECONDS}s'",
    "SET LOCAL jit = off",
    "SAVEPOINT unlocked",
    'LOCK TABLE "DBS", "TBLS", "SDS", "TABLE_PARAMS", "SERDE_PARAMS", "PARTITIONS" IN SHARE MODE',
    f"SELECT '{_LOCKED}'",
)
_READ = (
    "ROLLBACK TO SAVEPOINT unlocked",
    f"SET LOCAL lock_timeout = '{_SECONDS}s'",
    *catalog.QUERIES,
    "COMMIT",
)
_ENVIRONMENT = {"PGCONNECT_TIMEOUT": str(_SECONDS), "PGAPPNAME": "lakehouse-backup"}
_POINT = """
SELECT json_build_object('lsn', pg_create_restore_point('{name}')::text,
                         'at', extract(epoch FROM clock_timestamp()),
                         'bytes', (SELECT sum(pg_database_size(oid)) FROM pg_database),
                         'version', current_setting('server_version'))
"""


def answer(settings: Settings, words: Sequence[str], out: IO[str]) -> object:
    """Run one of the four commands of the repository's host and return its result.

    `backup NAME`, `info`, `verify` and `expire COUNT`; the first writes the rows of the catalog to `out`, one
    JSON document on each line. Raises BackupError for any other command, and where a command fails.
    """
    match list(words):
        case ["backup", name]:
            return back_up(settings, checked(name), out)
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
            raise BackupError(f"there is no answer to {' '.join(words)!r} here")


def back_up(settings: Settings, name: str, out: IO[str]) -> Mapping[str, Any]:
    """Copy the database, create the restore point, wait until it is archived; return label and restore point.

    Writes the catalog at the restore point to `out`, a row on each line.
    """
    _pgbackrest("backup", "--type=full", "--no-expire-auto", f"--annotation=lakehouse={name}")
    moment = _at_t0(settings, name, out)
    # `check` switches the WAL and waits until that segment, which follows T0, is in the repository.
    _pgbackrest("check")
    [last] = [backup for backup in info() if backup["annotation"].get("lakehouse") == name]
    return {"label": last["label"], "restore_point": name, **moment}


def info() -> list[dict[str, Any]]:
    """Return the backups of PostgreSQL that are in the repository, the oldest first."""
    [stanza] = json.loads(_pgbackrest("info", "--output=json")) or [{"backup": []}]
    return [
        {
            "label": backup["label"],
            "annotation": backup.get("annotation", {}),
            "bytes": backup["info"]["size"],
        }
        for backup in stanza["backup"]
    ]


def _at_t0(settings: Settings, name: str, out: IO[str]) -> dict[str, Any]:
    """Write the catalog to `out`, and return the restore point that was made while its tables were locked."""
    for _ in range(_ATTEMPTS):
        if (moment := _attempt(settings, name, out)) is not None:
            return moment
        time.sleep(_PAUSE_SECONDS)
    raise BackupError(
        f"the catalog's tables in database {settings.database}: others held them at each of {_ATTEMPTS}"
        " attempts"
    )


def _attempt(settings: Settings, name: str, out: IO[str]) -> dict[str, Any] | None:
    """Try once; None where the tables could not be locked in time, and nothing was written."""
    moment: dict[str, Any] | None = None
    with tempfile.TemporaryFile("w+") as errors, _session(settings, errors) as session:
        assert session.stdin  # noqa: S101 -- both pipes were asked for
        assert session.stdout  # noqa: S101
        if session.stdout.readline() == f"{_LOCKED}\n":
            moment = json.loads(_point(settings, name))
        # A session that has ended has logged the reason in `errors`.
        with suppress(BrokenPipeError):
            if moment is not None:
                session.stdin.write(";\n".join([*_READ, ""]))
                session.stdin.flush()
        with suppress(BrokenPipeError):
            session.stdin.close()
        for line in session.stdout:
            out.write(catalog.row(line))
        session.wait()
        errors.seek(0)
        log = errors.read()
    if moment is not None and not session.returncode:
        return moment
    if moment is None and _BUSY in log:
        return None
    raise BackupError(f"the catalog's tables in database {settings.database}: {_complaint(_full(log))}")


def _session(settings: Settings, errors: IO[str]) -> subprocess.Popen[str]:
    """Begin a session of the metastore's role in its database; it rolls back when its input is closed."""
    statements = [word for statement in _LOCK for word in ("-c", statement)]
    argv = [
        *_psql(settings, settings.database_user, settings.database),
        *("-v", "VERBOSITY=verbose"), *statements, "-f", "-",
    ]  # fmt: skip
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        env={**os.environ, **_ENVIRONMENT},
    )  # fmt: skip


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
    process = subprocess.run(
        argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    if process.returncode:
        raise BackupError(f"{argv[0]} {argv[-1]}: {_complaint(_full(process.stdout + process.stderr))}")
    return process.stdout


def _full(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _complaint(lines: list[str]) -> str:
    errors = [line for line in lines if "ERROR" in line]
    return " ".join((errors or lines or ["it failed and said nothing"])[0].split())
