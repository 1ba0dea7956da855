"""Which table uses the files that another one is to get: each would remove the other's."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lakehouse.catalog.documents import Document, location, table_format
from lakehouse.catalog.names import Name
from plugins.module_utils.lakehouse.webhdfs import path_of

_SLASHES = re.compile(r"(?<!:)/{2,}")
# The parameter of a table or database that shares its files on purpose; the metastore's guard knows it too.
SHARED = "lakehouse.shared-location"
# What decides whether a table may share its files.
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
    folder = document.get("location") or location(document)
    pointer = document["parameters"]["metadata_location"] if table_format(document) == "iceberg" else None
    return [normal_path(str(one)) for one in (pointer, folder) if one]


def may_share(*documents: Document) -> bool:
    """Tell whether tables may have the same files: no DROP removes any, or one of them shares on purpose."""
    return all(map(is_plain_external, documents)) or any(map(is_shared, documents))


def is_shared(document: Document) -> bool:
    """Tell whether a table or database shares its files on purpose."""
    return _is_true(document, SHARED)


def is_plain_external(document: Document) -> bool:
    """Tell whether no DROP and no expiry of a table removes its files: Hive's own format, external."""
    return _is_kept(document) and table_format(document) == "hive"


def _is_kept(document: Document) -> bool:
    purged = _is_true(document, "external.table.purge")
    return document.get("type") == "EXTERNAL_TABLE" and not purged


def _is_true(document: Document, parameter: str) -> bool:
    return str(document.get("parameters", {}).get(parameter) or "").lower() == "true"


@dataclass(frozen=True, order=True)
class Place:
    """A folder of a table or database (`table` is empty) by its path in HDFS, and the document of its owner.

    Of the document it takes the type and the parameters.
    """

    path: str
    database: str
    table: str
    document: Document = field(compare=False, hash=False)

    def __str__(self) -> str:
        return f"table {self.database}.{self.table}" if self.table else f"database {self.database}"

    def may_be_in(self, other: Place) -> bool:
        """Tell whether this place may be equal to `other` or below it."""
        below = self.path != other.path
        if (
            not other.table
            and below
            and other.database in {_DEFAULT, *([self.database] if self.table else [])}
        ):
            return True
        if not self.table or not other.table:
            return is_shared(self.document) or is_shared(other.document)
        both = self.document, other.document
        same_delta = all(_is_kept(one) and table_format(one) == "delta" for one in both) and not below
        return same_delta or may_share(*both)


def overlaps(places: Iterable[Place]) -> Iterator[tuple[Place, Place]]:
    """Give each place that is equal to another owner's or below it, with the nearest such one above.

    The cost is linear, but for owners that may share one folder.
    """
    above: list[Place] = []
    for place in sorted(set(places), key=lambda one: (one.path.split("/"), one)):
        while above and not f"{place.path}/".startswith(f"{above[-1].path}/"):
            above.pop()
        own = place.database, place.table
        others = (one for one in reversed(above) if (one.database, one.table) != own)
        if found := next((one for one in others if not place.may_be_in(one)), None):
            yield place, found
        above.append(place)


def places(database: str, table: str, document: Document, locations: Sequence[str | None]) -> list[Place]:
    """Return the places of a table or database of these locations: none for a view."""
    if table and table_format(document) == "view":
        return []
    real = [one for one in locations if one and not one.endswith(PLACEHOLDER)]
    return [Place(normal_path(one), database, table, document) for one in real]


def normal_path(uri: str) -> str:
    """Return the path in HDFS of a URI, or the URI of another file system, in one spelling."""
    path = path_of(uri)
    return (_SLASHES.sub("/", uri) if path is None else path).rstrip("/")
