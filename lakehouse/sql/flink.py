"""Run statements with Flink's SQL client on one of its hosts, as a Unix account, and parse its output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from unicodedata import east_asian_width

from lakehouse.sql.nodes import Client
from lakehouse.sql.query import Outcome, Query
from lakehouse.sql.rows import Rows

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# After an echoed statement, or in its own line.
_BORDER = re.compile(r"\+(?:-+\+)+$")
_EMPTY = re.compile(r"Empty set(?: \([\d.]+ seconds?\))?$")
_NULL = "<NULL>"
# The last character of one UTF-16 code unit.
_BASIC = 0xFFFF
_ERROR = "[ERROR] Could not execute SQL statement. Reason:"
_JAVA = re.compile(r"^(?:[a-z_]\w*\.)+[A-Z]\w*(?:: |$)")
# A maximal width, so that no cell is truncated.
_SETTINGS = {"table.display.max-column-width": "1000000", "execution.runtime-mode": "batch"}


def script(_: Query) -> str:
    """Return the shell command. The client needs a file that its user may open, such as this pipe."""
    return "cat | flink-sql -f /dev/stdin"


def session(_: Query) -> str:
    """Return the command of an interactive session on the host."""
    return "flink-sql"


def client_input(query: Query) -> str:
    """Return the input of the client: settings and statements."""
    settings = [f"SET '{key}' = '{value}'" for key, value in _SETTINGS.items()]
    return "".join(f"{statement};\n" for statement in (*settings, *query.statements))


def read(lines: Iterable[str]) -> Outcome:
    """Parse the client's output. It stops at a failed statement, also with exit code 0."""
    output = iter([_COLOUR.sub("", line) for line in lines])
    results: list[Rows] = []
    settings = len(_SETTINGS)
    for line in output:
        if border := _BORDER.search(line):
            if (table := _table(border[0], output)) is None:
                return Outcome(tuple(results), "the client ended within a table")
            results.append(table)
        elif _EMPTY.search(line):
            results.append(Rows())
        elif _ERROR in line:
            return Outcome(tuple(results), _reason(output))
        elif "[INFO] Execute statement succeeded" in line or "[INFO] Complete execution" in line:
            # The first answers are to the settings.
            settings -= 1
            results += [Rows(messages=("done",))] if settings < 0 else []
    return Outcome(tuple(results))


def _table(border: str, output: Iterator[str]) -> Rows | None:
    """Parse a table: names, a border, rows, a border; None for an incomplete one.

    A cell may contain line breaks.
    """
    edges = [position for position, letter in enumerate(border) if letter == "+"]
    names = next(output, "")
    if sum(map(_width, names)) < len(border):
        return None
    columns = tuple(cell.strip() for cell in _cells(names, edges))
    next(output, "")
    rows: list[tuple[str | None, ...]] = []
    text = ""
    for line in output:
        if not text and line == border:
            return Rows(columns, tuple(rows))
        text = f"{text}\n{line}" if text else line
        if sum(map(_width, text)) >= len(border):
            cells = [cell.strip() for cell in _cells(text, edges)]
            rows.append(tuple(None if cell == _NULL else cell for cell in cells))
            text = ""
    return None


def _cells(line: str, edges: list[int]) -> Iterator[str]:
    """Yield the texts between the edges, which are positions in terminal columns."""
    ends: dict[int, int] = {}
    width = 0
    for position, letter in enumerate(line):
        ends.setdefault(width, position)
        width += _width(letter)
    for start, end in pairwise(edges):
        yield line[ends[start] + 1 : ends[end]]


def _width(letter: str) -> int:
    """Return the terminal columns of a letter for Flink: TableauStyle.java, getStringDisplayWidth.

    It is the number of UTF-16 code units, plus one for wide East Asian letters.
    """
    return (2 if ord(letter) > _BASIC else 1) + (east_asian_width(letter) in "WF")


def _reason(output: Iterator[str]) -> str:
    """Return the next line without the name of a Java class, unless that is all."""
    line = next(output, "no reason was given").strip()
    return _JAVA.sub("", line) or line


CLIENT = Client(script, client_input, read)
