"""What statements return, and how it is shown: as a table, as CSV, or as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len

from lakehouse.terminal import LINES, printable

Value = Any
# A cell with one of these is quoted.
_QUOTED = frozenset(',"\r\n')


@dataclass(frozen=True)
class Rows:
    """The rows of one statement; `said` is what an engine says in place of rows, such as INSERT: 3 rows.

    A client that names columns by its rows alone has none where there is no row.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()
    said: tuple[str, ...] = field(default=())


def table(results: Sequence[Rows]) -> str:
    """Return a table for people, below each other where there are several statements."""
    return "\n".join(line for rows in results for line in _table(rows))


def as_csv(results: Sequence[Rows]) -> str:
    """Return CSV with a line of names (RFC 4180, but with newlines alone), an empty line between statements.

    What is null is an empty field, and an empty text a pair of quotes, as PostgreSQL's COPY has them. Values
    are as they are: for a terminal see `csv_for_terminal`.
    """
    return "\n".join(
        "".join(f"{','.join(map(_field, line))}\n" for line in (rows.columns, *rows.rows))
        for rows in results
        if rows.columns
    )


def _field(value: Value) -> str:
    if value is None:
        return ""
    shown = text(value)
    return '"{}"'.format(shown.replace('"', '""')) if not shown or set(shown) & _QUOTED else shown


def csv_for_terminal(results: Sequence[Rows]) -> str:
    """Return CSV without what would steer a terminal; lines and tabs stay."""
    return printable(as_csv(results), keep=LINES)


def documents(results: Sequence[Rows]) -> list[dict[str, Any]]:
    """Return the same for programs: names once, and each row as a list."""
    return [
        {"columns": list(one.columns), "rows": [list(row) for row in one.rows], "said": list(one.said)}
        for one in results
    ]


def text(value: Value) -> str:
    """Return a value as a person reads it: NULL, true, and JSON for what is in something."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _table(rows: Rows) -> Iterator[str]:
    yield from map(printable, rows.said)
    if rows.columns:
        shown = [[printable(name) for name in rows.columns]] + [
            [printable(text(one)) for one in row] for row in rows.rows
        ]
        widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
        lines = [
            " | ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
            for row in shown
        ]
        yield lines[0].rstrip()
        yield "-+-".join("-" * width for width in widths)
        yield from (line.rstrip() for line in lines[1:])
    if rows.columns or not rows.said:
        yield f"({len(rows.rows)} row{'' if len(rows.rows) == 1 else 's'})"
