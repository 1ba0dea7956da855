"""Make a backup: the database at T0, HDFS at T1 after it, the copy, and a manifest that ties them.

The order matters: a catalog that is newer than the files would name some that do not exist.
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
# Errors of a write to a full disk, or beyond a quota.
_FULL = {errno.ENOSPC, errno.EDQUOT}
_PAUSE_SECONDS = 0.5
_COUNT_SECONDS = 3600
_DATABASE_SECONDS = 6 * 3600
# The longest error message that is passed on from another host.
_MESSAGE_LENGTH = 1000


class Clock:
    """The duration of each phase of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def past(self, phase: str) -> None:
        """End a phase."""
        end = time.monotonic()
        self.seconds[phase], self._last = round(end - self._last, 1), end


def run(settings: Settings) -> dict[str, Any]:
    """Make a backup and remove those beyond retention; return its manifest.

    Raises BackupError where it fails: then its copy is removed, and every earlier backup is unchanged.
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
        with ThreadPoolExecutor(1) as pool:
            image = pool.submit(_image, settings, backup)
            entries, fetched = _copy(settings, hdfs, backup)
            clock.past("files")
            image.result()
            clock.past("image after the files")
        backup.write_tree(entries)
        shutil.copy2(settings.configuration, backup.folder)
        described_tables = _tables(settings, backup, entries)
        clock.past("rows")
        document = {
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
            "tables": [table.json() for table in described_tables],
        }
        backup.finish(document)
        _retain(settings, hdfs)
        return document


def ask(settings: Settings, *words: str, rows: IO[str] | None = None) -> Any:
    """Run a command on PostgreSQL's host and return its result; BackupError with its error message.

    The result is the last line; the lines before it are written to `rows`, up to the size of the longest file
    of a backup.
    """
    last, room = "", checked_document.MOST_BYTES
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
        [*settings.database_ssh, " ".join(words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
    ) as process:  # fmt: skip
        limit = Timer(_DATABASE_SECONDS, process.kill)
        limit.start()
        try:
            assert process.stdout  # noqa: S101 -- a pipe was asked for
            while line := process.stdout.readline(backup_manifest.LINE_BYTES):
                room -= len(line)
                if room < 0 or len(line) == backup_manifest.LINE_BYTES:
                    process.kill()
                    raise BackupError("PostgreSQL's host answers with more than a backup holds")
                if rows and last:
                    rows.write(last)
                last = line
            process.wait()
        finally:
            limit.cancel()
        errors.seek(0)
        log = errors.read(_MESSAGE_LENGTH)
    try:
        answer = dict(checked_document.parse(last, "the answer"))
    except (ValueError, TypeError):
        answer = {}
    # The last line of a connection that was cut is a row, which may have any keys.
    if "value" in answer and not process.returncode:
        return answer["value"]
    if set(answer) == {"why"}:
        raise BackupError(checked_document.printable(str(answer["why"])[:_MESSAGE_LENGTH]))
    why = checked_document.printable(" ".join((log or last).split())[:_MESSAGE_LENGTH])
    raise BackupError(f"PostgreSQL's host does not answer: {why or f'exit {process.returncode}'}")


def in_repository(settings: Settings) -> list[str]:
    """Return the labels of PostgreSQL's backups, the oldest first."""
    return [backup["label"] for backup in backup_manifest.backups(ask(settings, "info"))]


