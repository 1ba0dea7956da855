"""Results of statements, and their formats: table, CSV, JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len

from lakehouse.terminal import LINES, printable

Value = Any
# Characters that make CSV quote a cell.
_QUOTED = frozenset(',"\r\n')


@dataclass(frozen=True)
class Rows:
    """The rows of one statement, or the engine's `messages` in place of rows, such as INSERT: 3 rows.

    Some clients return no columns without a row.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()
    messages: tuple[str, ...] = field(default=())


def table(results: Sequence[Rows]) -> str:
    """Return a text table of each result."""
    return "\n".join(line for rows in results for line in _table(rows))


def as_csv(results: Sequence[Rows]) -> str:
    """Return CSV with a line of names (RFC 4180, but with newlines alone), an empty line between statements.

    Null is an empty field, and an empty text a pair of quotes, as in PostgreSQL's COPY. Control characters
    are kept; `csv_for_terminal` escapes them.
    """
    return "\n".join(
        "".join(f"{','.join(map(_field, line))}\n" for line in (rows.columns, *rows.rows))
        for rows in results
        if rows.columns
    )


def _field(value: Value) -> str:
    if value is None:
        return ""
    cell = text(value)
    return '"{}"'.format(cell.replace('"', '""')) if not cell or set(cell) & _QUOTED else cell


def csv_for_terminal(results: Sequence[Rows]) -> str:
    """Return CSV with control characters escaped, except line breaks and tabs."""
    return printable(as_csv(results), keep=LINES)


def documents(results: Sequence[Rows]) -> list[dict[str, Any]]:
    """Return results for programs: column names once, and each row as a list."""
    return [
        {
            "columns": list(result.columns),
            "rows": [list(row) for row in result.rows],
            "said": list(result.messages),
        }
        for result in results
    ]


def text(value: Value) -> str:
    """Return a value as text: NULL, true, and JSON for nested values."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _table(rows: Rows) -> Iterator[str]:
    yield from map(printable, rows.messages)
    if rows.columns:
        cells = [[printable(name) for name in rows.columns]] + [
            [printable(text(value)) for value in row] for row in rows.rows
        ]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        lines = [
            " | ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
            for row in cells
        ]
        yield lines[0].rstrip()
        yield "-+-".join("-" * width for width in widths)
        yield from (line.rstrip() for line in lines[1:])
    if rows.columns or not rows.messages:
        yield f"({len(rows.rows)} row{'' if len(rows.rows) == 1 else 's'})"
