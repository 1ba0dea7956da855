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
    told: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """An object with its marks, and between which columns it was there: -1 is before the first one."""

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
    left: float
    steps: tuple[Step, ...]
    lines: tuple[Line, ...]
    # Of a database: where its name stands.
    databases: tuple[tuple[str, float], ...]
    left_out: int

    def x(self, column: int) -> float:
        """Return the middle of a column; of -1 and the number of columns the edges."""
        at = self.left + _COLUMN * (column + 0.5)
        return min(max(at, self.left), self.left + _COLUMN * len(self.steps))


def draw(steps: Sequence[Step]) -> Picture:
    """Place what has changed in commits, of which the oldest comes first."""
    marks: dict[tuple[Name, str], list[Mark]] = {}
    for column, step in enumerate(steps):
        for (name, kind), some in _grouped(step.changes or ()):
            marks.setdefault((name, kind), []).append(_mark(column, name, some))
    shown = sorted(marks)[:_MOST]
    lines, databases, y = [], [], float(_HEAD)
    for database, group in groupby(shown, lambda key: (key[0].catalog, key[0].database)):
        y += _DATABASE
        databases.append((".".join(filter(None, database)) or "everything", y - 8))
        for name, kind in group:
            own = tuple(marks[name, kind])
            called = name.table or name.function or name.database or name.catalog or kind
            lines.append(Line(called, kind, y + _LINE / 2, own, tuple(_spans(own, len(steps)))))
            y += _LINE
    names = [*(line.name for line in lines), *(name for name, _ in databases)]
    left = _MARGIN + _LETTER * max([12, *map(len, names)])
    return Picture(
        width=left + _COLUMN * len(steps) + _MARGIN,
        height=y + _MARGIN,
        left=left,
        steps=tuple(steps),
        lines=tuple(lines),
        databases=tuple(databases),
        left_out=len(marks) - len(shown),
    )


def render(cluster: str, picture: Picture) -> str:
    """Return the page: everything that comes from outside is escaped, nothing is loaded from anywhere."""
    return environment().get_template("history.html.j2").render(cluster=cluster, picture=picture, text=text)


def _grouped(changes: Sequence[Change]) -> Iterator[tuple[tuple[Name, str], list[Change]]]:
    """Give the changes of each object; a partition's are those of its table."""
    found: dict[tuple[Name, str], list[Change]] = {}
    for one in changes:
        name = one.name
        owner = Name(name.catalog, name.database, name.table, function=name.function)
        found.setdefault((owner, "table" if one.kind == "partition" else one.kind), []).append(one)
    yield from found.items()


def _mark(column: int, name: Name, changes: Sequence[Change]) -> Mark:
    own = {one.action for one in changes if one.name == name}
    kinds: Mapping[Action, str] = {Action.ADDED: "added", Action.REMOVED: "removed"}
    files = all(one.field == DATA for one in changes)
    kind = next((kinds[one] for one in own if one in kinds), _FILES if files else "changed")
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
