"""A finished backup: its folder, its manifest, and its parts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from backup import copying, tables, tree
from backup.config import BackupError, BackupUsageError, Settings, checked
from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.backup_manifest import NAME
from plugins.module_utils.lakehouse.checked_document import DocumentError

SCHEMA = 1
_MANIFEST, _SUM, _TREE, _DAMAGED = "manifest.json", "manifest.sha256", "tree.jsonl", "damaged.json"
_CATALOG = "catalog.jsonl"
# Of backups made before the catalog had one row per line.
_WHOLE_CATALOG = "catalog.json"


@dataclass(frozen=True)
class Damage:
    """The findings of verifications: paths of damaged files of the copy, and every problem, a line each."""

    files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __or__(self, other: Damage) -> Damage:
        """Return the union of both."""
        return Damage(*map(_union, (self.files, self.problems), (other.files, other.problems)))

    def without(self, paths: Iterable[str]) -> Damage:
        """Return the remaining damage when these files of the copy are intact."""
        intact = set(paths)
        lines = {backup_manifest.problem(path) for path in intact}
        return Damage(
            tuple(path for path in self.files if path not in intact),
            tuple(line for line in self.problems if line not in lines),
        )


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


@dataclass(frozen=True)
class Backup:
    """A backup by its folder; a backup without a manifest is unfinished."""

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
        """The manifest, without the list of files; BackupError if its checksum does not match."""
        path = self.folder / _MANIFEST
        try:
            checksum = _read(self.folder / _SUM).strip()
            if copying.sha256(path) != checksum:
                raise BackupError(f"{path} is not as it was written")
            document = backup_manifest.manifest(checked_document.parse(_read(path), _MANIFEST))
        except (OSError, ValueError) as error:
            raise BackupError(f"{path}: {error}") from error
        if document["name"] != self.name:
            raise BackupError(f"{path} is the manifest of {document['name']}")
        return document

    @cached_property
    def entries(self) -> Mapping[str, tree.Entry]:
        """The tree of HDFS; BackupError if the checksum of its list does not match."""
        path = self.folder / _TREE
        try:
            if copying.sha256(path) != self.manifest["parts"].get(_TREE):
                raise BackupError(f"{path} is not as it was written")
            return tree.read(path)
        except (OSError, ValueError) as error:
            raise BackupError(f"{path}: {error}") from error

    def catalog(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give databases, tables and partitions as the catalog had them at T0, each with its kind.

        A partition names its database and table, and comes after them. BackupError if the checksum does not
        match, or if the backup has no catalog.
        """
        [part] = [name for name in (_CATALOG, _WHOLE_CATALOG) if name in self.manifest["parts"]] or [""]
        if not part:
            raise BackupError(f"{self.name} was made before a table could be restored alone")
        path = self.folder / part
        try:
            if copying.sha256(path) != self.manifest["parts"][part]:
                raise BackupError(f"{path} is not as it was written")
            yield from self.rows() if part == _CATALOG else _rows_of(_read(path))
        except (OSError, ValueError) as error:
            raise BackupError(f"{path}: {error}") from error

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the rows of the catalog without comparing its checksum; DocumentError for an invalid row."""
        with (self.folder / _CATALOG).open(encoding="utf-8") as lines:
            while line := lines.readline(backup_manifest.LINE_BYTES):
                yield backup_manifest.catalog_row(checked_document.parse(line, _CATALOG))

    @property
    def tables(self) -> tuple[tables.Table, ...]:
        """The tables at T0."""
        return tuple(map(tables.read, self.manifest["tables"]))

    @property
    def damage(self) -> Damage:
        """The recorded damage; an unreadable record counts as damage."""
        path = self.folder / _DAMAGED
        if not path.is_file():
            return Damage()
        try:
            document = backup_manifest.damage(checked_document.parse(_read(path), _DAMAGED))
        except (OSError, ValueError) as error:
            return Damage(problems=(f"{path}: {error}",))
        return Damage(tuple(document["files"]), tuple(document["problems"]))

    def record(self, damage: Damage) -> None:
        """Record the damage; on a full disk the earlier record stays whole."""
        path = self.folder / _DAMAGED
        new = path.with_name(f"{path.name}.new")
        write(new, json.dumps({"files": damage.files, "problems": damage.problems}))
        new.replace(path)

    def write_tree(self, entries: Mapping[str, tree.Entry]) -> None:
        """Write the list of files."""
        tree.write(self.folder / _TREE, entries)

    @contextmanager
    def catalog_file(self) -> Iterator[IO[str]]:
        """Give the file for the rows of the catalog; the end of the block syncs it."""
        with (self.folder / _CATALOG).open("w", encoding="utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest with the checksums of all parts; those of the copy are in the list of files."""
        parts = [path for path in self.folder.rglob("*") if path.is_file() and self.files not in path.parents]
        sums = {str(path.relative_to(self.folder)): copying.sha256(path) for path in sorted(parts)}
        document = json.dumps({"schema": SCHEMA, **manifest, "parts": sums}, indent=1)
        unfinished = self.folder / f"{_MANIFEST}.new"
        write(unfinished, document)
        write(self.folder / _SUM, copying.sha256(unfinished) + "\n")
        unfinished.replace(self.folder / _MANIFEST)
        os.sync()

    def clear(self) -> None:
        """Remove the contents, the manifest first: an incomplete backup never counts as finished."""
        (self.folder / _MANIFEST).unlink(missing_ok=True)
        empty(self.folder)

    def remove(self) -> None:
        """Remove it."""
        self.clear()
        self.folder.rmdir()


def empty(folder: Path) -> None:
    """Remove the contents of a folder, if there is one."""
    for path in folder.glob("*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _read(path: Path) -> str:
    """Return the text of a file; DocumentError above the limit of size."""
    if path.stat().st_size > checked_document.MOST_BYTES:
        raise DocumentError(f"longer than {checked_document.MOST_BYTES >> 20} MiB")
    return path.read_text(encoding="utf-8")


def _rows_of(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the rows of a catalog that is one document."""
    catalog = backup_manifest.catalog(checked_document.parse(text, _WHOLE_CATALOG))
    yield from (("database", database) for database in catalog["databases"])
    for table in catalog["tables"]:
        yield "table", table
        table_name = {"database": table["database"], "table": table["name"]}
        yield from (("partition", {**table_name, **partition}) for partition in table["partitions"])


def write(path: Path, text: str) -> None:
    """Write a file and sync it to the disk."""
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


def finished(settings: Settings) -> list[Backup]:
    """Return the finished backups, the oldest first."""
    return [backup for backup in all_of(settings) if backup.finished]


def standing(settings: Settings) -> dict[str, Any]:
    """Return the newest backup without recorded damage, empty for none, and the damaged ones after it."""
    damaged = list[str]()
    for backup in reversed(finished(settings)):
        if not backup.damage.problems:
            return {"good": backup.name, "damaged": damaged}
        damaged.append(backup.name)
    return {"good": "", "damaged": damaged}


def find(settings: Settings, name: str) -> Backup:
    """Return the named finished backup, or the newest for an empty name; BackupUsageError for none."""
    backups = [backup for backup in finished(settings) if not name or backup.name == checked(name)]
    if not backups:
        raise BackupUsageError(f"there is no backup {name}".rstrip() + f" in {settings.backups}")
    return backups[-1]
