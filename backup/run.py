"""Makes a backup: the database at T0, HDFS at T1 after it, the copy, and a manifest that ties them.

Never the other way round: a catalog that is newer than the files names some that do not exist.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import IO, Any

from backup import copying, manifest, tables, tree
from backup.config import BackupError, Settings, new_name
from backup.manifest import Backup
from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, WebHdfs, WebHdfsError

_SPARE_BYTES = 256 << 20
# What a write says on a disk, or in a quota, without room.
_FULL = {errno.ENOSPC, errno.EDQUOT}
_PAUSE_SECONDS = 0.5
_COUNT_SECONDS = 3600
_DATABASE_SECONDS = 6 * 3600
# Of what another host says in the place of an answer.
_SAID = 1000


class Clock:
    """How long each phase of a run has lasted."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def past(self, phase: str) -> None:
        """End a phase."""
        now = time.monotonic()
        self.seconds[phase], self._last = round(now - self._last, 1), now


def run(settings: Settings) -> dict[str, Any]:
    """Make a backup and remove those beyond retention; return its manifest.

    Raises BackupError where it could not be finished: then nothing of it is left, and every earlier one is as
    it was.
    """
    with alone(settings), _whole_or_nothing(settings):
        began, hdfs = time.time(), WebHdfs(settings.namenode, settings.superuser)
        clock = Clock()
        _forget_unfinished(settings, hdfs)
        _want_room(settings, 0)
        if not settings.configuration.is_file():
            raise BackupError(
                f"{settings.configuration}, by which bare machines become this cluster, is missing;"
                " site.yml writes it"
            )
        backup = Backup(settings.backups / new_name())
        backup.files.mkdir(parents=True)
        with backup.catalog_file() as rows:
            database = backup_manifest.database(ask(settings, "backup", backup.name, rows=rows))
        clock.past("database")
        at = _snapshot(settings, hdfs, backup.name)
        with ThreadPoolExecutor(1) as beside:
            image = beside.submit(_image, settings, backup)
            entries, fetched = _copy(settings, hdfs, backup)
            clock.past("files")
            image.result()
            clock.past("image after the files")
        backup.write_tree(entries)
        shutil.copy2(settings.configuration, backup.folder)
        found = _tables(settings, backup, entries)
        clock.past("rows")
        written = {
            "name": backup.name,
            "cluster": settings.cluster,
            "began": began,
            "ended": time.time(),
            "took": clock.seconds,
            "database": database,
            "hdfs": {"at": at, "root": settings.root, "snapshot": backup.name},
            "bytes": sum(entry.length for entry in entries.values()) + int(database["bytes"]),
            "fetched": fetched,
            "files": sum(not entry.directory for entry in entries.values()),
            "tables": [table.json() for table in found],
        }
        backup.finish(written)
        _retain(settings, hdfs)
        return written


