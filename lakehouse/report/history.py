"""The catalog's history as a picture: columns are commits, lines are tables, marks are changes.

All lengths are units of the SVG's own coordinate system, which the page shows as pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from lakehouse.catalog import text
from lakehouse.catalog.diff import DATA, Action, Change
from lakehouse.catalog.names import Name
from lakehouse.catalog.store import Entry
from lakehouse.report.page import environment

_MARGIN, _HEAD = 16, 40
_LETTER = 7.6  # of a name, generously
_COLUMN, _LINE, _DATABASE = 30, 24, 30
# What a person can still see; the rest is said to be left out.
_MOST = 400
# How a table's files have changed, and nothing that the catalog says of it.
_FILES = "data"


@dataclass(frozen=True)
class Step:
    """A commit with what it changed; `changes` are None of the first one, in which everything is new."""

    entry: Entry
    changes: Sequence[Change] | None


@dataclass(frozen=True)
class Mark:
    """A change of an object in a commit: `kind` is added, removed, changed or data."""

    column: int
    kind: str
    descriptions: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """An object with its marks, and the spans of columns in which it existed: -1 is before the first one."""

    name: str
    kind: str
    y: float
    marks: tuple[Mark, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Picture:
    """Everything to draw."""

    width: float
    height: float
    first_x: float
    steps: tuple[Step, ...]
    lines: tuple[Line, ...]
    # The name of each database, and its vertical position.
    databases: tuple[tuple[str, float], ...]
    hidden: int

    def x(self, column: int) -> float:
        """Return the middle of a column; the edges for -1 and for the number of columns."""
        middle = self.first_x + _COLUMN * (column + 0.5)
        return min(max(middle, self.first_x), self.first_x + _COLUMN * len(self.steps))


def draw(steps: Sequence[Step]) -> Picture:
    """Lay out the changes of commits, the oldest first."""
    marks: dict[tuple[Name, str], list[Mark]] = {}
    for column, step in enumerate(steps):
        for (name, kind), changes in _grouped(step.changes or ()):
            marks.setdefault((name, kind), []).append(_mark(column, name, changes))
    visible = sorted(marks)[:_MOST]
    lines, databases, y = [], [], float(_HEAD)
    for database, group in groupby(visible, lambda key: (key[0].catalog, key[0].database)):
        y += _DATABASE
        databases.append((".".join(filter(None, database)) or "everything", y - 8))
        for name, kind in group:
            object_marks = tuple(marks[name, kind])
            label = name.table or name.function or name.database or name.catalog or kind
            lines.append(
                Line(label, kind, y + _LINE / 2, object_marks, tuple(_spans(object_marks, len(steps))))
            )
            y += _LINE
    names = [*(line.name for line in lines), *(name for name, _ in databases)]
    first_x = _MARGIN + _LETTER * max([12, *map(len, names)])
    return Picture(
        width=first_x + _COLUMN * len(steps) + _MARGIN,
        height=y + _MARGIN,
        first_x=first_x,
        steps=tuple(steps),
        lines=tuple(lines),
        databases=tuple(databases),
        hidden=len(marks) - len(visible),
    )


def render(cluster: str, picture: Picture) -> str:
    """Return the page: everything that comes from outside is escaped, nothing is loaded from anywhere."""
    return environment().get_template("history.html.j2").render(cluster=cluster, picture=picture, text=text)


def _grouped(changes: Sequence[Change]) -> Iterator[tuple[tuple[Name, str], list[Change]]]:
    """Give the changes of each object; those of a partition belong to its table."""
    groups: dict[tuple[Name, str], list[Change]] = {}
    for change in changes:
        name = change.name
        owner = Name(name.catalog, name.database, name.table, function=name.function)
        groups.setdefault((owner, "table" if change.kind == "partition" else change.kind), []).append(change)
    yield from groups.items()


def _mark(column: int, name: Name, changes: Sequence[Change]) -> Mark:
    actions = {change.action for change in changes if change.name == name}
    kinds: Mapping[Action, str] = {Action.ADDED: "added", Action.REMOVED: "removed"}
    files = all(change.field == DATA for change in changes)
    kind = next((kinds[action] for action in actions if action in kinds), _FILES if files else "changed")
    return Mark(column, kind, tuple(map(text.change, changes)))


def _spans(marks: Sequence[Mark], columns: int) -> Iterator[tuple[int, int]]:
    """Give from where to where an object was there."""
    since: int | None = None if marks[0].kind == "added" else -1
    for mark in marks:
        if mark.kind == "removed" and since is not None:
            yield since, mark.column
            since = None
        elif since is None:
            since = mark.column
    if since is not None:
        yield since, columns
