"""The programs of a backup, by their names; each prints a document of JSON: a value, or why there is none.

Above it `database backup` prints the rows of the catalog, a document on each line.
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
from pathlib import Path
from typing import Any

from backup import database, manifest, reconcile, run, selection, serve, verify
from backup.config import BackupError, BackupUsageError, Settings, load
from backup.manifest import Backup
from backup.selection import Chosen
from plugins.module_utils.lakehouse.checked_document import DocumentError
from plugins.module_utils.lakehouse.webhdfs import WebHdfsError

# Of the last run, good or not; status and doctor read it.
_LAST = "last.json"
_WAIT_SECONDS = 600.0


def _run(settings: Settings, _: argparse.Namespace) -> Any:
    """Make a backup; what came of it is kept for those who look."""
    last: dict[str, Any] = {"began": time.time(), "why": "it was interrupted"}
    settings.state.mkdir(exist_ok=True)
    path = settings.state / _LAST
    _keep(path, last | manifest.standing(settings))
    try:
        # Before it, so that it fetches again what was found damaged.
        with run.alone(settings):
            verify.regularly(settings)
        made = run.run(settings)
    except Exception as error:
        # Also what was not foreseen: without it the run would seem to be at work.
        why = " ".join(str(error).split()) or type(error).__name__
        _keep(path, last | manifest.standing(settings) | {"why": why, "ended": time.time()})
        raise
    _keep(path, last | manifest.standing(settings) | {"why": "", "ended": time.time()})
    return made


def _keep(path: Path, document: Any) -> None:
    text, new = json.dumps(document), path.with_name(f"{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError:
        # On a full disk the file that is there has room for a few words.
        new.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")


def _note_standing(settings: Settings) -> None:
    """Tell status and doctor which backup is the newest good one by now."""
    path = settings.state / _LAST
    with suppress(OSError, ValueError):
        _keep(path, json.loads(path.read_text(encoding="utf-8")) | manifest.standing(settings))


def _database(settings: Settings, arguments: argparse.Namespace) -> Any:
    """Answer the repository's host, whose words sshd hands on."""
    words = arguments.words or os.environ.get("SSH_ORIGINAL_COMMAND", "").split()
    return database.answer(settings, words, sys.stdout)


def _chosen(backup: Backup, arguments: argparse.Namespace) -> Chosen | None:
    """Return what is asked for: a table or a database, None for all of it."""
    if not (arguments.table or arguments.database):
        return None
    return selection.choose(backup, arguments.table, arguments.database)


def _verify(settings: Settings, arguments: argparse.Namespace) -> Any:
    """Say what is wrong with a backup or a part of it; of a good one what it has."""
    backup = manifest.find(settings, arguments.name)
    part = _chosen(backup, arguments)
    problems = verify.part(settings, backup, part) if part else verify.verify(settings, backup)
    _note_standing(settings)
    if problems:
        return {"name": backup.name, "problems": problems}
    if part is None:
        needed = reconcile.needed(settings, backup, keep=arguments.keep) if arguments.room else {}
        return {"problems": [], **backup.manifest, **needed}
    known = {key: backup.manifest[key] for key in ("name", "cluster")}
    return {"problems": [], **known, **part.json(), "room": selection.room(settings, backup, part)}


def _reconcile(settings: Settings, arguments: argparse.Namespace) -> Any:
    """Make HDFS what it was, or bring the files of a table or a database back."""
    backup = manifest.find(settings, arguments.name)
    part = _chosen(backup, arguments)
    # One that was interrupted may still be at work.
    with run.alone(settings, _WAIT_SECONDS):
        if part is not None:
            return selection.bring(settings, backup, part, arguments.into)
        return reconcile.reconcile(settings, backup, (), keep=arguments.keep)


def _shown(settings: Settings, arguments: argparse.Namespace) -> Any:
    return manifest.find(settings, arguments.name).manifest


def _compare(settings: Settings, arguments: argparse.Namespace) -> Any:
    """Say which tables Spark reads otherwise now than the manifest has them."""
    backup = manifest.find(settings, arguments.name)
    part = _chosen(backup, arguments)
    known = backup.tables if part is None else selection.named(part, arguments.named)
    # A backup that begins empties the folder of Spark.
    with run.alone(settings, _WAIT_SECONDS):
        return {"differences": run.differences(settings, known)}


def _serve(settings: Settings, arguments: argparse.Namespace) -> Any:
    folder = manifest.find(settings, arguments.name).namenode
    return serve.serve(folder, (arguments.to, arguments.port), arguments.word, arguments.seconds)


def _list(settings: Settings, _: argparse.Namespace) -> Any:
    return [{"name": one.name, "problems": one.damage.problems} for one in manifest.finished(settings)]


_FLAG, _TEXT, _NEEDED = {"action": "store_true"}, {"default": ""}, {"required": True}
_NAME: dict[str, dict[str, Any]] = {"name": {"nargs": "?", "default": ""}}
_PART = _NAME | {"--table": _TEXT, "--database": _TEXT}
# Each with what it takes.
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
    """Run one of them; 0, or 1 where it has failed."""
    parser = argparse.ArgumentParser(prog="lakehouse-backup", description=__doc__)
    parser.add_argument("--settings", required=True)
    programs = parser.add_subparsers(required=True)
    for name, (program, taken) in _PROGRAMS.items():
        one = programs.add_parser(name)
        one.set_defaults(program=program)
        for word, how in taken.items():
            one.add_argument(word, **how)
    arguments = parser.parse_args()
    try:
        answer = {"value": arguments.program(load(arguments.settings), arguments)}
    except (BackupError, DocumentError, WebHdfsError, OSError, subprocess.SubprocessError) as error:
        answer = {"why": " ".join(str(error).split()), "usage": isinstance(error, BackupUsageError)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return int("why" in answer)


if __name__ == "__main__":
    sys.exit(main())
