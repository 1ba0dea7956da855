"""Looks whether a backup could be restored, without restoring it, and notes what it finds."""

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
from backup.selection import Chosen, files
from backup.tree import Entry
from plugins.module_utils.lakehouse.backup_manifest import problem

_BACKUP = re.compile(r"backup: (\S+), status: (.+?), total")
_INVALID = re.compile(r"(?:missing|checksum invalid|size invalid|other): ([1-9]\d*)")
# When everything was read last.
_VERIFIED = "verified.json"
_DAY = 86400
# By how much a timer may be early.
_SLACK_SECONDS = 3600


class _Repository:
    """PostgreSQL's part of all backups: asked once, and what its host does not answer is no damage."""

    def __init__(self, settings: Settings) -> None:
        self._labels = in_repository(settings)
        said = ask(settings, "verify")
        self._said = str(said.get("said")) if isinstance(said, dict) else ""

    def problems(self, label: str) -> list[str]:
        if label not in self._labels:
            return [f"postgresql {label} is not in pgBackRest's repository"]
        return judge(self._said, label)


def verify(settings: Settings, backup: Backup) -> list[str]:
    """Return what is wrong with a backup, a line each; none where it is good.

    It is noted with this backup, and with the others that have the same damaged file. Raises BackupError
    where PostgreSQL's host does not answer.
    """
    damage = _whole(settings, backup, _Repository(settings), {})
    backup.record(damage)
    _note_others(settings, backup, damage.files)
    return list(damage.problems)


def part(settings: Settings, backup: Backup, chosen: Chosen) -> list[str]:
    """Return what is wrong with the files of a table or a database, and note it: nothing else is read."""
    entries = {entry.path: entry for entry in files(settings, backup, chosen)}
    damage, known = _of_files(copying.damaged(backup.files, entries.values())), backup.damage
    if damage.files or known.problems:
        backup.record(known.without(entries) | damage)
        _note_others(settings, backup, damage.files)
    return list(damage.problems)


def regularly(settings: Settings) -> None:
    """Verify all backups, if that was not done for `verify_days`; what several link to is read once."""
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
        backup.record(_whole(settings, backup, repository, sums))
    manifest.write(path, json.dumps({"at": time.time()}))


def _whole(settings: Settings, backup: Backup, repository: _Repository, sums: dict[Inode, str]) -> Damage:
    """Return what is damaged of a backup; `sums` are checksums of files that were read before."""
    try:
        known, entries = backup.manifest, backup.entries
    except BackupError as error:
        return Damage(problems=(str(error),))
    parts = [
        f"{path} is not as it was written"
        for path, digest in known["parts"].items()
        if not (backup.folder / path).is_file() or copying.sha256(backup.folder / path) != digest
    ]
    found = _of_files(copying.damaged(backup.files, entries.values(), sums))
    others = [*_tables(settings, backup, entries), *repository.problems(str(known["database"]["label"]))]
    return Damage(problems=tuple(parts)) | found | Damage(problems=tuple(others))


def _of_files(paths: Iterable[str]) -> Damage:
    damaged = tuple(paths)
    return Damage(damaged, tuple(map(problem, damaged)))


def _note_others(settings: Settings, backup: Backup, paths: Iterable[str]) -> None:
    """Note damaged files with the other backups that have them: an unchanged file is one file of several."""
    for other in manifest.finished(settings):
        if other.name == backup.name:
            continue
        with suppress(BackupError):
            shared = [entry for path in paths if (entry := other.entries.get(path))]
            if damage := copying.damaged(other.files, shared):
                other.record(other.damage | _of_files(damage))


def _tables(settings: Settings, backup: Backup, entries: Mapping[str, Entry]) -> list[str]:
    inside = tables.Inside(settings.root, backup.files, entries)
    outside = [
        table for table in backup.tables if table.metadata and inside.relative(table.metadata) not in entries
    ]
    return [f"{table}: {table.metadata} is not in the backup" for table in outside]


def judge(said: str, label: str) -> list[str]:
    """Return what `pgbackrest verify` says against a backup: it exits with 0 whatever it found."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if "status: ok" in lines:
        return []
    found = [
        line for line in lines if (hit := _BACKUP.search(line)) and (hit[1] == label and hit[2] != "valid")
    ]
    found += [line for line in lines if line.startswith("archiveId:") and _INVALID.search(line)]
    known = any(line.startswith("status: error") for line in lines)
    if not known and not found:
        return [f"postgresql: pgbackrest verify says {' '.join(lines) or 'nothing'}"]
    return [f"postgresql {line}" for line in found] or [f"postgresql {' '.join(lines)}"]
