"""The programs of a backup, by name; each prints a JSON document with a value, or with the error.

`database backup` prints the rows of the catalog before it, a document on each line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from backup import database, manifest, reconcile, run, selection, serve, verify
from backup.config import BackupError, BackupUsageError, Settings, load, made_at
from backup.manifest import Backup
from backup.selection import Selection
from plugins.module_utils.lakehouse import exported_metrics
from plugins.module_utils.lakehouse.checked_document import DocumentError
from plugins.module_utils.lakehouse.webhdfs import WebHdfsError

# The result of the last run, success or failure; status and doctor read it.
_LAST = "last.json"
_WAIT_SECONDS = 600.0


def _run(settings: Settings, _: argparse.Namespace) -> Any:
    """Make a backup and record its result in last.json, also while it runs."""
    last: dict[str, Any] = {"began": time.time(), "why": "it was interrupted"}
    settings.state.mkdir(exist_ok=True)
    _keep(settings, last)
    try:
        # Verification comes first: the backup then fetches damaged files again.
        with run.alone(settings):
            verify.regularly(settings)
        document = run.run(settings)
    except Exception as error:
        # Any exception: without a reason the record describes a run in progress.
        why = " ".join(str(error).split()) or type(error).__name__
        _keep(settings, last | {"why": why, "ended": time.time()})
        raise
    _keep(settings, last | {"why": "", "ended": time.time()})
    return document


def _keep(settings: Settings, last: dict[str, Any]) -> None:
    """Record the result of the last run and the newest good backup, for status, doctor and Prometheus."""
    document = last | manifest.standing(settings)
    exported_metrics.export(
        settings.metrics,
        {
            "lakehouse_backup_good_timestamp_seconds": (
                "When the newest good backup began, 0 for none.",
                made_at(document["good"]) if document["good"] else 0,
            ),
            "lakehouse_backup_limit_seconds": (
                "The age from which the newest good backup is old.",
                settings.alert_hours * 3600,
            ),
            "lakehouse_backup_failed": (
                "Whether the last backup has failed.",
                float("ended" in last and bool(last["why"])),
            ),
        },
    )
    path = settings.state / _LAST
    text, new = json.dumps(document), path.with_name(f"{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError:
        # On a full disk the existing file has room for a short document.
        new.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")


def _note_standing(settings: Settings) -> None:
    """Record the newest good backup."""
    with suppress(OSError, ValueError):
        _keep(settings, json.loads((settings.state / _LAST).read_text(encoding="utf-8")))


def _database(settings: Settings, arguments: argparse.Namespace) -> Any:
    """Run the database program that the repository's host names; sshd passes its command."""
    words = arguments.words or os.environ.get("SSH_ORIGINAL_COMMAND", "").split()
    return database.answer(settings, words, sys.stdout)


def _selection(backup: Backup, arguments: argparse.Namespace) -> Selection | None:
    """Return the selected table or database; None for the whole backup."""
    if not (arguments.table or arguments.database):
        return None
    return selection.choose(backup, arguments.table, arguments.database)


def _verify(settings: Settings, arguments: argparse.Namespace) -> Any:
    """Return the problems of a backup or a part of it, or the contents of a good one."""
    backup = manifest.find(settings, arguments.name)
    part = _selection(backup, arguments)
    problems = verify.part(settings, backup, part) if part else verify.verify(settings, backup)
    _note_standing(settings)
    if problems:
        return {"name": backup.name, "problems": problems}
    if part is None:
        needed = reconcile.needed(settings, backup, keep=arguments.keep) if arguments.room else {}
        return {"problems": [], **backup.manifest, **needed}
    identity = {key: backup.manifest[key] for key in ("name", "cluster")}
    return {"problems": [], **identity, **part.json(), "room": selection.room(settings, backup, part)}


def _reconcile(settings: Settings, arguments: argparse.Namespace) -> Any:
    """Restore HDFS to the state of a backup, or the files of a table or a database."""
    backup = manifest.find(settings, arguments.name)
    part = _selection(backup, arguments)
    # An interrupted restore may still be running.
    with run.alone(settings, _WAIT_SECONDS):
        if part is not None:
            return selection.bring(settings, backup, part, arguments.into)
        return reconcile.reconcile(settings, backup, (), keep=arguments.keep)


def _shown(settings: Settings, arguments: argparse.Namespace) -> Any:
    return manifest.find(settings, arguments.name).manifest


def _compare(settings: Settings, arguments: argparse.Namespace) -> Any:
    """Return the tables that Spark reads differently from the manifest."""
    backup = manifest.find(settings, arguments.name)
    part = _selection(backup, arguments)
    expected_tables = backup.tables if part is None else selection.named(part, arguments.named)
    # A starting backup empties Spark's folder.
    with run.alone(settings, _WAIT_SECONDS):
        return {"differences": run.differences(settings, expected_tables)}


def _serve(settings: Settings, arguments: argparse.Namespace) -> Any:
    folder = manifest.find(settings, arguments.name).namenode
    return serve.serve(folder, (arguments.to, arguments.port), arguments.word, arguments.seconds)


def _list(settings: Settings, _: argparse.Namespace) -> Any:
    return [
        {"name": backup.name, "problems": backup.damage.problems} for backup in manifest.finished(settings)
    ]


_FLAG, _TEXT, _NEEDED = {"action": "store_true"}, {"default": ""}, {"required": True}
_NAME: dict[str, dict[str, Any]] = {"name": {"nargs": "?", "default": ""}}
_PART = _NAME | {"--table": _TEXT, "--database": _TEXT}
# Each with its arguments.
_PROGRAMS: dict[str, tuple[Callable[..., Any], dict[str, dict[str, Any]]]] = {
    "run": (_run, {}),
    "database": (_database, {"words": {"nargs": "*"}}),
    "list": (_list, {}),
    "verify": (_verify, _PART | {"--room": _FLAG, "--keep": _FLAG}),
    "show": (_shown, _NAME),
    "reconcile": (_reconcile, _PART | {"--keep": _FLAG, "--into": _TEXT}),
    "compare": (_compare, _PART | {"--named": _TEXT}),
    "serve": (
        _serve,
        {
            **_NAME,
            "--to": _NEEDED,
            "--port": _NEEDED | {"type": int},
            "--word": _NEEDED,
            "--seconds": _NEEDED | {"type": float},
        },
    ),
}


def main() -> int:
    """Run a program; return 0, or 1 if it failed."""
    parser = argparse.ArgumentParser(prog="lakehouse-backup", description=__doc__)
    parser.add_argument("--settings", required=True)
    programs = parser.add_subparsers(required=True)
    for name, (program, parameters) in _PROGRAMS.items():
        subparser = programs.add_parser(name)
        subparser.set_defaults(program=program)
        for flag, options in parameters.items():
            subparser.add_argument(flag, **options)
    arguments = parser.parse_args()
    try:
        answer = {"value": arguments.program(load(arguments.settings), arguments)}
    except (BackupError, DocumentError, WebHdfsError, OSError, subprocess.SubprocessError) as error:
        answer = {"why": " ".join(str(error).split()), "usage": isinstance(error, BackupUsageError)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return int("why" in answer)


if __name__ == "__main__":
    sys.exit(main())
