"""Which table uses the files that another one is to get: each would remove the other's."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lakehouse.catalog.documents import Document, location, table_format
from lakehouse.catalog.names import Name

# HDFS is one file system, whatever name of it a place has.
_HDFS = re.compile(r"(?:hdfs:)?(?://[^/]*)?(?P<path>/.*)")
_SLASHES = re.compile(r"(?<!:)/{2,}")


@dataclass(frozen=True)
class User:
    """A table, and the metadata file or folder that it shares with another one."""

    table: Name
    path: str


class TablePlaces:
    """The metadata files and folders of tables."""

    def __init__(self, tables: Iterable[tuple[Name, Document]] = ()) -> None:
        self._documents: dict[Name, Document] = {}
        self._users: dict[str, set[Name]] = {}
        # Sorted; so many are added at the beginning that it is sorted once.
        self._folders: list[str] | None = None
        for name, document in tables:
            self.put(name, document)

    def document(self, table: Name) -> Document | None:
        """Return the document of a table; None where it is not in the catalog."""
        return self._documents.get(table)

    def put(self, table: Name, document: Document | None) -> None:
        """Give a table a document, or none."""
        for place in folders(self._documents.pop(table, {})):
            self._users[place].discard(table)
        if document is None:
            return
        self._documents[table] = document
        for place in folders(document):
            if place not in self._users:
                self._users[place], self._folders = set(), None
            self._users[place].add(table)

    def users(self, document: Document) -> Iterator[User]:
        """Give the tables with the same metadata file, or a folder that is the same, above or below.

        A document of a partition is asked by its own folder.
        """
        seen: set[Name] = set()
        for place in folders(document):
            for found in self._near(place):
                for table in sorted(self._users[found] - seen):
                    seen.add(table)
                    yield User(table, found)

    def _near(self, place: str) -> Iterator[str]:
        parts = place.split("/")
        above = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        yield from (one for one in above if one in self._users)
        if self._folders is None:
            self._folders = sorted(self._users)
        for one in self._folders[bisect_left(self._folders, f"{place}/") :]:
            if not one.startswith(f"{place}/"):
                break
            yield one


def folders(document: Document) -> list[str]:
    """Return the metadata file and the folder of a table, or the folder of a partition, in one spelling."""
    # Of a partition it is beside the storage.
    place = document.get("location") or location(document)
    pointer = document["parameters"]["metadata_location"] if table_format(document) == "iceberg" else None
    return [path(str(one)) for one in (pointer, place) if one]


def is_plain_external(document: Document) -> bool:
    """Tell whether no DROP and no expiry of a table removes its files: Hive's own format, external."""
    parameters = document.get("parameters", {})
    purged = str(parameters.get("external.table.purge") or "").lower() == "true"
    external = document.get("type") == "EXTERNAL_TABLE"
    return external and not purged and table_format(document) == "hive"


def path(uri: str) -> str:
    """Return the path in HDFS of a URI, in one spelling."""
    found = _HDFS.fullmatch(uri)
    return _SLASHES.sub("/", found["path"] if found else uri).rstrip("/")
