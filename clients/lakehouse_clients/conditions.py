"""Conditions on Iceberg tables that scan, delete and overwrite evaluate as SQL does.

PyIceberg evaluates one condition in three ways, by a file's statistics, by its partition and row by row, and
the three differ where a value is NULL or NaN: a delete removes rows that a scan with its condition does not
return. Here each comparison names NULL and NaN, so that the three agree.
"""

from __future__ import annotations

import re

from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    In,
    IsNaN,
    IsNull,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    Or,
    UnboundPredicate,
)
from pyiceberg.expressions.parser import parse
from pyparsing import ParseException

from lakehouse_clients.errors import ClientError

_TEXTS = re.compile(r"(?P<like>\blike\s*)?'(?P<text>(?:[^']|'')*)'", flags=re.IGNORECASE)
_GRAMMAR = "see 'Conditions' in docs/python-clients.md"


def exact(condition: str | BooleanExpression) -> BooleanExpression:
    """Return the condition that holds for the rows for which `condition` is TRUE in SQL, and for no others.

    A comparison with NULL is not TRUE, nor is its negation. NaN equals no number, is neither smaller nor
    larger than one, and differs from all: as in Trino. Raises ClientError for a text that PyIceberg cannot
    parse, or parses differently from SQL.

    >>> str(exact("not k = 'a'")) == str(exact("k != 'a'"))
    True
    """
    return _true(read(condition) if isinstance(condition, str) else condition)


def read(text: str) -> BooleanExpression:
    """Return PyIceberg's expression for a text; ClientError unless PyIceberg parses it as SQL does."""
    for literal in _TEXTS.finditer(text):
        if "\\" in literal["text"]:
            raise ClientError(
                f"the condition {text!r} has a backslash, which PyIceberg takes for an escape only at times",
                "write '' for a quote, or build it of pyiceberg.expressions: EqualTo('column', value)",
            )
        if literal["like"] and "_" in literal["text"]:
            raise ClientError(
                f"the condition {text!r} has LIKE with _, which is no wildcard to PyIceberg",
                "write = for the text itself; for a pattern use lake.sql, Spark or Trino",
            )
    try:
        return parse(text)
    except (ParseException, ValueError) as error:
        place = f" at character {error.loc}" if isinstance(error, ParseException) else f": {error}"
        raise ClientError(f"PyIceberg cannot read the condition {text!r}{place}", _GRAMMAR) from None


def _true(condition: BooleanExpression) -> BooleanExpression:
    match condition:
        case And(left=left, right=right):
            return And(_true(left), _true(right))
        case Or(left=left, right=right):
            return Or(_true(left), _true(right))
        case Not(child=child):
            return _not_true(child)
        case UnboundPredicate():
            return _comparison(condition)
    return condition


def _not_true(condition: BooleanExpression) -> BooleanExpression:
    """Return the condition under which the negation of a condition is TRUE."""
    match condition:
        case And(left=left, right=right):
            return Or(_not_true(left), _not_true(right))
        case Or(left=left, right=right):
            return And(_not_true(left), _not_true(right))
        case Not(child=child):
            return _true(child)
        case IsNull() | NotNull() | IsNaN() | NotNaN() | EqualTo() | In() | NotEqualTo() | NotIn():
            return _true(~condition)
        case UnboundPredicate(term=term):
            # The complement of x > 1 is x <= 1 or NaN.
            return And(NotNull(term=term), Or(_true(~condition), IsNaN(term=term)))
    return ~condition


def _comparison(leaf: UnboundPredicate) -> BooleanExpression:
    """Return the condition under which a comparison is TRUE. Without NaN, PyIceberg drops its part."""
    term = leaf.term
    match leaf:
        # A delete keeps rows with NaN in a column unless its condition names NaN of that column.
        case IsNull():
            return Or(leaf, And(NotNull(term=term), IsNaN(term=term), NotNaN(term=term)))
        case NotNull():
            return And(leaf, Or(IsNaN(term=term), NotNaN(term=term)))
        case IsNaN() | NotNaN():
            return And(NotNull(term=term), leaf)
        case NotEqualTo() | NotIn():
            return And(NotNull(term=term), Or(leaf, IsNaN(term=term)))
    return And(NotNull(term=term), NotNaN(term=term), leaf)
