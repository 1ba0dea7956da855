"""Read the objects of a commit by name, and their volatile part; thread-safe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any

from lakehouse.catalog import build, diff, objects
from lakehouse.catalog.documents import FORMAT, Document
from lakehouse.catalog.names import Name, plain
from lakehouse.catalog.store import Reader
from lakehouse.errors import LakehouseError

# The files and folders of a repository in the cache, and the tables whose partitions are in the cache.
_OBJECTS, _TABLES = 4096, 4


class Cached:
    """A thread-safe reader with a cache of the objects read last."""

    def __init__(self, reader: Reader) -> None:
        lock = Lock()

        def blob(number: str) -> bytes:
            with lock:
                return reader.blob(number)

        def tree(number: str) -> Mapping[str, str]:
            with lock:
                return reader.tree(number)

        self.blob: Callable[[str], bytes] = lru_cache(_OBJECTS)(blob)
        self.tree: Callable[[str], Mapping[str, str]] = lru_cache(_OBJECTS)(tree)


class SnapshotReader:
    """The objects of a commit."""

    def __init__(self, reader: Reader, tree: str) -> None:
        """Raise LakehouseError if the format of the commit is not supported."""
        self._reader, self._trees = Cached(reader), dict(reader.tree(tree))
        self._tree = tree
        # The partitions of a table by name, each as a line of its file.
        self._lines = lru_cache(2 * _TABLES)(self._read_lines)
        # The shapes of a table's partitions by name.
        self._shapes = lru_cache(2 * _TABLES)(self._read_shapes)
        self.types = lru_cache(None)(self._types)
        settings = self._read_document(self._folder(build.CATALOG, ()).get(build.SETTINGS)) or {}
        if settings.get("format") != FORMAT:
            raise LakehouseError(
                f"the commit's form is {settings.get('format')}, and this program knows {FORMAT}",
                "git pull",
            )

    def catalogs(self) -> list[str]:
        """Return the names of all catalogs."""
        return [plain(file) for file in self._folder(build.CATALOG, ()) if not file.endswith(".json")]

    def databases(self, catalog: str) -> list[str]:
        """Return the names of a catalog's databases."""
        return self._names(Name(catalog), "db")

    def tables(self, database: Name) -> list[str]:
        """Return the names of a database's tables and views."""
        return self._names(database, "table")

    def functions(self, database: Name) -> list[str]:
        """Return the names of a database's functions."""
        return [file.removesuffix(".json") for file in self._names(database, "function")]

    def _types(self, database: Name) -> Mapping[str, str]:
        """Return the type of each table of a database, such as VIRTUAL_VIEW."""
        documents = (
            (table, self.document(Name(database.catalog, database.database, table)))
            for table in self.tables(database)
        )
        return {table: str((document or {}).get("type", "")) for table, document in documents}

    def tables_in(self, scope: Name) -> Iterator[tuple[Name, Document]]:
        """Give each table and view in a scope, which may be one itself, with its document."""
        for catalog in self.catalogs():
            for database in self.databases(catalog):
                for table in self.tables(Name(catalog, database)):
                    name = Name(catalog, database, table)
                    if scope.holds(name) and (document := self.document(name)):
                        yield name, document

    def document(self, name: Name) -> Document | None:
        """Return the document of an object other than a partition; None if the commit lacks it."""
        return objects.document(self._reader, self._tree, name)

    def access(self) -> Document:
        """Return roles, and the global privileges."""
        return self._read_document(self._folder(build.CATALOG, ()).get(build.ACCESS)) or {}

    def volatile(self, table: Name) -> Document | None:
        """Return the volatile part of a table: parameters that engines write, and statistics."""
        return self._read_document(self._folder(build.STATISTICS, table.path).get(build.TABLE))

    def partitions(self, table: Name) -> Mapping[str, bytes]:
        """Return the partitions of a table, sorted by name."""
        return self._lines(build.CATALOG, table.path)

    def partition(self, name: Name) -> Document | None:
        """Return the document of a partition; None if the commit lacks it."""
        path = Name(name.catalog, name.database, name.table).path
        line = self._lines(build.CATALOG, path).get(name.partition)
        if line is None:
            return None
        return diff.with_storage(json.loads(line), self._shapes(path))

    def volatile_partition(self, name: Name) -> Document | None:
        """Return the volatile part of a partition."""
        path = Name(name.catalog, name.database, name.table).path
        line = self._lines(build.STATISTICS, path).get(name.partition)
        return dict(json.loads(line)) if line else None

    def _folder(self, part: str, path: tuple[str, ...]) -> Mapping[str, str]:
        number = self._trees.get(part)
        for word in path:
            number = self._reader.tree(number).get(word) if number else None
        return self._reader.tree(number) if number else {}

    def _names(self, parent: Name, kind: str) -> list[str]:
        return sorted(plain(file) for file in self._folder(build.CATALOG, (*parent.path, kind)))

    def _read_document(self, number: str | None) -> dict[str, Any] | None:
        return dict(json.loads(self._reader.blob(number))) if number else None

    def _read_shapes(self, path: tuple[str, ...]) -> Mapping[str, Document]:
        return self._read_document(self._folder(build.CATALOG, path).get(build.SHAPES)) or {}

    def _read_lines(self, part: str, path: tuple[str, ...]) -> Mapping[str, bytes]:
        files = self._folder(part, path)
        lines = (
            line
            for number in diff.ranges_of(self._reader, files)
            for line in self._reader.blob(number).splitlines()
        )
        return dict(sorted((json.loads(line)["name"], line) for line in lines))
