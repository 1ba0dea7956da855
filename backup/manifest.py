"""A finished backup: its folder, its manifest, and what it is made of."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from backup import copying, tables, tree
from backup.config import BackupError, Settings, checked
from plugins.module_utils.lakehouse import backup_manifest
from plugins.module_utils.lakehouse.backup_manifest import NAME, ManifestError

SCHEMA = 1
_MANIFEST, _SUM, _TREE, _DAMAGED = "manifest.json", "manifest.sha256", "tree.jsonl", "damaged.json"
_CATALOG = "catalog.json"


@dataclass(frozen=True)
class Backup:
    """A backup by its folder; one without a manifest was never finished."""

    folder: Path

    @property
    def name(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def files(self) -> Path:
        """The copy of HDFS."""
        return self.folder / "files"

    @property
    def namenode(self) -> Path:
        """The NameNode's image."""
        return self.folder / "namenode"

    @property
    def finished(self) -> bool:
        """Whether it has a manifest."""
        return (self.folder / _MANIFEST).is_file()

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Everything but the list of files; BackupError where a byte of it is another one."""
        path = self.folder / _MANIFEST
        try:
            known = _read(self.folder / _SUM).strip()
            if copying.sha256(path) != known:
                raise BackupError(f"{path} is not as it was written")
            found = backup_manifest.manifest(backup_manifest.parse(_read(path), _MANIFEST))
        except (OSError, ValueError) as error:
            raise BackupError(f"{path}: {error}") from error
        if found["name"] != self.name:
            raise BackupError(f"{path} is the manifest of {found['name']}")
        return found

    @cached_property
    def entries(self) -> Mapping[str, tree.Entry]:
        """The tree of HDFS; BackupError where a byte of its list is another one."""
        path = self.folder / _TREE
        try:
            if copying.sha256(path) != self.manifest["parts"].get(_TREE):
                raise BackupError(f"{path} is not as it was written")
            return tree.read(path)
        except (OSError, ValueError) as error:
            raise BackupError(f"{path}: {error}") from error

    @cached_property
    def catalog(self) -> dict[str, Any]:
        """Databases and tables as the catalog had them at T0; BackupError where a byte is another one."""
        path = self.folder / _CATALOG
        known = self.manifest["parts"].get(_CATALOG)
        if known is None:
            raise BackupError(f"{self.name} was made before a table could be restored alone")
        try:
            if copying.sha256(path) != known:
                raise BackupError(f"{path} is not as it was written")
            return backup_manifest.catalog(backup_manifest.parse(_read(path), _CATALOG))
        except (OSError, ValueError) as error:
            raise BackupError(f"{path}: {error}") from error

    @property
    def tables(self) -> tuple[tables.Table, ...]:
        """The tables at T0."""
        return tuple(map(tables.read, self.manifest["tables"]))

    @property
    def damage(self) -> list[str] | None:
        """What the last verification found; None where there was none."""
        path = self.folder / _DAMAGED
        try:
            return list(backup_manifest.parse(_read(path), _DAMAGED)) if path.is_file() else None
        except (OSError, ValueError, TypeError) as error:
            raise BackupError(f"{path}: {error}") from error

    def record(self, problems: list[str]) -> None:
        """Keep what a verification found."""
        write(self.folder / _DAMAGED, json.dumps(problems))

    def write_tree(self, entries: Mapping[str, tree.Entry]) -> None:
        """Write the list of files."""
        tree.write(self.folder / _TREE, entries)

    def write_catalog(self, document: Mapping[str, Any]) -> None:
        """Write what the catalog had."""
        write(self.folder / _CATALOG, json.dumps(document))

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest with the checksums of all but the copy, whose are in the list."""
        parts = [path for path in self.folder.rglob("*") if path.is_file() and self.files not in path.parents]
        sums = {str(path.relative_to(self.folder)): copying.sha256(path) for path in sorted(parts)}
        document = json.dumps({"schema": SCHEMA, **manifest, "parts": sums}, indent=1)
        unfinished = self.folder / f"{_MANIFEST}.new"
        write(unfinished, document)
        write(self.folder / _SUM, copying.sha256(unfinished) + "\n")
        unfinished.replace(self.folder / _MANIFEST)
        os.sync()

    def remove(self) -> None:
        """Remove it; the manifest first, so that half of it is never taken for a whole."""
        (self.folder / _MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(self.folder)


def _read(path: Path) -> str:
    """Return the text of a file that is no longer than any of these is; ValueError for one that is."""
    if path.stat().st_size > backup_manifest.MOST_BYTES:
        raise ManifestError(f"longer than {backup_manifest.MOST_BYTES >> 20} MiB")
    return path.read_text(encoding="utf-8")


def write(path: Path, text: str) -> None:
    """Write a file that is on the disk when this returns."""
    with path.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def all_of(settings: Settings) -> Iterator[Backup]:
    """Give every backup, the oldest first, finished or not."""
    if settings.backups.is_dir():
        for folder in sorted(settings.backups.iterdir()):
            if NAME.fullmatch(folder.name):
                yield Backup(folder)


def find(settings: Settings, name: str) -> Backup:
    """Return a finished backup, or the newest for no name; BackupError where there is none."""
    finished = [backup for backup in all_of(settings) if backup.finished]
    found = [backup for backup in finished if not name or backup.name == checked(name)]
    if not found:
        raise BackupError(f"there is no backup {name}".rstrip() + f" in {settings.backups}")
    return found[-1]
