"""What counts as the same answer to a query of TPC-H."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from suites.matrix.tpch.compare import AmbiguousError, Answer, equal

REVENUES = Answer(
    ("nation", "revenue"),
    (("PERU", Decimal("30.00")), ("CHINA", Decimal("20.00")), ("INDIA", Decimal("20.00"))),
    order=(1,),
)


def test_the_same_rows_do_not_differ() -> None:
    assert REVENUES.difference(list(REVENUES.rows)) == ""


def test_tied_rows_may_come_in_any_order() -> None:
    peru, china, india = REVENUES.rows
    assert REVENUES.difference([peru, india, china]) == ""


def test_rows_that_the_query_orders_must_come_in_order() -> None:
    peru, china, india = REVENUES.rows
    difference = REVENUES.difference([china, peru, india])
    assert difference.startswith("from row 1, revenue (Decimal('30.00'),):")


def test_without_an_order_any_will_do() -> None:
    unordered = Answer(REVENUES.columns, REVENUES.rows)
    assert unordered.difference(list(reversed(REVENUES.rows))) == ""
    assert unordered.difference([REVENUES.rows[0]] * 3)


def test_a_missing_row_is_told_with_both_sides() -> None:
    difference = REVENUES.difference(list(REVENUES.rows[:2]))
    assert difference.startswith("3 rows expected, 2 came")
    assert "INDIA" in difference.partition("\n\ngot ")[0]
    assert "INDIA" not in difference.partition("\n\ngot ")[2]


def test_long_answers_are_shown_in_part() -> None:
    answer = Answer(("n",), tuple((number,) for number in range(25)))
    assert "... and 15 more" in answer.difference([])


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (Decimal("1.50"), Decimal("1.5000")),
        (0.1 + 0.2, 0.3),
        (1.0, 1.0000009),
        (None, None),
        (dt.date(1995, 3, 15), dt.date(1995, 3, 15)),
    ],
)
def test_equal_values(expected: object, got: object) -> None:
    assert equal((expected,), (got,))


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (Decimal("1.500000"), Decimal("1.500001")),
        (Decimal("1.5"), 1.5),
        (1.0, 1.000002),
        (0.0, 1e-9),
        (1, True),
        (1, "1"),
        (None, 0),
        (dt.date(1995, 3, 15), dt.datetime(1995, 3, 15)),
    ],
)
def test_unequal_values(expected: object, got: object) -> None:
    assert not equal((expected,), (got,))


def test_rows_of_another_width_are_unequal() -> None:
    assert not equal((1, 2), (1,))


def test_tied_rows_are_paired_by_what_is_exact() -> None:
    """The same floats with other last digits must not change which rows are compared."""
    answer = Answer(("share", "name"), ((0.1, "a"), (0.1, "b"), (0.3, "c")))
    assert answer.difference([(0.3, "c"), (0.10000000001, "b"), (0.09999999999, "a")]) == ""


def test_an_answer_is_cut_where_its_order_says_which_rows() -> None:
    assert REVENUES.first(1).rows == REVENUES.rows[:1]
    assert REVENUES.first(3) is REVENUES
    assert REVENUES.first(None) is REVENUES


def test_a_limit_between_tied_rows_is_ambiguous() -> None:
    with pytest.raises(AmbiguousError, match="row 2 and the next have the same revenue"):
        REVENUES.first(2)
