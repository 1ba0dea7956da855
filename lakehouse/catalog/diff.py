"""What differs between two commits: each change with the name of its object, and from what to what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from lakehouse.catalog import build
from lakehouse.catalog.documents import Document, of_data, table_format
from lakehouse.catalog.names import Name, plain
from lakehouse.catalog.store import Reader

COLUMN, KEY, ORDER, DATA = "column", "partition key", "column order", "data"
# The moment of it: no call can give it back to an object that is made again.
CREATED = "created"


class Action(StrEnum):
    """What became of an object."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True)
class Change:
    """One difference; a changed object has one for each `field`, an added or removed one its document."""

    action: Action
    kind: str
    name: Name
    field: str = ""
    before: Any = None
    after: Any = None
    # Of a table that was added or removed.
    partitions: int = 0
    # Of the table that it is about, or whose partition it is.
    table_format: str = ""

    def json(self) -> dict[str, Any]:
        """Return it for programs."""
        told = self.name.json() | ({"field": self.field} if self.field else {})
        counted = {"partitions": self.partitions} if self.partitions else {}
        return {
            "action": self.action.value, "kind": self.kind, **told, **counted,
            "before": self.before, "after": self.after,
        }  # fmt: skip


@dataclass(frozen=True)
class Look:
    """What of the differences is told."""

    # Patterns of parameters that are left out.
    ignored: Sequence[str] = ()
    # Whether a new state of a table's files is a change.
    data: bool = True
    # Whether statistics are compared, too.
    statistics: bool = False


def changes(reader: Reader, before: str | None, after: str, look: Look = Look()) -> Iterator[Change]:
    """Give the changes from one commit's tree to another one's, sorted by name; from nothing for None."""
    old, new = _entries(reader, before), _entries(reader, after)
    yield from _Walk(reader, look).catalogs(old.get(build.CATALOG), new.get(build.CATALOG))
    if look.statistics:
        yield from _Walk(reader, look, statistics=True).catalogs(
            old.get(build.STATISTICS), new.get(build.STATISTICS)
        )


def fields(said: Document, look: Look = Look()) -> dict[str, Any]:
    """Return a document as values by name: columns, parameters, privileges and constraints each by theirs.

    When something was created is none of them.
    """
    found: dict[str, Any] = {}
    for key, value in said.items():
        if key == "storage":
            found |= _stored(value)
        elif key == "parameters":
            found |= {
                f"parameter {name}": text
                for name, text in value.items()
                if not of_data(said, name) and not any(fnmatchcase(name, one) for one in look.ignored)
            }
        elif key == "partition_keys":
            found |= {f"{KEY} {one['name']}": _without(one, "name") for one in value}
        elif key == "constraints":
            found |= {f"constraint {label(one, ordered=True)}": one for one in value}
        elif key in {"privileges", "roles", "columns"}:
            found |= {f"{key[:-1]} {label(one)}": _without(one, CREATED) for one in value}
        elif key != CREATED and (key != DATA or look.data):
            found[key] = value
    return found


def differences(
    before: Document,
    after: Document,
    look: Look = Look(),
) -> Iterator[tuple[str, Any, Any]]:
    """Give name, old and new value of each field that differs; None is none."""
    old, new = fields(before, look), fields(after, look)
    listed = [
        [str(one["name"]) for one in said.get("storage", {}).get("columns", ())] for said in (before, after)
    ]
    places = {f"{COLUMN} {name}": place for place, name in enumerate(listed[1], 1)}
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            # Where a new column is; that those behind it moved says nothing.
            place = {"position": places[name]} if name in places and name not in old else {}
            yield name, old.get(name), new[name] | place if place else new.get(name)
    common = [[name for name in names if name in listed[0] and name in listed[1]] for names in listed]
    if common[0] != common[1]:
        yield ORDER, listed[0], listed[1]


def _stored(said: Document) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in said.items():
        if key == "columns":
            found |= {f"{COLUMN} {one['name']}": _without(one, "name") for one in value}
        elif key == "serde":
            for own, text in value.items():
                found |= (
                    {f"serde parameter {name}": one for name, one in text.items()}
                    if own == "parameters"
                    else {f"serde {own}": text}
                )
        elif key == "parameters":
            found |= {f"storage parameter {name}": one for name, one in value.items()}
        else:
            found[key] = value
    return found


def label(one: Document, *, ordered: bool = False) -> str:
    """Return what one of a list of documents is called; `ordered` are those of which a name has several."""
    if "privilege" in one:
        column = f" on {one['column']}" if one.get("column") else ""
        person = f"{one.get('to_type', '')} {one.get('to', '')}"
        return f"{one['privilege']}{column} to {person} by {one.get('by', '')}"
    name = str(one.get("name") or one.get("COLUMN_NAME"))
    return f"{name} {one.get('position', 0)}" if ordered else name


def _without(said: Document, key: str) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name != key}


def _entries(reader: Reader, tree: str | None) -> Mapping[str, str]:
    return reader.tree(tree) if tree else {}