def ask(settings: Settings, *words: str, rows: IO[str] | None = None) -> Any:
    """Return what PostgreSQL's host answers; BackupError with its own words where it cannot.

    The answer is the last line; what is above it is written to `rows`, which takes no more than the longest
    file of a backup has.
    """
    last, room = "", checked_document.MOST_BYTES
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
        [*settings.database_ssh, " ".join(words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
    ) as asked:  # fmt: skip
        limit = Timer(_DATABASE_SECONDS, asked.kill)
        limit.start()
        try:
            assert asked.stdout  # noqa: S101 -- a pipe was asked for
            while line := asked.stdout.readline(backup_manifest.LINE_BYTES):
                room -= len(line)
                if room < 0 or len(line) == backup_manifest.LINE_BYTES:
                    asked.kill()
                    raise BackupError("PostgreSQL's host answers with more than a backup holds")
                if rows and last:
                    rows.write(last)
                last = line
            asked.wait()
        finally:
            limit.cancel()
        errors.seek(0)
        said = errors.read(_SAID)
    try:
        answer = dict(checked_document.parse(last, "the answer"))
    except (ValueError, TypeError):
        answer = {}
    # The last line of a connection that was cut is a row, which may have any keys.
    if "value" in answer and not asked.returncode:
        return answer["value"]
    if set(answer) == {"why"}:
        raise BackupError(checked_document.printable(str(answer["why"])[:_SAID]))
    why = checked_document.printable(" ".join((said or last).split())[:_SAID])
    raise BackupError(f"PostgreSQL's host does not answer: {why or f'exit {asked.returncode}'}")


def in_repository(settings: Settings) -> list[str]:
    """Return the labels of PostgreSQL's backups, the oldest first."""
    return [one["label"] for one in backup_manifest.backups(ask(settings, "info"))]


@contextmanager
def alone(settings: Settings, seconds: float = 0.0) -> Iterator[None]:
    """Hold the repository: two backups at once would take each other for unfinished.

    BackupError where another holds it for longer than so many seconds.
    """
    for folder in (settings.backups, settings.state):
        folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    with (settings.state / "lock").open("w") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise BackupError("another backup or restore is at work here") from None
                time.sleep(_PAUSE_SECONDS)
        yield


@contextmanager
def _whole_or_nothing(settings: Settings) -> Iterator[None]:
    """Remove what a failed run has copied, at once: half a copy may be what fills the disk."""
    try:
        yield
    except Exception as error:
        with suppress(OSError):
            _forget_unfinished(settings, WebHdfs(settings.namenode, settings.superuser))
        if isinstance(error, OSError) and error.errno in _FULL:
            raise BackupError(
                f"{settings.folder} was full before the copy was whole: {error.strerror}; free space there,"
                " or name a folder of a larger disk as lakehouse_backup_dir"
            ) from error
        raise


def _forget_unfinished(settings: Settings, hdfs: WebHdfs) -> None:
    shutil.rmtree(settings.state / "spark", ignore_errors=True)
    for backup in list(manifest.all_of(settings)):
        if not backup.finished:
            backup.clear()
            # Its folder names the snapshot to the next command.
            if _drop_snapshot(settings, hdfs, backup.name):
                backup.remove()


def _want_room(settings: Settings, wanted: int) -> None:
    free = shutil.disk_usage(settings.folder).free
    if free < wanted + _SPARE_BYTES:
        raise BackupError(
            f"{settings.folder} has {free >> 20} MiB left and needs {(wanted + _SPARE_BYTES) >> 20} MiB"
        )


def _snapshot(settings: Settings, hdfs: WebHdfs, name: str) -> float:
    """Make the snapshot of HDFS; return T1."""
    hdfs.call("PUT", "ALLOWSNAPSHOT", settings.root)
    hdfs.call("PUT", "CREATESNAPSHOT", settings.root, snapshotname=name)
    return time.time()


def _drop_snapshot(settings: Settings, hdfs: WebHdfs, name: str) -> bool:
    """Drop a snapshot, which may never have been made; return whether HDFS has answered."""
    try:
        hdfs.call("DELETE", "DELETESNAPSHOT", settings.root, snapshotname=name)
    except NoAnswerError:
        return False
    except WebHdfsError:
        pass
    return True


def _image(settings: Settings, backup: Backup) -> None:
    """Have the edit log merged into an image that is newer than the snapshot, and keep it."""
    folder = Path(settings.checkpoint_folder)
    for old in folder.glob("*"):
        shutil.rmtree(old)
    done = subprocess.run(
        settings.checkpoint, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "HADOOP_USER_NAME": settings.superuser},
    )  # fmt: skip
    images = sorted(path for path in (folder / "current").glob("fsimage_*") if not path.suffix)
    if done.returncode or not images:
        lines = [
            line for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line or "xception" in line
        ]
        raise BackupError(f"no image of the NameNode: {' '.join(lines[:1]) or f'exit {done.returncode}'}")
    backup.namenode.mkdir()
    for path in (images[-1], images[-1].with_name(f"{images[-1].name}.md5"), folder / "current" / "VERSION"):
        shutil.copy2(path, backup.namenode)


def _copy(settings: Settings, hdfs: WebHdfs, backup: Backup) -> tuple[dict[str, tree.Entry], int]:
    source = f"{settings.root}/.snapshot/{backup.name}"
    wanted = tree.walk(hdfs, source, settings.left_out)
    finished = manifest.finished(settings)
    # What is known to be damaged is in none of them as it was: the same file is linked into many.
    bad = {path for one in finished for path in one.damage.files}
    earlier: Mapping[str, tree.Entry] = {}
    folder = backup.files
    for one in reversed(finished):
        with suppress(BackupError):
            earlier = {path: entry for path, entry in one.entries.items() if path not in bad}
            folder = one.files
            break
    new = [
        entry
        for path, entry in wanted.items()
        if entry.identity != getattr(earlier.get(path), "identity", None)
    ]
    _want_room(settings, sum(entry.length for entry in new))
    return copying.copy(hdfs, source, wanted, backup.files, earlier, folder)