@contextmanager
def alone(settings: Settings, seconds: float = 0.0) -> Iterator[None]:
    """Hold the repository's lock: each of two concurrent backups would remove the other as unfinished.

    BackupError where another process holds it for longer than `seconds`.
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
    """Remove the copy of a failed run at once: it may be what fills the disk."""
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
            # Otherwise the next command reads the snapshot's name from this folder.
            if _drop_snapshot(settings, hdfs, backup.name):
                backup.remove()


def _want_room(settings: Settings, size: int) -> None:
    free = shutil.disk_usage(settings.folder).free
    if free < size + _SPARE_BYTES:
        raise BackupError(
            f"{settings.folder} has {free >> 20} MiB left and needs {(size + _SPARE_BYTES) >> 20} MiB"
        )


def _snapshot(settings: Settings, hdfs: WebHdfs, name: str) -> float:
    """Create the snapshot of HDFS; return T1."""
    hdfs.call("PUT", "ALLOWSNAPSHOT", settings.root)
    hdfs.call("PUT", "CREATESNAPSHOT", settings.root, snapshotname=name)
    return time.time()


def _drop_snapshot(settings: Settings, hdfs: WebHdfs, name: str) -> bool:
    """Delete a snapshot, if it exists; return whether HDFS has responded."""
    try:
        hdfs.call("DELETE", "DELETESNAPSHOT", settings.root, snapshotname=name)
    except NoAnswerError:
        return False
    except WebHdfsError:
        pass
    return True


def _image(settings: Settings, backup: Backup) -> None:
    """Merge the edit log into an image that is newer than the snapshot, and copy it."""
    folder = Path(settings.checkpoint_folder)
    # A checkpoint that was killed has left its lock, a file, and perhaps half an image.
    manifest.empty(folder)
    process = subprocess.run(
        settings.checkpoint, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "HADOOP_USER_NAME": settings.superuser},
    )  # fmt: skip
    images = sorted(path for path in (folder / "current").glob("fsimage_*") if not path.suffix)
    if process.returncode or not images:
        lines = [
            line
            for line in (process.stderr + process.stdout).splitlines()
            if "ERROR" in line or "xception" in line
        ]
        raise BackupError(f"no image of the NameNode: {' '.join(lines[:1]) or f'exit {process.returncode}'}")
    backup.namenode.mkdir()
    for path in (images[-1], images[-1].with_name(f"{images[-1].name}.md5"), folder / "current" / "VERSION"):
        shutil.copy2(path, backup.namenode)


def _copy(settings: Settings, hdfs: WebHdfs, backup: Backup) -> tuple[dict[str, tree.Entry], int]:
    source = f"{settings.root}/.snapshot/{backup.name}"
    entries = tree.walk(hdfs, source, settings.left_out)
    finished = manifest.finished(settings)
    # A damaged file is excluded in every earlier backup: they share it as hard links.
    damaged_paths = {path for earlier_backup in finished for path in earlier_backup.damage.files}
    earlier: Mapping[str, tree.Entry] = {}
    folder = backup.files
    for earlier_backup in reversed(finished):
        with suppress(BackupError):
            earlier = {
                path: entry for path, entry in earlier_backup.entries.items() if path not in damaged_paths
            }
            folder = earlier_backup.files
            break
    new = [
        entry
        for path, entry in entries.items()
        if entry.identity != getattr(earlier.get(path), "identity", None)
    ]
    _want_room(settings, sum(entry.length for entry in new))
    return copying.copy(hdfs, source, entries, backup.files, earlier, folder)


def _tables(settings: Settings, backup: Backup, entries: Mapping[str, tree.Entry]) -> list[tables.Table]:
    inside = tables.Inside(settings.root, backup.files, entries)
    described = [tables.describe(row, inside) for kind, row in backup.rows() if kind == "table"]
    if inside.problems:
        remainder = f" and {len(inside.problems) - 1} more" if inside.problems[1:] else ""
        raise BackupError(f"{inside.problems[0]}{remainder}")
    earlier = _counted_before(settings)
    described = [
        replace(table, rows=old.rows, checksum=old.checksum, columns=old.columns)
        if (old := earlier.get((str(table), table.state)))
        else table
        for table in described
    ]
    uncounted = [table for table in described if table.format != "view" and table.rows is None]
    results = dict(zip(map(str, uncounted), _count(settings, uncounted), strict=True)) if uncounted else {}
    return [
        replace(table, **{**result, "columns": tuple(map(tuple, result.get("columns", ())))})
        if (result := results.get(str(table)))
        else table
        for table in described
    ]


def _counted_before(settings: Settings) -> dict[tuple[str, str], tables.Table]:
    """Return the counted tables of earlier backups by name and state; unchanged tables keep their counts."""
    counted_tables: dict[tuple[str, str], tables.Table] = {}
    for backup in manifest.all_of(settings):
        if backup.finished:
            with suppress(BackupError):
                counted_tables |= {
                    (str(table), table.state): table for table in backup.tables if table.rows is not None
                }
    return counted_tables


def _count(
    settings: Settings, uncounted: Sequence[tables.Table], *, now: bool = False
) -> list[dict[str, Any]]:
    """Return rows and checksum of tables as Spark reads them; on failure, the reason for each table."""
    # Spark's own local folder belongs to its user, which could replace modules that Python imports there.
    local = settings.state / "spark"
    local.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=local) as work:
        input_file, output_file = Path(folder) / "input.json", Path(folder) / "output.json"
        input_file.write_text(
            json.dumps([table.json() | {"now": now} for table in uncounted]), encoding="utf-8"
        )
        program = Path(__file__).with_name("fingerprint.py")
        try:
            process = subprocess.run(
                [*settings.spark_submit, str(program), str(input_file), str(output_file)],
                capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=_COUNT_SECONDS,
                cwd="/",
                env={**os.environ, "HADOOP_USER_NAME": settings.spark_user, "SPARK_LOCAL_DIRS": work},
            )  # fmt: skip
            return list(json.loads(output_file.read_text(encoding="utf-8")))
        except subprocess.TimeoutExpired:
            why = f"Spark did not count in {_COUNT_SECONDS} s"
        except (OSError, ValueError):
            lines = [line for line in process.stderr.splitlines() if line.strip()] or [
                f"exit {process.returncode}"
            ]
            why = f"Spark did not count: {lines[-1]}"
        return [{"unknown": why}] * len(uncounted)


def differences(settings: Settings, expected_tables: Sequence[tables.Table]) -> list[str]:
    """Return a line for each table that Spark reads differently from the manifest, or not at all."""
    counted_tables = [table for table in expected_tables if table.rows is not None]
    results = _count(settings, counted_tables, now=True) if counted_tables else []
    return [
        f"{table}: Spark finds {result.get('rows')} rows, checksum {result.get('checksum')} "
        f"({table.rows}, {table.checksum}) {result.get('unknown', '')}".rstrip()
        for table, result in zip(counted_tables, results, strict=True)
        if (result.get("rows"), result.get("checksum")) != (table.rows, table.checksum)
    ]


def _retain(settings: Settings, hdfs: WebHdfs) -> None:
    """Remove backups beyond retention, and every snapshot but the newest: snapshots keep blocks on disks."""
    finished = manifest.finished(settings)
    for backup in finished[:-1]:
        _drop_snapshot(settings, hdfs, backup.name)
    for backup in finished[: -settings.keep]:
        backup.remove()
    labels = in_repository(settings)
    kept_labels = (backup.manifest["database"]["label"] for backup in finished[-settings.keep :])
    # PostgreSQL's part of an unfinished run counts, too: only backups older than all retained ones expire.
    # A repository that was created again lacks some of them.
    oldest = next((labels.index(label) for label in kept_labels if label in labels), 0)
    ask(settings, "expire", str(len(labels) - oldest))
