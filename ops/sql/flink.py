"""Asks Flink with its SQL client on a host of it, as a Unix account there, and reads its tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from unicodedata import east_asian_width

from ops.sql.nodes import Client
from ops.sql.query import Asked, Outcome
from ops.sql.rows import Rows

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Behind a statement that is repeated, or in a line of its own.
_BORDER = re.compile(r"\+(?:-+\+)+$")
_EMPTY = re.compile(r"Empty set(?: \([\d.]+ seconds?\))?$")
_NULL = "<NULL>"
# The last letter of one unit of UTF-16.
_BASIC = 0xFFFF
_ERROR = "[ERROR] Could not execute SQL statement. Reason:"
_JAVA = re.compile(r"^(?:[a-z_]\w*\.)+[A-Z]\w*(?:: |$)")
# As wide as a cell may be before it is cut off.
_SETTINGS = {"table.display.max-column-width": "1000000", "execution.runtime-mode": "batch"}


def script(_: Asked) -> str:
    """Return the shell's line. The client opens a file: a pipe of its own user's is one."""
    return "cat | flink-sql -f /dev/stdin"


def session(_: Asked) -> str:
    """Return the command of a session on the host."""
    return "flink-sql"


def given(asked: Asked) -> str:
    """Return what the client reads: it takes one statement of a line."""
    settings = [f"SET '{key}' = '{value}'" for key, value in _SETTINGS.items()]
    return "".join(f"{statement};\n" for statement in (*settings, *asked.statements))


def read(lines: Iterable[str]) -> Outcome:
    """Read what the client shows. It ends with 0 also where a statement failed, and then stops."""
    shown = iter([_COLOUR.sub("", line) for line in lines])
    found: list[Rows] = []
    settings = len(_SETTINGS)
    for line in shown:
        if border := _BORDER.search(line):
            if (table := _table(border[0], shown)) is None:
                return Outcome(tuple(found), "the client ended within a table")
            found.append(table)
        elif _EMPTY.search(line):
            found.append(Rows())
        elif _ERROR in line:
            return Outcome(tuple(found), _reason(shown))
        elif "[INFO] Execute statement succeeded" in line or "[INFO] Complete execution" in line:
            # The settings are ours.
            settings -= 1
            found += [Rows(said=("done",))] if settings < 0 else []
    return Outcome(tuple(found))


def _table(border: str, shown: Iterator[str]) -> Rows | None:
    """Read a table: names, a border, rows, a border; None where it has no end.

    A cell may go on in the next line of the text.
    """
    edges = [place for place, letter in enumerate(border) if letter == "+"]
    names = next(shown, "")
    if sum(map(_width, names)) < len(border):
        return None
    columns = tuple(cell.strip() for cell in _cells(names, edges))
    next(shown, "")
    rows: list[tuple[str | None, ...]] = []
    whole = ""
    for line in shown:
        if not whole and line == border:
            return Rows(columns, tuple(rows))
        whole = f"{whole}\n{line}" if whole else line
        if sum(map(_width, whole)) >= len(border):
            cells = [cell.strip() for cell in _cells(whole, edges)]
            rows.append(tuple(None if cell == _NULL else cell for cell in cells))
            whole = ""
    return None


def _cells(line: str, edges: list[int]) -> Iterator[str]:
    """Give the texts between the edges, which count columns as Flink does."""
    ends: dict[int, int] = {}
    width = 0
    for place, letter in enumerate(line):
        ends.setdefault(width, place)
        width += _width(letter)
    for left, right in pairwise(edges):
        yield line[ends[left] + 1 : ends[right]]


def _width(letter: str) -> int:
    """Return how many columns Flink gives a letter: TableauStyle.java, getStringDisplayWidth.

    A unit of UTF-16 is one, and what East Asia writes wide one more.
    """
    return (2 if ord(letter) > _BASIC else 1) + (east_asian_width(letter) in "WF")


def _reason(shown: Iterator[str]) -> str:
    """Return the next line without the name of Java's class, if it says more than that."""
    line = next(shown, "no reason was given").strip()
    return _JAVA.sub("", line) or line


CLIENT = Client(script, given, read)
