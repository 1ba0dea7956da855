"""One object of a commit: its document, and which commit gave it each of its values."""

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
    """Return the id of what an object is in a commit's tree; None where it is not there.

    Of a partition it is that of its table: while that is the same, no partition has changed.
    """
    number: str | None = reader.tree(tree).get(build.CATALOG)
    for word in name.path:
        number = reader.tree(number).get(word) if number else None
    return number


def document(reader: Reader, tree: str, name: Name) -> Document | None:
    """Return the document of an object in a commit's tree; None where it is not there."""
    number = place(reader, tree, name)
    if number is None:
        return None
    if name.function:
        return _said(reader, number)
    files = reader.tree(number)
    if name.partition:
        return _partition(reader, files, name.partition)
    file = build.TABLE if name.table else "database.json" if name.database else "catalog.json"
    return _said(reader, files[file]) if file in files else None


def found(reader: Reader, entry: Entry, text: str) -> tuple[Name, Document]:
    """Return an object of a commit by its name as people write it; UsageError where it is not there."""
    name = names.parse(text)
    said = document(reader, entry.tree, name)
    if said is None:
        raise UsageError(f"{name} is not in {entry.short}; .venv/bin/lakehouse catalog log {name}")
    return name, said


def versions(reader: Reader, entries: Iterable[Entry], name: Name) -> Iterator[Entry]:
    """Give those commits, of the newest to the oldest, that changed an object."""
    previous: tuple[Entry, str | None] | None = None
    for entry in entries:
        number = place(reader, entry.tree, name)
        if previous and previous[1] != number and _differs(reader, previous[0], entry, name):
            yield previous[0]
        previous = entry, number
    if previous and previous[1] is not None and document(reader, previous[0].tree, name) is not None:
        yield previous[0]


def _differs(reader: Reader, one: Entry, other: Entry, name: Name) -> bool:
    """Tell whether a partition is another one, of whose table it is known."""
    return not name.partition or document(reader, one.tree, name) != document(reader, other.tree, name)


def blame(reader: Reader, entries: Iterable[Entry], name: Name) -> list[tuple[str, Any, Entry]]:
    """Return each value that an object has in the newest commit, and the commit that gave it that value."""
    walk = iter(entries)
    entry = next(walk)
    here = document(reader, entry.tree, name)
    left = diff.fields(here) if here else {}
    found: dict[str, Entry] = {}
    number = place(reader, entry.tree, name)
    for earlier in walk:
        if not left.keys() - found.keys():
            break
        other = place(reader, earlier.tree, name)
        if other != number:
            said = document(reader, earlier.tree, name)
            before = diff.fields(said) if said else {}
            found |= {
                field: entry
                for field in left.keys() - found.keys()
                if field not in before or before[field] != left[field]
            }
        entry, number = earlier, other
    return [(field, value, found.get(field, entry)) for field, value in left.items()]


def _said(reader: Reader, number: str) -> dict[str, Any]:
    return dict(json.loads(reader.blob(number)))


def _partition(reader: Reader, files: Mapping[str, str], name: str) -> Document | None:
    for number in diff.ranges_of(reader, files):
        for text in reader.blob(number).splitlines():
            one = json.loads(text)
            if one["name"] == name:
                return diff.whole(one, _said(reader, files[build.SHAPES]))
    return None