@dataclass(frozen=True)
class _Walk:
    """Goes down two trees at once, into what differs alone."""

    reader: Reader
    look: Look
    statistics: bool = False

    def catalogs(self, before: str | None, after: str | None) -> Iterator[Change]:
        if before == after:
            return
        for file, old, new in self._pairs(before, after):
            if file.endswith(".json"):
                kind = "access" if file == build.ACCESS else "format"
                yield from self._document(kind, Name(), self._said(old), self._said(new))
            else:
                yield from self._catalog(
                    Name(plain(file)), _entries(self.reader, old), _entries(self.reader, new)
                )

    def _catalog(self, name: Name, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
        yield from self._file("catalog", name, "catalog.json", old, new)
        for file, before, after in self._pairs(old.get("db"), new.get("db")):
            database = Name(name.catalog, plain(file))
            yield from self._database(database, _entries(self.reader, before), _entries(self.reader, after))

    def _database(self, name: Name, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
        yield from self._file("database", name, "database.json", old, new)
        for file, before, after in self._pairs(old.get("function"), new.get("function")):
            function = Name(name.catalog, name.database, function=plain(file.removesuffix(".json")))
            yield from self._document("function", function, self._said(before), self._said(after))
        for file, before, after in self._pairs(old.get("table"), new.get("table")):
            table = Name(name.catalog, name.database, plain(file))
            yield from self._table(table, _entries(self.reader, before), _entries(self.reader, after))

    def _table(self, name: Name, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
        before, after = (self._said(files.get(build.TABLE)) for files in (old, new))
        said = after or before or {}
        found = table_format(said)
        kind = "view" if found == "view" else "table"
        if self.statistics:
            if before and after:
                yield from self._document(kind, name, before, after)
        elif not (before and after):
            files = new if after else old
            count = sum(1 for number in ranges_of(self.reader, files) for _ in self._lines(number))
            action = Action.ADDED if after else Action.REMOVED
            yield Change(action, kind, name, "", before, after, count, found)
            return
        elif before != after:
            yield from self._document(kind, name, before, after, found)
        yield from self._partitions(name, old, new, found)

    def _partitions(
        self, name: Name, old: Mapping[str, str], new: Mapping[str, str], found: str
    ) -> Iterator[Change]:
        numbers = ranges_of(self.reader, old), ranges_of(self.reader, new)
        before = self._read(old, numbers[0] - numbers[1])
        after = self._read(new, numbers[1] - numbers[0])
        for one in sorted(before.keys() | after.keys()):
            if before.get(one) != after.get(one):
                partition = Name(name.catalog, name.database, name.table, one)
                if not self.statistics or (one in before and one in after):
                    yield from self._document("partition", partition, before.get(one), after.get(one), found)

    def _read(self, files: Mapping[str, str], numbers: set[str]) -> dict[str, Document]:
        shapes = self._said(files.get(build.SHAPES)) or {}
        return {
            one["name"]: whole(one, shapes)
            for number in numbers
            for one in map(json.loads, self._lines(number))
        }

    def _document(
        self, kind: str, name: Name, before: Document | None, after: Document | None, found: str = ""
    ) -> Iterator[Change]:
        if before is None or after is None:
            action = Action.REMOVED if after is None else Action.ADDED
            yield Change(action, kind, name, "", before, after, 0, found)
            return
        prefix = "statistics: " if self.statistics else ""
        for field, old, new in differences(before, after, self.look):
            yield Change(Action.CHANGED, kind, name, f"{prefix}{field}", old, new, 0, found)

    def _file(
        self, kind: str, name: Name, file: str, old: Mapping[str, str], new: Mapping[str, str]
    ) -> Iterator[Change]:
        if old.get(file) != new.get(file):
            yield from self._document(kind, name, self._said(old.get(file)), self._said(new.get(file)))

    def _pairs(self, before: str | None, after: str | None) -> Iterator[tuple[str, str | None, str | None]]:
        if before != after:
            old, new = _entries(self.reader, before), _entries(self.reader, after)
            for name in sorted(old.keys() | new.keys()):
                if old.get(name) != new.get(name):
                    yield name, old.get(name), new.get(name)

    def _said(self, number: str | None) -> Document | None:
        return dict(json.loads(self.reader.blob(number))) if number else None

    def _lines(self, number: str) -> list[bytes]:
        return self.reader.blob(number).splitlines()


def whole(partition: Document, shapes: Mapping[str, Document]) -> dict[str, Any]:
    """Return a partition with what it shares with others, in the form of a table's document."""
    said = _without(partition, "shape")
    if shape := partition.get("shape"):
        said["storage"] = shapes[shape]
    return said


def ranges_of(reader: Reader, files: Mapping[str, str]) -> set[str]:
    """Return the ids of a table's files of partitions."""
    found = {files[build.PARTITIONS]} if build.PARTITIONS in files else set()
    for folder in _entries(reader, files.get(build.FILES)).values():
        found |= set(reader.tree(folder).values())
    return found
