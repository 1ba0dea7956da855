"""Find tables with the same files: a DROP of one would remove the files of the other."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lakehouse.catalog.documents import Document, location, table_format
from lakehouse.catalog.names import Name
from plugins.module_utils.lakehouse.webhdfs import path_of

_SLASHES = re.compile(r"(?<!:)/{2,}")
# The parameter of a table or database that shares its files on purpose; the metastore's guard reads it too.
SHARED = "lakehouse.shared-location"
# The parameters that determine whether a table may share its files.
PARAMETERS = (
    SHARED, "external.table.purge", "table_type", "metadata_location", "spark.sql.sources.provider",
)  # fmt: skip
# Spark's stand-in for the folder of a table whose files are elsewhere.
PLACEHOLDER = "-__PLACEHOLDER__"
# All other databases are below its folder, and no engine drops it.
_DEFAULT = "default"


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
        # Sorted when it is first needed, after all tables were added.
        self._folders: list[str] | None = None
        for name, document in tables:
            self.put(name, document)

    def document(self, table: Name) -> Document | None:
        """Return the document of a table; None if it is not in the catalog."""
        return self._documents.get(table)

    def put(self, table: Name, document: Document | None) -> None:
        """Set the document of a table; None removes it."""
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
        """Give the tables with the same metadata file, or with the same, a parent or a child folder.

        For a partition, `document` is its own.
        """
        tables: set[Name] = set()
        for place in folders(document):
            for path in self._overlapping(place):
                for table in sorted(self._users[path] - tables):
                    tables.add(table)
                    yield User(table, path)

    def _overlapping(self, place: str) -> Iterator[str]:
        """Give the paths in use that equal a path, or are above or below it."""
        parts = place.split("/")
        parents = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        yield from (path for path in parents if path in self._users)
        if self._folders is None:
            self._folders = sorted(self._users)
        for path in self._folders[bisect_left(self._folders, f"{place}/") :]:
            if not path.startswith(f"{place}/"):
                break
            yield path


def folders(document: Document) -> list[str]:
    """Return the normalized paths of a table's metadata file and folder, or of a partition's folder."""
    # The document of a partition has it outside of the storage.
    folder = document.get("location") or location(document)
    pointer = document["parameters"]["metadata_location"] if table_format(document) == "iceberg" else None
    return [normal_path(str(uri)) for uri in (pointer, folder) if uri]


def may_share(*documents: Document) -> bool:
    """Return whether tables may share files: no DROP removes any, or one of them shares on purpose."""
    return all(map(is_plain_external, documents)) or any(map(is_shared, documents))


def is_shared(document: Document) -> bool:
    """Return whether a table or database shares its files on purpose."""
    return _is_true(document, SHARED)


def is_plain_external(document: Document) -> bool:
    """Return whether no DROP or expiry of a table removes its files: it is external, of Hive's own format."""
    return _keeps_files(document) and table_format(document) == "hive"


def _keeps_files(document: Document) -> bool:
    is_purged = _is_true(document, "external.table.purge")
    return document.get("type") == "EXTERNAL_TABLE" and not is_purged


def _is_true(document: Document, parameter: str) -> bool:
    return str(document.get("parameters", {}).get(parameter) or "").lower() == "true"


@dataclass(frozen=True, order=True)
class Place:
    """A folder of a table or database (`table` is empty) by its path in HDFS, and the document of its owner.

    Only the type and the parameters of the document matter.
    """

    path: str
    database: str
    table: str
    document: Document = field(compare=False, hash=False)

    def __str__(self) -> str:
        return f"table {self.database}.{self.table}" if self.table else f"database {self.database}"

    def may_be_in(self, other: Place) -> bool:
        """Return whether this place may be equal to `other` or below it."""
        is_below = self.path != other.path
        databases = {_DEFAULT, self.database} if self.table else {_DEFAULT}
        if not other.table and is_below and other.database in databases:
            return True
        if not self.table or not other.table:
            return is_shared(self.document) or is_shared(other.document)
        documents = self.document, other.document
        same_delta = not is_below and all(
            _keeps_files(document) and table_format(document) == "delta" for document in documents
        )
        return same_delta or may_share(*documents)


def overlaps(places: Iterable[Place]) -> Iterator[tuple[Place, Place]]:
    """Give each place that equals or is below one of another owner, with the nearest such place.

    The cost is linear, except for owners that may share one folder.
    """
    parents: list[Place] = []
    for place in sorted(set(places), key=lambda place: (place.path.split("/"), place)):
        while parents and not f"{place.path}/".startswith(f"{parents[-1].path}/"):
            parents.pop()
        owner = place.database, place.table
        foreign = (parent for parent in reversed(parents) if (parent.database, parent.table) != owner)
        if conflict := next((parent for parent in foreign if not place.may_be_in(parent)), None):
            yield place, conflict
        parents.append(place)


def places(database: str, table: str, document: Document, locations: Sequence[str | None]) -> list[Place]:
    """Return the places of a table or database with these locations; none for a view."""
    if table and table_format(document) == "view":
        return []
    return [
        Place(normal_path(location), database, table, document)
        for location in locations
        if location and not location.endswith(PLACEHOLDER)
    ]


def normal_path(uri: str) -> str:
    """Return the normalized path in HDFS of a URI, or the normalized URI of another file system."""
    path = path_of(uri)
    return (_SLASHES.sub("/", uri) if path is None else path).rstrip("/")