def _tables(settings: Settings, backup: Backup, entries: Mapping[str, tree.Entry]) -> list[tables.Table]:
    inside = tables.Inside(settings.root, backup.files, entries)
    found = [tables.describe(row, inside) for kind, row in backup.rows() if kind == "table"]
    if inside.problems:
        more = f" and {len(inside.problems) - 1} more" if inside.problems[1:] else ""
        raise BackupError(f"{inside.problems[0]}{more}")
    known = _counted_before(settings)
    found = [
        replace(table, rows=old.rows, checksum=old.checksum, columns=old.columns)
        if (old := known.get((str(table), table.state)))
        else table
        for table in found
    ]
    asked = [table for table in found if table.format != "view" and table.rows is None]
    counted = dict(zip(map(str, asked), _count(settings, asked), strict=True)) if asked else {}
    return [
        replace(table, **{**said, "columns": tuple(map(tuple, said.get("columns", ())))})
        if (said := counted.get(str(table)))
        else table
        for table in found
    ]


def _counted_before(settings: Settings) -> dict[tuple[str, str], tables.Table]:
    """Return the tables of earlier backups by name and state: what has not changed is not counted again."""
    known: dict[tuple[str, str], tables.Table] = {}
    for backup in manifest.all_of(settings):
        if backup.finished:
            with suppress(BackupError):
                known |= {
                    (str(table), table.state): table for table in backup.tables if table.rows is not None
                }
    return known


def _count(settings: Settings, asked: Sequence[tables.Table], *, now: bool = False) -> list[dict[str, Any]]:
    """Return rows and checksum of tables as Spark reads them; where it cannot, each is unknown and why."""
    # Spark's own local folder belongs to its user, who could exchange what the keeper's Python imports there.
    local = settings.state / "spark"
    local.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=local) as work:
        question, answer = Path(folder) / "asked.json", Path(folder) / "told.json"
        question.write_text(json.dumps([table.json() | {"now": now} for table in asked]), encoding="utf-8")
        program = Path(__file__).with_name("fingerprint.py")
        try:
            done = subprocess.run(
                [*settings.spark_submit, str(program), str(question), str(answer)],
                capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=_COUNT_SECONDS,
                cwd="/",
                env={**os.environ, "HADOOP_USER_NAME": settings.spark_user, "SPARK_LOCAL_DIRS": work},
            )  # fmt: skip
            return list(json.loads(answer.read_text(encoding="utf-8")))
        except subprocess.TimeoutExpired:
            why = f"Spark did not count in {_COUNT_SECONDS} s"
        except (OSError, ValueError):
            lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit {done.returncode}"]
            why = f"Spark did not count: {lines[-1]}"
        return [{"unknown": why}] * len(asked)


def differences(settings: Settings, known: Sequence[tables.Table]) -> list[str]:
    """Return a line for each table that Spark reads otherwise now than a manifest says, or not at all."""
    asked = [table for table in known if table.rows is not None]
    found = _count(settings, asked, now=True) if asked else []
    return [
        f"{table}: Spark finds {said.get('rows')} rows, checksum {said.get('checksum')} "
        f"({table.rows}, {table.checksum}) {said.get('unknown', '')}".rstrip()
        for table, said in zip(asked, found, strict=True)
        if (said.get("rows"), said.get("checksum")) != (table.rows, table.checksum)
    ]


def _retain(settings: Settings, hdfs: WebHdfs) -> None:
    """Remove what is beyond retention, and every snapshot but the newest: it keeps blocks on disks."""
    finished = manifest.finished(settings)
    for backup in finished[:-1]:
        _drop_snapshot(settings, hdfs, backup.name)
    for backup in finished[: -settings.keep]:
        backup.remove()
    labels = in_repository(settings)
    kept = (backup.manifest["database"]["label"] for backup in finished[-settings.keep :])
    # PostgreSQL's part of a run that was never finished counts too: only what is older than all we keep goes.
    # A repository that was made anew has not all of them.
    oldest = next((labels.index(label) for label in kept if label in labels), 0)
    ask(settings, "expire", str(len(labels) - oldest))
