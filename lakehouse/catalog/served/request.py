"""Parse the names in calls of a client, which may include a catalog, and its patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from hive_metastore.ttypes import MetaException, NoSuchObjectException

from lakehouse.catalog.bindings.field_reader import ReportField
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import DEFAULT_CATALOG, Name
from lakehouse.catalog.patterns import with_gaps
from lakehouse.catalog.served.locations import LiveLocations, Locations
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Entry

_Item = TypeVar("_Item")


@dataclass
class Request:
    """The context of each call: the commit, and the function that reports fields which Thrift cannot hold."""

    reader: SnapshotReader
    entry: Entry
    report_field: ReportField
    # The start time of the server, for `aliveSince`.
    began: int = field(default=0)
    locations: Locations = field(default_factory=LiveLocations)

    def table(self, name: Name) -> Document:
        """Return the document of a table; NoSuchObjectException if there is none."""
        document = self.reader.document(name) if name.table else None
        if document is None:
            raise NoSuchObjectException(f"{name} table not found")
        return document


def place(database: str | None, catalog: str | None = None) -> Name:
    """Return the name of a database, or that of a catalog without a database.

    Clients of Hive 3 write `@catalog#database`, and `!` for no database.
    """
    name = database or ""
    if name.startswith("@"):
        catalog, hash_, name = name[1:].partition("#")
        if not hash_:
            raise MetaException(f"{database} is no name of a database")
        name = "" if name == "!" else name
    return Name((catalog or DEFAULT_CATALOG).lower(), name.lower())


def table(database: str, name: str, catalog: str | None = None) -> Name:
    """Return the name of a table."""
    parent = place(database, catalog)
    return Name(parent.catalog, parent.database, (name or "").lower())


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Return the names that match a Hive pattern: `*` any text, `.` one letter, `|` or; all without one."""
    if not pattern:
        return list(names)
    expressions = [re.compile(_expression(word), re.IGNORECASE | re.DOTALL) for word in pattern.split("|")]
    return [name for name in names if any(expression.fullmatch(name) for expression in expressions)]


def _expression(word: str) -> str:
    return with_gaps([re.escape(part).replace(r"\.", ".") for part in word.split("*")])


def first(items: list[_Item], count: int | None) -> list[_Item]:
    """Return at most `count` items; all of them for None or a negative count."""
    return items if count is None or count < 0 else items[:count]
