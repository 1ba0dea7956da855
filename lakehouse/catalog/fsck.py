"""Read all objects that the references of a history reach, and report the damaged ones with their paths."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse.catalog import build
from lakehouse.catalog.diff import ranges_of
from lakehouse.catalog.disk import DamagedError
from lakehouse.catalog.store import Store

# The limits of nested folders, of which those of partitions are the deepest, and of a text in a message.
_DEEPEST, _SHOWN = 20, 200


@dataclass(frozen=True)
class Fault:
    """A damaged file: its commit and path, and the fault."""

    path: str
    why: str


@dataclass
class CheckResult:
    """The number of commits and objects read, and the faults."""

    commits: int = 0
    objects: int = 0
    faults: list[Fault] = field(default_factory=list)


def check(store: Store) -> CheckResult:
    """Read every object of every branch and tag once, and check its documents."""
    result, walk = CheckResult(), _Walk(store)
    visited: set[str] = set()
    stack = store.references.tips()
    while stack:
        number = stack.pop()
        if number in visited:
            continue
        visited.add(number)
        try:
            entry = store.commit(number)
        except DamagedError as error:
            result.faults.append(Fault(number[:12], error.message))
            continue
        result.commits += 1
        result.faults += [Fault(f"{entry.short}:{path}", fault) for path, fault in walk.tree(entry.tree, "")]
        stack += reversed(entry.parents)
    result.objects = len(walk.visited) + result.commits
    return result


class _Walk:
    """Visits trees, each object once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.visited: set[str] = set()

    def tree(self, number: str, path: str) -> Iterator[tuple[str, str]]:
        """Give path and fault of each damaged file in a tree."""
        if number in self.visited:
            return
        self.visited.add(number)
        if path.count("/") > _DEEPEST:
            yield f"{path[:_SHOWN]}...", "has more folders in each other than a catalog has"
            return
        try:
            entries = self._store.tree(number)
        except DamagedError as error:
            yield path or "/", error.message
            return
        is_intact = True
        for name, child in entries.items():
            child_path = f"{path}/{name}"
            faults = list(self._file(child, child_path) if "." in name else self.tree(child, child_path))
            is_intact = is_intact and not faults
            yield from faults
        if build.SHAPES in entries and is_intact:
            yield from self._shapes(entries, path)

    def _file(self, number: str, path: str) -> Iterator[tuple[str, str]]:
        if number in self.visited:
            return
        self.visited.add(number)
        try:
            content = self._store.blob(number)
            document = (
                [json.loads(line) for line in content.splitlines()]
                if path.endswith("l")
                else json.loads(content)
            )
            names = [str(row["name"]) for row in document] if isinstance(document, list) else []
        except DamagedError as error:
            yield path, error.message
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            yield path, f"is no document: {type(error).__name__}: {str(error)[:_SHOWN]}"
        else:
            if names != sorted(set(names)):
                yield path, "its partitions are not sorted, or one is there twice"

    def _shapes(self, entries: Mapping[str, str], path: str) -> Iterator[tuple[str, str]]:
        shapes: Any = json.loads(self._store.blob(entries[build.SHAPES]))
        for number in ranges_of(self._store, entries):
            for line in self._store.blob(number).splitlines():
                partition = json.loads(line)
                if partition.get("shape") not in shapes:
                    yield path, f"partition {partition['name']} is of a shape that is not there"
                    return
