"""Filters have SQL's three-valued logic: SQLite evaluates their SQL, and a function the same rows."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.census import filters
from lakehouse.census.filters import (
    Combination,
    Comparison,
    Filter,
    FilterError,
    Membership,
    Negation,
    Nullness,
    Operator,
)

TEXTS, NUMBERS = ("table_name", "path"), ("last_modified_time", "row_group_index")
TEXT = st.text("aAbZ' äé𝄞\uffff%_", max_size=3)
NUMBER = st.sampled_from([-(2**40), -1, 0, 1, 2**31 - 1, 2**31, 2**40])
COMPARED = [operator for operator in Operator if operator in filters._COMPARISONS]
LEAVES = st.one_of(
    st.builds(Comparison, st.sampled_from(COMPARED), st.sampled_from(TEXTS), TEXT),
    st.builds(Comparison, st.sampled_from(COMPARED), st.sampled_from(NUMBERS), NUMBER),
    st.builds(
        Membership, st.sampled_from([Operator.IN, Operator.NOT_IN]), st.sampled_from(TEXTS),
        st.lists(TEXT, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        Nullness, st.sampled_from([Operator.IS_NULL, Operator.IS_NOT_NULL]), st.sampled_from(TEXTS + NUMBERS)
    ),
)  # fmt: skip
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Negation, inner),
        st.builds(
            Combination, st.sampled_from([Operator.AND, Operator.OR]),
            st.lists(inner, min_size=1, max_size=4).map(tuple),
        ),
    ),
)  # fmt: skip
ROWS = st.lists(
    st.fixed_dictionaries({
        **{name: st.none() | TEXT for name in TEXTS}, **{name: st.none() | NUMBER for name in NUMBERS},
    }),
    min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=300)
@given(FILTERS, ROWS)
def test_sql_and_the_function_match_the_same_rows(condition: Filter, rows: list[dict[str, Any]]) -> None:
    assert evaluated(condition, rows) == [filters.matches(condition, row) for row in rows]


def evaluated(condition: Filter, rows: list[dict[str, Any]]) -> list[bool | None]:
    """Return what SQLite makes of a filter; its numbers have no suffix, and it has no escapes."""
    names = [*TEXTS, *NUMBERS]
    connection = sqlite3.connect(":memory:")
    connection.execute(f"create table units ({', '.join(names)})")
    for row in rows:
        connection.execute("insert into units values (?, ?, ?, ?)", [row[name] for name in names])
    condition_sql = filters.sql(condition).replace(f"{2**31}L", str(2**31)).replace(f"{2**40}L", str(2**40))
    values = connection.execute(f"select {condition_sql} from units order by rowid").fetchall()  # noqa: S608
    return [None if value is None else bool(value) for (value,) in values]


def test_the_operators_are_those_of_drill() -> None:
    assert len(Operator) == 13


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: filters.equal("no", "a"), "no is no column"),
        (lambda: filters.equal("locations", "a"), "lists or maps"),
        (lambda: filters.equal("table_name", 1), "of type str"),
        (lambda: filters.equal("row_group_index", "a"), "of type int"),
        (lambda: filters.equal("row_group_index", True), "of type int"),
        (lambda: filters.equal("row_group_index", 2**63), "too large"),
        (lambda: filters.is_in("table_name", []), "no values"),
        (lambda: Comparison(Operator.AND, "table_name", "a"), "compares no column"),
        (lambda: Membership(Operator.EQUAL, "table_name", ("a",)), "takes no list"),
        (lambda: Nullness(Operator.NOT, "table_name"), "takes more"),
        (lambda: Combination(Operator.AND, ()), "has no filters"),
    ],
)
def test_a_wrong_filter_is_refused_when_it_is_made(make: Any, reason: str) -> None:
    with pytest.raises(FilterError, match=reason):
        make()


def test_a_quote_ends_no_text() -> None:
    assert filters.sql(filters.equal("table_name", "a' OR 'b\\")) == r"table_name = 'a'' OR ''b\\'"


def test_many_filters_are_nested_logarithmically() -> None:
    condition_sql = filters.sql(
        filters.any_of(*(filters.equal("table_name", str(number)) for number in range(4096)))
    )
    depth = deepest = 0
    for letter in condition_sql:
        depth += (letter == "(") - (letter == ")")
        deepest = max(deepest, depth)
    assert deepest < 20
