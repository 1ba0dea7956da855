"""Look up one object of a commit: its document, its versions, and the commit of each of its values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lakehouse.catalog import build, diff, names
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name
from lakehouse.catalog.store import Entry, Reader
from lakehouse.errors import UsageError


def place(reader: Reader, tree: str, name: Name) -> str | None:
    """Return the id of an object's file or folder in a commit's tree; None if the tree lacks it.

    For a partition it is the id of its table's folder: while that is the same, no partition has changed.
    """
    number: str | None = reader.tree(tree).get(build.CATALOG)
    for word in name.path:
        number = reader.tree(number).get(word) if number else None
    return number


def document(reader: Reader, tree: str, name: Name) -> Document | None:
    """Return the document of an object in a commit's tree; None if the tree lacks it."""
    number = place(reader, tree, name)
    if number is None:
        return None
    if name.function:
        return _read_document(reader, number)
    files = reader.tree(number)
    if name.partition:
        return _partition(reader, files, name.partition)
    file = build.TABLE if name.table else "database.json" if name.database else "catalog.json"
    return _read_document(reader, files[file]) if file in files else None


def resolve(reader: Reader, entry: Entry, text: str) -> tuple[Name, Document]:
    """Return an object of a commit by its name as users write it; UsageError if the commit lacks it."""
    name = names.parse(text)
    content = document(reader, entry.tree, name)
    if content is None:
        raise UsageError(f"{name} is not in {entry.short}; .venv/bin/lakehouse catalog log {name}")
    return name, content


def versions(reader: Reader, entries: Iterable[Entry], name: Name) -> Iterator[Entry]:
    """Give the commits that changed an object, from the newest to the oldest."""
    previous: tuple[Entry, str | None] | None = None
    for entry in entries:
        number = place(reader, entry.tree, name)
        if previous and previous[1] != number and _differs(reader, previous[0], entry, name):
            yield previous[0]
        previous = entry, number
    if previous and previous[1] is not None and document(reader, previous[0].tree, name) is not None:
        yield previous[0]


def _differs(reader: Reader, newer: Entry, older: Entry, name: Name) -> bool:
    """Return whether an object with another `place` has changed: for a partition its table may have."""
    return not name.partition or document(reader, newer.tree, name) != document(reader, older.tree, name)


def blame(reader: Reader, entries: Iterable[Entry], name: Name) -> list[tuple[str, Any, Entry]]:
    """Return each value that an object has in the newest commit, with the commit that set it."""
    walk = iter(entries)
    entry = next(walk)
    content = document(reader, entry.tree, name)
    values = diff.fields(content) if content else {}
    origins: dict[str, Entry] = {}
    number = place(reader, entry.tree, name)
    for earlier in walk:
        if not values.keys() - origins.keys():
            break
        earlier_number = place(reader, earlier.tree, name)
        if earlier_number != number:
            earlier_content = document(reader, earlier.tree, name)
            earlier_values = diff.fields(earlier_content) if earlier_content else {}
            origins |= {
                field: entry
                for field in values.keys() - origins.keys()
                if field not in earlier_values or earlier_values[field] != values[field]
            }
        entry, number = earlier, earlier_number
    return [(field, value, origins.get(field, entry)) for field, value in values.items()]


def _read_document(reader: Reader, number: str) -> dict[str, Any]:
    return dict(json.loads(reader.blob(number)))


def _partition(reader: Reader, files: Mapping[str, str], name: str) -> Document | None:
    for number in diff.ranges_of(reader, files):
        for text in reader.blob(number).splitlines():
            partition = json.loads(text)
            if partition["name"] == name:
                return diff.with_storage(partition, _read_document(reader, files[build.SHAPES]))
    return None
