"""Looks whether a backup could be restored, without restoring it."""

from __future__ import annotations

import re

from backup import copying, tables
from backup.chosen import Chosen, files
from backup.config import BackupError, Settings
from backup.manifest import Backup
from backup.run import ask, in_repository

_BACKUP = re.compile(r"backup: (\S+), status: (.+?), total")
_INVALID = re.compile(r"(?:missing|checksum invalid|size invalid|other): ([1-9]\d*)")


def verify(settings: Settings, backup: Backup) -> list[str]:
    """Return what is wrong with a backup, a line each; none where it is good. Damaged files are noted."""
    try:
        damaged, problems = _files(backup)
        problems += _tables(settings, backup)
        problems += _database(settings, str(backup.manifest["database"]["label"]))
    except BackupError as error:
        return [str(error)]
    backup.record(damaged)
    return problems


def _files(backup: Backup) -> tuple[list[str], list[str]]:
    """Return the damaged files of the copy, and a line for each damaged file of all."""
    parts = [
        path
        for path, known in backup.manifest["parts"].items()
        if not (backup.folder / path).is_file() or copying.sha256(backup.folder / path) != known
    ]
    damaged = copying.damaged(backup.files, backup.entries.values())
    return damaged, [
        f"{path} is not as it was written" for path in [*parts, *(f"files/{name}" for name in damaged)]
    ]


def part(settings: Settings, backup: Backup, chosen: Chosen) -> list[str]:
    """Return what is wrong with the files of a table or a database: nothing else is read."""
    entries = {entry.path: entry for entry in files(settings, backup, chosen)}
    damaged = copying.damaged(backup.files, entries.values())
    return [f"files/{name} is not as it was written" for name in damaged]


def _tables(settings: Settings, backup: Backup) -> list[str]:
    inside = tables.Inside(settings.root, backup.files, backup.entries)
    outside = [
        table
        for table in backup.tables
        if table.metadata and inside.relative(table.metadata) not in backup.entries
    ]
    return [f"{table}: {table.metadata} is not in the backup" for table in outside]


def _database(settings: Settings, label: str) -> list[str]:
    if label not in in_repository(settings):
        return [f"postgresql {label} is not in pgBackRest's repository"]
    said = ask(settings, "verify")
    return judge(str(said.get("said")) if isinstance(said, dict) else "", label)


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
