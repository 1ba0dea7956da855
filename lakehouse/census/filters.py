"""Filters of units: the 13 operators of Drill's FilterExpression, as SQL and as a function.

Both have SQL's three-valued logic: a comparison with null is unknown. Texts compare by code points, as
Spark's do by bytes of UTF-8.
Reference: Apache Drill, metastore-api, org.apache.drill.metastore.expressions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lakehouse.census.model import COLUMNS

Value = str | int
NUMBERS = frozenset({"last_modified_time", "row_group_index"})
# Columns of lists and maps are null or not, and compare with nothing.
COMPOUND = frozenset({
    "interesting_columns", "columns_statistics", "metadata_statistics", "partition_keys", "locations",
    "partition_values", "host_affinity",
})  # fmt: skip
_MOST_NUMBER = 2**63


class FilterError(ValueError):
    """A filter names an unknown column, or compares it with a value of another type."""


class Operator(StrEnum):
    """The operators of a filter, with the names that Drill has."""

    EQUAL = "EQUAL"
    NOT_EQUAL = "NOT_EQUAL"
    LESS_THAN = "LESS_THAN"
    LESS_THAN_OR_EQUAL = "LESS_THAN_OR_EQUAL"
    GREATER_THAN = "GREATER_THAN"
    GREATER_THAN_OR_EQUAL = "GREATER_THAN_OR_EQUAL"
    IN = "IN"
    NOT_IN = "NOT_IN"
    IS_NULL = "IS_NULL"
    IS_NOT_NULL = "IS_NOT_NULL"
    NOT = "NOT"
    AND = "AND"
    OR = "OR"


_COMPARISONS: Mapping[Operator, tuple[str, Callable[[Any, Any], bool]]] = {
    Operator.EQUAL: ("=", operator.eq),
    Operator.NOT_EQUAL: ("<>", operator.ne),
    Operator.LESS_THAN: ("<", operator.lt),
    Operator.LESS_THAN_OR_EQUAL: ("<=", operator.le),
    Operator.GREATER_THAN: (">", operator.gt),
    Operator.GREATER_THAN_OR_EQUAL: (">=", operator.ge),
}


@dataclass(frozen=True)
class Comparison:
    """A column compared with a value; FilterError."""

    operator: Operator
    column: str
    value: Value

    def __post_init__(self) -> None:
        """Check operator, column and value."""
        if self.operator not in _COMPARISONS:
            raise FilterError(f"{self.operator} compares no column with a value")
        _check(self.column, [self.value])


@dataclass(frozen=True)
class Membership:
    """A column whose value is in a list, or not (IN, NOT_IN); FilterError."""

    operator: Operator
    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        """Check operator, column and values: SQL has no empty list."""
        if self.operator not in {Operator.IN, Operator.NOT_IN}:
            raise FilterError(f"{self.operator} takes no list of values")
        if not self.values:
            raise FilterError(f"{self.operator} of {self.column} has no values")
        _check(self.column, self.values)


@dataclass(frozen=True)
class Nullness:
    """A column that is null, or not (IS_NULL, IS_NOT_NULL); FilterError."""

    operator: Operator
    column: str

    def __post_init__(self) -> None:
        """Check operator and column."""
        if self.operator not in {Operator.IS_NULL, Operator.IS_NOT_NULL}:
            raise FilterError(f"{self.operator} takes more than a column")
        if self.column not in COLUMNS:
            raise FilterError(f"{self.column} is no column of a unit")


@dataclass(frozen=True)
class Negation:
    """The opposite of a filter (NOT)."""

    filter: Filter


@dataclass(frozen=True)
class Combination:
    """All filters of a list, or any of them (AND, OR); FilterError."""

    operator: Operator
    filters: tuple[Filter, ...]

    def __post_init__(self) -> None:
        """Check the operator, and that there are filters."""
        if self.operator not in {Operator.AND, Operator.OR}:
            raise FilterError(f"{self.operator} combines no filters")
        if not self.filters:
            raise FilterError(f"{self.operator} has no filters")


Filter = Comparison | Membership | Nullness | Negation | Combination


def equal(column: str, value: Value) -> Comparison:
    """Return the filter column = value."""
    return Comparison(Operator.EQUAL, column, value)


def is_in(column: str, values: Sequence[Value]) -> Membership:
    """Return the filter column IN (values)."""
    return Membership(Operator.IN, column, tuple(values))


def all_of(*filters: Filter) -> Filter:
    """Return what matches where each filter does."""
    return filters[0] if len(filters) == 1 else Combination(Operator.AND, filters)


def any_of(*filters: Filter) -> Filter:
    """Return what matches where a filter does."""
    return filters[0] if len(filters) == 1 else Combination(Operator.OR, filters)


def columns(filter_: Filter) -> Iterator[str]:
    """Yield the columns that a filter reads."""
    match filter_:
        case Negation(inner):
            yield from columns(inner)
        case Combination(_, inners):
            for inner in inners:
                yield from columns(inner)
        case Comparison() | Membership() | Nullness():
            yield filter_.column


def sql(filter_: Filter) -> str:
    """Return the filter as a condition in Spark's SQL."""
    match filter_:
        case Comparison(kind, column, value):
            return f"{column} {_COMPARISONS[kind][0]} {_literal(value)}"
        case Membership(kind, column, values):
            listed = ", ".join(map(_literal, values))
            return f"{column} {'NOT ' if kind is Operator.NOT_IN else ''}IN ({listed})"
        case Nullness(kind, column):
            return f"{column} IS {'NOT ' if kind is Operator.IS_NOT_NULL else ''}NULL"
        case Negation(inner):
            return f"NOT ({sql(inner)})"
        case Combination(kind, inners):
            return _balanced(str(kind), [f"({sql(inner)})" for inner in inners])


def matches(filter_: Filter, row: Mapping[str, Any]) -> bool | None:
    """Return whether a row matches a filter; None where that is unknown, as in SQL."""
    match filter_:
        case Comparison(kind, column, value):
            stored = row[column]
            return None if stored is None else _COMPARISONS[kind][1](stored, value)
        case Membership(kind, column, values):
            stored = row[column]
            return None if stored is None else (stored in values) is (kind is Operator.IN)
        case Nullness(kind, column):
            return (row[column] is None) is (kind is Operator.IS_NULL)
        case Negation(inner):
            result = matches(inner, row)
            return None if result is None else not result
        case Combination(kind, inners):
            results = [matches(inner, row) for inner in inners]
            decisive = kind is Operator.OR
            if decisive in results:
                return decisive
            return None if None in results else not decisive


def _check(column: str, values: Sequence[Value]) -> None:
    if column not in COLUMNS:
        raise FilterError(f"{column} is no column of a unit")
    if column in COMPOUND:
        raise FilterError(f"{column} holds lists or maps: IS_NULL and IS_NOT_NULL alone apply to it")
    kind: type = int if column in NUMBERS else str
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise FilterError(f"{column} is of type {kind.__name__}, the value {value!r} is not")
        if isinstance(value, int) and not -_MOST_NUMBER < value < _MOST_NUMBER:
            raise FilterError(f"{value} is too large a number")


def _literal(value: Value) -> str:
    if isinstance(value, int):
        return f"{value}L" if abs(value) >= _INT_LIMIT else str(value)
    text = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{text}'"


_INT_LIMIT = 2**31


def _balanced(word: str, parts: Sequence[str]) -> str:
    """Return the parts joined in a tree of logarithmic depth: Spark's parser is recursive."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_balanced(word, parts[:middle])} {word} {_balanced(word, parts[middle:])})"
