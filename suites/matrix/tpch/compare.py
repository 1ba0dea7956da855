"""Compare an answer with the expected one: exact decimals, near floats, in the order of the query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

Row = tuple[Any, ...]

# Floats are sums of several workers: the order of their additions is not promised.
RELATIVE = 1e-6
SHOWN = 10


class AmbiguousError(Exception):
    """The limit of a query falls between rows that its order does not tell apart."""


@dataclass(frozen=True)
class Answer:
    """Rows with the names of their columns; `order` are the indexes of the columns that sort them."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    order: tuple[int, ...] = ()

    def first(self, limit: int | None) -> Answer:
        """Return the answer cut to a length; AmbiguousError where other rows could stand there as well."""
        if limit is None or len(self.rows) <= limit:
            return self
        last, next_one = (self._key(row) for row in self.rows[limit - 1 : limit + 1])
        if last == next_one:
            raise AmbiguousError(f"row {limit} and the next have the same {self._names()}: {last}")
        return Answer(self.columns, self.rows[:limit], self.order)

    def difference(self, rows: Sequence[Row]) -> str:
        """Return how an engine's rows differ; empty if they do not.

        Rows with equal keys of the query's order may come in any order among themselves.
        """
        if len(rows) != len(self.rows):
            return self._shown(f"{len(self.rows)} rows expected, {len(rows)} came", rows)
        position = 0
        for key, group in groupby(self.rows, self._key):
            expected = list(group)
            end = position + len(expected)
            actual = sorted(rows[position:end], key=_sortable)
            for expected_row, row in zip(sorted(expected, key=_sortable), actual, strict=True):
                if not equal(expected_row, row):
                    tied = f", {self._names()} {key}" if self.order else ""
                    reason = f"from row {position + 1}{tied}:\n  expected {expected_row}\n  got      {row}"
                    return self._shown(reason, rows)
            position = end
        return ""

    def _key(self, row: Row) -> Row:
        return tuple(row[index] for index in self.order)

    def _names(self) -> str:
        return ", ".join(self.columns[index] for index in self.order)

    def _shown(self, reason: str, got: Sequence[Row]) -> str:
        return f"{reason}\n\nexpected {_listed(self.rows)}\n\ngot {_listed(got)}"


def equal(expected: Row, got: Row) -> bool:
    """Compare two rows value by value: of the same kind and the same, floats to one part in a million."""
    return len(expected) == len(got) and all(map(_same, expected, got))


def _same(expected: Any, got: Any) -> bool:
    if type(expected) is not type(got):
        return False
    if isinstance(expected, float):
        return math.isclose(expected, got, rel_tol=RELATIVE)
    return bool(expected == got)


def _sortable(row: Row) -> tuple[list[str], list[str]]:
    """Order rows alike on both sides: by what is exact first, for floats may differ in their last digits."""
    exact = [_text(value) for value in row if not isinstance(value, float)]
    return exact, [f"{value:.3e}" for value in row if isinstance(value, float)]


def _text(value: Any) -> str:
    return str(value.normalize() if isinstance(value, Decimal) else value)


def _listed(rows: Sequence[Row]) -> str:
    lines = [str(row) for row in rows[:SHOWN]]
    hidden = len(rows) - len(lines)
    return "\n".join([f"({len(rows)} rows):", *lines, *([f"... and {hidden} more"] if hidden > 0 else [])])
