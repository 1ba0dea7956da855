"""A commit as something that many threads ask at once: its objects by name, and what is volatile of them."""

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

# That many files and folders of a repository are kept in memory, and partitions of that many tables.
_OBJECTS, _TABLES = 4096, 4


class Cached:
    """A reader for many threads, which keeps what was read last."""

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


class Past:
    """What a commit says of each object."""

    def __init__(self, reader: Reader, tree: str) -> None:
        """LakehouseError where the commit was made in a form that this program does not know."""
        self._reader, self._trees = Cached(reader), dict(reader.tree(tree))
        self._tree = tree
        # Of a table: its partitions by name, each as the line of its file.
        self._lines = lru_cache(2 * _TABLES)(self._read_lines)
        # Of a table: what its partitions share, by name.
        self._shapes = lru_cache(2 * _TABLES)(self._read_shapes)
        self.types = lru_cache(None)(self._types)
        settings = self._said(self._folder(build.CATALOG, ()).get(build.SETTINGS)) or {}
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
        return [one.removesuffix(".json") for one in self._names(database, "function")]

    def _types(self, database: Name) -> Mapping[str, str]:
        """Return the type of each table of a database, such as VIRTUAL_VIEW."""
        found = (
            (one, self.said(Name(database.catalog, database.database, one))) for one in self.tables(database)
        )
        return {one: str((said or {}).get("type", "")) for one, said in found}

    def every(self, wanted: Name) -> Iterator[tuple[Name, Document]]:
        """Give each table and view that is meant, or is in what is meant, with its document."""
        for catalog in self.catalogs():
            for database in self.databases(catalog):
                for table in self.tables(Name(catalog, database)):
                    name = Name(catalog, database, table)
                    if wanted.holds(name) and (said := self.said(name)):
                        yield name, said

    def said(self, name: Name) -> Document | None:
        """Return the document of anything but a partition; None where it is not there."""
        return objects.document(self._reader, self._tree, name)

    def access(self) -> Document:
        """Return roles, and the privileges on everything."""
        return self._said(self._folder(build.CATALOG, ()).get(build.ACCESS)) or {}

    def volatile(self, table: Name) -> Document | None:
        """Return what the commit keeps beside a table: parameters that engines write, and statistics."""
        return self._said(self._folder(build.STATISTICS, table.path).get(build.TABLE))

    def partitions(self, table: Name) -> Mapping[str, bytes]:
        """Return the partitions of a table, sorted by name."""
        return self._lines(build.CATALOG, table.path)

    def partition(self, name: Name) -> Document | None:
        """Return the document of a partition; None where it is not there."""
        path = Name(name.catalog, name.database, name.table).path
        line = self._lines(build.CATALOG, path).get(name.partition)
        if line is None:
            return None
        return diff.whole(json.loads(line), self._shapes(path))

    def volatile_partition(self, name: Name) -> Document | None:
        """Return what the commit keeps beside a partition."""
        path = Name(name.catalog, name.database, name.table).path
        line = self._lines(build.STATISTICS, path).get(name.partition)
        return dict(json.loads(line)) if line else None

    def _folder(self, part: str, path: tuple[str, ...]) -> Mapping[str, str]:
        number = self._trees.get(part)
        for word in path:
            number = self._reader.tree(number).get(word) if number else None
        return self._reader.tree(number) if number else {}

    def _names(self, above: Name, kind: str) -> list[str]:
        return sorted(plain(file) for file in self._folder(build.CATALOG, (*above.path, kind)))

    def _said(self, number: str | None) -> dict[str, Any] | None:
        return dict(json.loads(self._reader.blob(number))) if number else None

    def _read_shapes(self, path: tuple[str, ...]) -> Mapping[str, Document]:
        return self._said(self._folder(build.CATALOG, path).get(build.SHAPES)) or {}

    def _read_lines(self, part: str, path: tuple[str, ...]) -> Mapping[str, bytes]:
        files = self._folder(part, path)
        lines = (
            line
            for number in diff.ranges_of(self._reader, files)
            for line in self._reader.blob(number).splitlines()
        )
        return dict(sorted((json.loads(line)["name"], line) for line in lines))
