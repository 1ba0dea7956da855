"""Verify backups without restoring them, and record their damage."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from backup import copying, manifest, tables
from backup.config import BackupError, Settings, made_at
from backup.copying import Inode
from backup.manifest import Backup, Damage
from backup.run import ask, in_repository
from backup.selection import Selection, files
from backup.tree import Entry
from plugins.module_utils.lakehouse.backup_manifest import problem

_BACKUP = re.compile(r"backup: (\S+), status: (.+?), total")
_INVALID = re.compile(r"(?:missing|checksum invalid|size invalid|other): ([1-9]\d*)")
# The time of the last verification of all backups.
_VERIFIED = "verified.json"
_DAY = 86400
# A timer may elapse this much early.
_SLACK_SECONDS = 3600


class _Repository:
    """PostgreSQL's part of all backups, verified once; BackupError where its host does not respond."""

    def __init__(self, settings: Settings) -> None:
        self._labels = in_repository(settings)
        result = ask(settings, "verify")
        self._output = str(result.get("said")) if isinstance(result, dict) else ""

    def problems(self, label: str) -> list[str]:
        if label not in self._labels:
            return [f"postgresql {label} is not in pgBackRest's repository"]
        return judge(self._output, label)


def verify(settings: Settings, backup: Backup) -> list[str]:
    """Return the problems of a backup, a line each; none of a good one.

    The damage is recorded in this backup, and in the others that share the damaged file. Raises BackupError
    where PostgreSQL's host does not respond.
    """
    damage = _damage(settings, backup, _Repository(settings), {})
    backup.record(damage)
    _record_shared(settings, backup, damage.files)
    return list(damage.problems)


def part(settings: Settings, backup: Backup, selection: Selection) -> list[str]:
    """Return and record the problems of the files of a table or a database; no other file is read."""
    entries = {entry.path: entry for entry in files(settings, backup, selection)}
    damage, recorded = _of_files(copying.damaged(backup.files, entries.values())), backup.damage
    if damage.files or recorded.problems:
        backup.record(recorded.without(entries) | damage)
        _record_shared(settings, backup, damage.files)
    return list(damage.problems)


def regularly(settings: Settings) -> None:
    """Verify all backups every `verify_days`; a file that several share is read once."""
    backups, path = manifest.finished(settings), settings.state / _VERIFIED
    if not settings.verify_days or not backups:
        return
    last = made_at(backups[0].name)
    with suppress(OSError, ValueError, KeyError, TypeError):
        last = float(json.loads(path.read_text(encoding="utf-8"))["at"])
    if time.time() - last < settings.verify_days * _DAY - _SLACK_SECONDS:
        return
    repository, sums = _Repository(settings), dict[Inode, str]()
    for backup in backups:
        backup.record(_damage(settings, backup, repository, sums))
    manifest.write(path, json.dumps({"at": time.time()}))


def _damage(settings: Settings, backup: Backup, repository: _Repository, sums: dict[Inode, str]) -> Damage:
    """Return the damage of a backup; `sums` are checksums of files that were read before."""
    try:
        document, entries = backup.manifest, backup.entries
    except BackupError as error:
        return Damage(problems=(str(error),))
    parts = [
        f"{path} is not as it was written"
        for path, digest in document["parts"].items()
        if not (backup.folder / path).is_file() or copying.sha256(backup.folder / path) != digest
    ]
    file_damage = _of_files(copying.damaged(backup.files, entries.values(), sums))
    problems = [*_tables(settings, backup, entries), *repository.problems(str(document["database"]["label"]))]
    return Damage(problems=tuple(parts)) | file_damage | Damage(problems=tuple(problems))


def _of_files(paths: Iterable[str]) -> Damage:
    damaged = tuple(paths)
    return Damage(damaged, tuple(map(problem, damaged)))


def _record_shared(settings: Settings, backup: Backup, paths: Iterable[str]) -> None:
    """Record damaged files in the other backups that share them as hard links."""
    for sharing_backup in manifest.finished(settings):
        if sharing_backup.name == backup.name:
            continue
        with suppress(BackupError):
            shared = [entry for path in paths if (entry := sharing_backup.entries.get(path))]
            if damage := copying.damaged(sharing_backup.files, shared):
                sharing_backup.record(sharing_backup.damage | _of_files(damage))


def _tables(settings: Settings, backup: Backup, entries: Mapping[str, Entry]) -> list[str]:
    inside = tables.Inside(settings.root, backup.files, entries)
    outside = [
        table for table in backup.tables if table.metadata and inside.relative(table.metadata) not in entries
    ]
    return [f"{table}: {table.metadata} is not in the backup" for table in outside]


def judge(output: str, label: str) -> list[str]:
    """Return the problems of a backup in the output of `pgbackrest verify`, whose exit code is always 0."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if "status: ok" in lines:
        return []
    problems = [
        line
        for line in lines
        if (match := _BACKUP.search(line)) and (match[1] == label and match[2] != "valid")
    ]
    problems += [line for line in lines if line.startswith("archiveId:") and _INVALID.search(line)]
    failed = any(line.startswith("status: error") for line in lines)
    if not failed and not problems:
        return [f"postgresql: pgbackrest verify says {' '.join(lines) or 'nothing'}"]
    return [f"postgresql {line}" for line in problems] or [f"postgresql {' '.join(lines)}"]
