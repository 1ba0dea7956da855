"""Reads everything that the names of a history lead to, and says what of it is damaged, and where it lies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse.catalog import build
from lakehouse.catalog.diff import ranges_of
from lakehouse.catalog.disk import DamagedError
from lakehouse.catalog.store import Store

# Of folders in each other: those of partitions are the deepest; and of a user's text.
_DEEPEST, _SHOWN = 20, 200


@dataclass(frozen=True)
class Fault:
    """Something damaged: in which commit and file, and what is wrong."""

    where: str
    what: str


@dataclass
class Checked:
    """How much was read, and what was wrong."""

    commits: int = 0
    objects: int = 0
    faults: list[Fault] = field(default_factory=list)


def check(store: Store) -> Checked:
    """Read every object of every branch and tag, each once, and look whether its documents are whole."""
    checked, walk = Checked(), _Walk(store)
    seen: set[str] = set()
    waiting = store.references.tips()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        try:
            entry = store.commit(number)
        except DamagedError as error:
            checked.faults.append(Fault(number[:12], error.message))
            continue
        checked.commits += 1
        checked.faults += [Fault(f"{entry.short}:{path}", what) for path, what in walk.tree(entry.tree, "")]
        waiting += reversed(entry.parents)
    checked.objects = len(walk.seen) + checked.commits
    return checked


class _Walk:
    """Goes through trees, into what was not seen before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.seen: set[str] = set()

    def tree(self, number: str, path: str) -> Iterator[tuple[str, str]]:
        """Give path and fault of everything damaged in a tree."""
        if number in self.seen:
            return
        self.seen.add(number)
        if path.count("/") > _DEEPEST:
            yield f"{path[:_SHOWN]}...", "has more folders in each other than a catalog has"
            return
        try:
            entries = self._store.tree(number)
        except DamagedError as error:
            yield path or "/", error.message
            return
        whole = True
        for name, below in entries.items():
            faults = list(
                self._file(below, f"{path}/{name}") if "." in name else self.tree(below, f"{path}/{name}")
            )
            whole = whole and not faults
            yield from faults
        if build.SHAPES in entries and whole:
            yield from self._shapes(entries, path)

    def _file(self, number: str, path: str) -> Iterator[tuple[str, str]]:
        if number in self.seen:
            return
        self.seen.add(number)
        try:
            content = self._store.blob(number)
            said = (
                [json.loads(line) for line in content.splitlines()]
                if path.endswith("l")
                else json.loads(content)
            )
            names = [str(one["name"]) for one in said] if isinstance(said, list) else []
        except DamagedError as error:
            yield path, error.message
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            yield path, f"is no document: {type(error).__name__}: {str(error)[:_SHOWN]}"
        else:
            if names != sorted(set(names)):
                yield path, "its partitions are not sorted, or one is there twice"

    def _shapes(self, entries: Mapping[str, str], path: str) -> Iterator[tuple[str, str]]:
        known: Any = json.loads(self._store.blob(entries[build.SHAPES]))
        for number in ranges_of(self._store, entries):
            for line in self._store.blob(number).splitlines():
                one = json.loads(line)
                if one.get("shape") not in known:
                    yield path, f"partition {one['name']} is of a shape that is not there"
                    return
