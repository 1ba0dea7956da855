"""PostgreSQL's side of a backup: runs as its own user on its host, and answers with JSON.

The moment T0 is exact: while the catalog's tables are locked against writers, they are read and a restore
point is made. Whoever restores to that point has these tables and no others.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from backup import catalog
from backup.config import BackupError, Settings, checked

STANZA = "lakehouse"
# Writers wait so long for the catalog's tables at the most.
_LOCK = "10s"
_SQL = """
BEGIN;
SET LOCAL lock_timeout = '{lock}';
LOCK TABLE "DBS", "TBLS", "SDS", "TABLE_PARAMS", "SERDE_PARAMS" IN SHARE MODE;
SELECT pg_temp.catalog();
SELECT json_build_object('lsn', pg_create_restore_point('{name}')::text,
                         'at', extract(epoch FROM clock_timestamp()),
                         'bytes', (SELECT sum(pg_database_size(oid)) FROM pg_database),
                         'version', current_setting('server_version'));
COMMIT;
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
    query = ["psql", "-XAtq", "-p", str(settings.database_port), "-d", settings.database]
    asked = f"\\set ON_ERROR_STOP on\n\\set QUIET on\n{catalog.FUNCTIONS}{_SQL.format(lock=_LOCK, name=name)}"
    said = _run(query, asked).strip().splitlines()
    # json_agg puts each row on a line of its own.
    return json.loads("\n".join(said[:-1])), json.loads(said[-1])


def _pgbackrest(command: str, *options: str) -> str:
    return _run(["pgbackrest", f"--stanza={STANZA}", *options, command])


def _run(argv: Sequence[str], text: str | None = None) -> str:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise BackupError(f"{argv[0]} {argv[-1]}: {_complaint(said)}")
    return done.stdout


def _complaint(lines: list[str]) -> str:
    errors = [line for line in lines if "ERROR" in line]
    return " ".join((errors or lines or ["it failed and said nothing"])[0].split())
