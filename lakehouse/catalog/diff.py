"""The differences between two commits: each change with the name of its object, old and new value."""

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
# The time of creation: no call can restore it for an object that is created again.
CREATED = "created"


class Action(StrEnum):
    """How an object differs."""

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
    # The number of partitions of a table that was added or removed.
    partitions: int = 0
    # The format of the table, also for its partitions.
    table_format: str = ""

    def json(self) -> dict[str, Any]:
        """Return the change for JSON."""
        field = {"field": self.field} if self.field else {}
        partitions = {"partitions": self.partitions} if self.partitions else {}
        return {
            "action": self.action.value, "kind": self.kind, **self.name.json(), **field, **partitions,
            "before": self.before, "after": self.after,
        }  # fmt: skip


@dataclass(frozen=True)
class Look:
    """The options of a comparison."""

    # Patterns of parameters to ignore.
    ignored: Sequence[str] = ()
    # Whether a new state of a table's files is a change.
    data: bool = True
    # Whether to compare statistics too.
    statistics: bool = False


def changes(reader: Reader, before: str | None, after: str, look: Look = Look()) -> Iterator[Change]:
    """Give the changes from one tree to another, sorted by name; `before` is None for an empty tree."""
    old, new = _entries(reader, before), _entries(reader, after)
    yield from _Walk(reader, look).catalogs(old.get(build.CATALOG), new.get(build.CATALOG))
    if look.statistics:
        yield from _Walk(reader, look, statistics=True).catalogs(
            old.get(build.STATISTICS), new.get(build.STATISTICS)
        )


def fields(document: Document, look: Look = Look()) -> dict[str, Any]:
    """Flatten a document: each column, parameter, privilege and constraint becomes a field with its name.

    The time of creation is left out.
    """
    flat: dict[str, Any] = {}
    for key, value in document.items():
        if key == "storage":
            flat |= _storage_fields(value)
        elif key == "parameters":
            flat |= {
                f"parameter {name}": text
                for name, text in value.items()
                if not of_data(document, name)
                and not any(fnmatchcase(name, pattern) for pattern in look.ignored)
            }
        elif key == "partition_keys":
            flat |= {f"{KEY} {column['name']}": _without(column, "name") for column in value}
        elif key == "constraints":
            flat |= {f"constraint {label(row, ordered=True)}": row for row in value}
        elif key in {"privileges", "roles", "columns"}:
            flat |= {f"{key[:-1]} {label(row)}": _without(row, CREATED) for row in value}
        elif key != CREATED and (key != DATA or look.data):
            flat[key] = value
    return flat


def differences(
    before: Document,
    after: Document,
    look: Look = Look(),
) -> Iterator[tuple[str, Any, Any]]:
    """Give name, old and new value of each field that differs; None for a missing field."""
    old, new = fields(before, look), fields(after, look)
    old_columns, new_columns = (
        [str(column["name"]) for column in document.get("storage", {}).get("columns", ())]
        for document in (before, after)
    )
    positions = {f"{COLUMN} {name}": position for position, name in enumerate(new_columns, 1)}
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            # Only a new column has its position: those behind it have not changed.
            position = {"position": positions[name]} if name in positions and name not in old else {}
            yield name, old.get(name), new[name] | position if position else new.get(name)
    old_order = [name for name in old_columns if name in new_columns]
    new_order = [name for name in new_columns if name in old_columns]
    if old_order != new_order:
        yield ORDER, old_columns, new_columns


def _storage_fields(storage: Document) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in storage.items():
        if key == "columns":
            flat |= {f"{COLUMN} {column['name']}": _without(column, "name") for column in value}
        elif key == "serde":
            for field, content in value.items():
                flat |= (
                    {f"serde parameter {name}": text for name, text in content.items()}
                    if field == "parameters"
                    else {f"serde {field}": content}
                )
        elif key == "parameters":
            flat |= {f"storage parameter {name}": text for name, text in value.items()}
        else:
            flat[key] = value
    return flat


def label(row: Document, *, ordered: bool = False) -> str:
    """Return the label of a row in a list, with its position if several rows of the list share a name."""
    if "privilege" in row:
        column = f" on {row['column']}" if row.get("column") else ""
        person = f"{row.get('to_type', '')} {row.get('to', '')}"
        return f"{row['privilege']}{column} to {person} by {row.get('by', '')}"
    name = str(row.get("name") or row.get("COLUMN_NAME"))
    return f"{name} {row.get('position', 0)}" if ordered else name


