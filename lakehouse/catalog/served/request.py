"""How a client of a metastore says what it wants: names, which may carry a catalog, and patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from hive_metastore.ttypes import MetaException, NoSuchObjectException

from lakehouse.catalog.bindings.field_reader import Lost
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import DEFAULT_CATALOG, Name
from lakehouse.catalog.patterns import with_gaps
from lakehouse.catalog.served.locations import LiveLocations, Locations
from lakehouse.catalog.snapshot_reader import Past
from lakehouse.catalog.store import Entry

_One = TypeVar("_One")


@dataclass
class Request:
    """What every answer is made of: the commit, and whom to tell what Thrift cannot hold of it."""

    past: Past
    entry: Entry
    lost: Lost
    # When the server began, for clients that ask how long it lives.
    began: int = field(default=0)
    locations: Locations = field(default_factory=LiveLocations)

    def table(self, name: Name) -> Document:
        """Return the document of a table; NoSuchObjectException where it is not there."""
        said = self.past.said(name) if name.table else None
        if said is None:
            raise NoSuchObjectException(f"{name} table not found")
        return said


def place(database: str | None, catalog: str | None = None) -> Name:
    """Return the name of a database, or of a catalog alone where there is none.

    A client of Hive 3 writes `@catalog#database`, and `!` for no database.
    """
    found = database or ""
    if found.startswith("@"):
        catalog, hash_, found = found[1:].partition("#")
        if not hash_:
            raise MetaException(f"{database} is no name of a database")
        found = "" if found == "!" else found
    return Name((catalog or DEFAULT_CATALOG).lower(), found.lower())


def table(database: str, name: str, catalog: str | None = None) -> Name:
    """Return the name of a table."""
    found = place(database, catalog)
    return Name(found.catalog, found.database, (name or "").lower())


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Return the names that a pattern of Hive's means: `*` any letters, `.` one, `|` or; none all."""
    if not pattern:
        return list(names)
    wanted = [re.compile(_expression(word), re.IGNORECASE | re.DOTALL) for word in pattern.split("|")]
    return [name for name in names if any(one.fullmatch(name) for one in wanted)]


def _expression(word: str) -> str:
    return with_gaps([re.escape(part).replace(r"\.", ".") for part in word.split("*")])


def first(found: list[_One], count: int | None) -> list[_One]:
    """Return as many as a client wants at most; all of them for less than none."""
    return found if count is None or count < 0 else found[:count]
