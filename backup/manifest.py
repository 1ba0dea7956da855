"""A finished backup: its folder, its manifest, and what it is made of."""

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
# Of a backup that was made before the rows of a catalog had lines of their own.
_WHOLE_CATALOG = "catalog.json"


@dataclass(frozen=True)
class Damage:
    """What verifications have found: paths of damaged files of the copy, and every problem, a line each."""

    files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __or__(self, other: Damage) -> Damage:
        """Return what either has, each once."""
        return Damage(*map(_both, (self.files, self.problems), (other.files, other.problems)))

    def without(self, paths: Iterable[str]) -> Damage:
        """Return what is left of it once these files of the copy are as they were."""
        mended = set(paths)
        lines = {backup_manifest.problem(path) for path in mended}
        return Damage(
            tuple(path for path in self.files if path not in mended),
            tuple(line for line in self.problems if line not in lines),
        )


def _both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


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
            found = backup_manifest.manifest(checked_document.parse(_read(path), _MANIFEST))
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

    def catalog(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give databases, tables and partitions as the catalog had them at T0, each with its kind.

        A partition names its database and table, and comes after them. BackupError where a byte is another
        one, or where the backup has no catalog.
        """
        [part] = [one for one in (_CATALOG, _WHOLE_CATALOG) if one in self.manifest["parts"]] or [""]
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
        """Give the rows of the catalog while no manifest has its checksum; DocumentError for a wrong one."""
        with (self.folder / _CATALOG).open(encoding="utf-8") as lines:
            while line := lines.readline(backup_manifest.LINE_BYTES):
                yield backup_manifest.catalog_row(checked_document.parse(line, _CATALOG))

    @property
    def tables(self) -> tuple[tables.Table, ...]:
        """The tables at T0."""
        return tuple(map(tables.read, self.manifest["tables"]))

    @property
    def damage(self) -> Damage:
        """What is known to be damaged; a note of it that cannot be read is damage, too."""
        path = self.folder / _DAMAGED
        if not path.is_file():
            return Damage()
        try:
            known = backup_manifest.damage(checked_document.parse(_read(path), _DAMAGED))
        except (OSError, ValueError) as error:
            return Damage(problems=(f"{path}: {error}",))
        return Damage(tuple(known["files"]), tuple(known["problems"]))

    def record(self, damage: Damage) -> None:
        """Keep what a verification found: all of it or, on a disk that is full, what was known before."""
        path = self.folder / _DAMAGED
        new = path.with_name(f"{path.name}.new")
        write(new, json.dumps({"files": damage.files, "problems": damage.problems}))
        new.replace(path)

    def write_tree(self, entries: Mapping[str, tree.Entry]) -> None:
        """Write the list of files."""
        tree.write(self.folder / _TREE, entries)

    @contextmanager
    def catalog_file(self) -> Iterator[IO[str]]:
        """Give the file for the rows of the catalog; they are on the disk when the block ends."""
        with (self.folder / _CATALOG).open("w", encoding="utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())

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

    def clear(self) -> None:
        """Remove all that it holds; the manifest first, so that half of it is never taken for a whole."""
        (self.folder / _MANIFEST).unlink(missing_ok=True)
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def remove(self) -> None:
        """Remove it."""
        self.clear()
        self.folder.rmdir()


def _read(path: Path) -> str:
    """Return the text of a file that is no longer than any of these is; ValueError for one that is."""
    if path.stat().st_size > checked_document.MOST_BYTES:
        raise DocumentError(f"longer than {checked_document.MOST_BYTES >> 20} MiB")
    return path.read_text(encoding="utf-8")


def _rows_of(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the rows of a catalog that is one document."""
    known = backup_manifest.catalog(checked_document.parse(text, _WHOLE_CATALOG))
    yield from (("database", one) for one in known["databases"])
    for table in known["tables"]:
        yield "table", table
        of = {"database": table["database"], "table": table["name"]}
        yield from (("partition", {**of, **one}) for one in table["partitions"])


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


def finished(settings: Settings) -> list[Backup]:
    """Return the finished backups, the oldest first."""
    return [backup for backup in all_of(settings) if backup.finished]


def standing(settings: Settings) -> dict[str, Any]:
    """Return the newest backup that is not known to be damaged, empty for none, and the damaged after it."""
    damaged = list[str]()
    for backup in reversed(finished(settings)):
        if not backup.damage.problems:
            return {"good": backup.name, "damaged": damaged}
        damaged.append(backup.name)
    return {"good": "", "damaged": damaged}


def find(settings: Settings, name: str) -> Backup:
    """Return a finished backup, or the newest for no name; BackupUsageError where there is none."""
    found = [backup for backup in finished(settings) if not name or backup.name == checked(name)]
    if not found:
        raise BackupUsageError(f"there is no backup {name}".rstrip() + f" in {settings.backups}")
    return found[-1]