def _without(document: Document, key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


def _entries(reader: Reader, tree: str | None) -> Mapping[str, str]:
    return reader.tree(tree) if tree else {}


@dataclass(frozen=True)
class _Walk:
    """Compares two trees, reading only the parts that differ."""

    reader: Reader
    look: Look
    statistics: bool = False

    def catalogs(self, before: str | None, after: str | None) -> Iterator[Change]:
        if before == after:
            return
        for file, old, new in self._pairs(before, after):
            if file.endswith(".json"):
                kind = "access" if file == build.ACCESS else "format"
                yield from self._document(kind, Name(), self._read_document(old), self._read_document(new))
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
            yield from self._document(
                "function", function, self._read_document(before), self._read_document(after)
            )
        for file, before, after in self._pairs(old.get("table"), new.get("table")):
            table = Name(name.catalog, name.database, plain(file))
            yield from self._table(table, _entries(self.reader, before), _entries(self.reader, after))

    def _table(self, name: Name, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
        before, after = (self._read_document(files.get(build.TABLE)) for files in (old, new))
        format_ = table_format(after or before or {})
        kind = "view" if format_ == "view" else "table"
        if self.statistics:
            if before and after:
                yield from self._document(kind, name, before, after)
        elif not (before and after):
            files = new if after else old
            count = sum(1 for number in ranges_of(self.reader, files) for _ in self._lines(number))
            action = Action.ADDED if after else Action.REMOVED
            yield Change(action, kind, name, "", before, after, count, format_)
            return
        elif before != after:
            yield from self._document(kind, name, before, after, format_)
        yield from self._partitions(name, old, new, format_)

    def _partitions(
        self, table: Name, old: Mapping[str, str], new: Mapping[str, str], format_: str
    ) -> Iterator[Change]:
        old_ranges, new_ranges = ranges_of(self.reader, old), ranges_of(self.reader, new)
        before = self._read_partitions(old, old_ranges - new_ranges)
        after = self._read_partitions(new, new_ranges - old_ranges)
        for partition in sorted(before.keys() | after.keys()):
            document, new_document = before.get(partition), after.get(partition)
            if document == new_document or (self.statistics and None in (document, new_document)):
                continue
            name = Name(table.catalog, table.database, table.table, partition)
            yield from self._document("partition", name, document, new_document, format_)

    def _read_partitions(self, files: Mapping[str, str], numbers: set[str]) -> dict[str, Document]:
        shapes = self._read_document(files.get(build.SHAPES)) or {}
        return {
            partition["name"]: with_storage(partition, shapes)
            for number in numbers
            for partition in map(json.loads, self._lines(number))
        }

    def _document(
        self, kind: str, name: Name, before: Document | None, after: Document | None, format_: str = ""
    ) -> Iterator[Change]:
        if before is None or after is None:
            action = Action.REMOVED if after is None else Action.ADDED
            yield Change(action, kind, name, "", before, after, 0, format_)
            return
        prefix = "statistics: " if self.statistics else ""
        for field, old, new in differences(before, after, self.look):
            yield Change(Action.CHANGED, kind, name, f"{prefix}{field}", old, new, 0, format_)

    def _file(
        self, kind: str, name: Name, file: str, old: Mapping[str, str], new: Mapping[str, str]
    ) -> Iterator[Change]:
        if old.get(file) != new.get(file):
            yield from self._document(
                kind, name, self._read_document(old.get(file)), self._read_document(new.get(file))
            )

    def _pairs(self, before: str | None, after: str | None) -> Iterator[tuple[str, str | None, str | None]]:
        if before != after:
            old, new = _entries(self.reader, before), _entries(self.reader, after)
            for name in sorted(old.keys() | new.keys()):
                if old.get(name) != new.get(name):
                    yield name, old.get(name), new.get(name)

    def _read_document(self, number: str | None) -> Document | None:
        return dict(json.loads(self.reader.blob(number))) if number else None

    def _lines(self, number: str) -> list[bytes]:
        return self.reader.blob(number).splitlines()


def with_storage(partition: Document, shapes: Mapping[str, Document]) -> dict[str, Any]:
    """Return a partition with its storage, as in the document of a table, in place of the name of a shape."""
    document = _without(partition, "shape")
    if shape := partition.get("shape"):
        document["storage"] = shapes[shape]
    return document


def ranges_of(reader: Reader, files: Mapping[str, str]) -> set[str]:
    """Return the ids of a table's files of partitions."""
    numbers = {files[build.PARTITIONS]} if build.PARTITIONS in files else set()
    for folder in _entries(reader, files.get(build.FILES)).values():
        numbers |= set(reader.tree(folder).values())
    return numbers
