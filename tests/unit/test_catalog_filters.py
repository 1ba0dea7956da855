"""Conditions on partition keys mean what they mean to a metastore, or are refused."""

from __future__ import annotations

import pytest

from lakehouse.catalog import filters, partition_names
from lakehouse.catalog.filters import NotUnderstoodError

KEYS = {"ds": "string", "hr": "int", "day": "date", "size": "decimal(3,1)"}


def holds(text: str, *, ds: str = "2026-01-31", hr: str = "7", day: str = "2026-01-31") -> bool:
    condition = filters.parse(text, KEYS)
    return filters.matches(condition, list(KEYS), [ds, hr, day, "1.5"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('ds = "2026-01-31"', True),
        ("DS <> '2026-01-31'", False),
        # As numbers: as text, 7 is more than 10.
        ("hr < 10", True),
        ("10 > hr", True),
        ("10 <= hr", False),
        ("hr = '7'", True),
        ('day >= 2026-01-31 and day < "2026-02-01"', True),
        ("day = date '2026-01-31'", True),
        ("(ds like '2026.*') and (hr = 1 or (hr = 7))", True),
        ("ds like '2025%'", False),
        ("ds like '2026'", False),
        ("hr = 1 and hr = 2 or hr = 7", True),
        ("hr = 7 or hr = 1 and hr = 2", True),
        ("hr in (1, 7)", True),
        # As Spark writes it.
        ('ds >= "2026" and (hr) in (1, 7)', True),
        ("(hr) not in (7)", False),
        ("hr not in (1, 7)", False),
        ("not hr in (1, 2)", True),
        ("hr between 7 and 9 and ds = '2026-01-31'", True),
        ("`hr` = 7", True),
        (r'ds = "2026-01-31\""', False),
    ],
)
def test_a_condition_means_what_it_says(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"ds = 'a\b'", "a\\b"),
        (r"ds in ('x', 'a\b')", "a\\b"),
        (r"ds like 'a\.*'", "a\\b"),
        (r"ds = 'a\\b'", "a\\\\b"),
        (r"ds = 'it\'s'", r"it\'s"),
        ('ds = "it\'s"', "it's"),
    ],
)
def test_a_backslash_is_a_letter_as_in_hive(text: str, value: str) -> None:
    assert holds(text, ds=value)


def test_no_value_is_only_itself() -> None:
    assert holds("ds = '__HIVE_DEFAULT_PARTITION__'", ds=partition_names.NOTHING)
    assert not holds("hr < 10", hr=partition_names.NOTHING)
    assert not holds("hr != 10", hr=partition_names.NOTHING)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("city = 'x'", "city is no partition key"),
        ("ds = ", "it ends too early"),
        ("ds", "it ends too early"),
        ("ds = 'x' hr = 7", "'hr' is not expected there"),
        ("(ds = 'x'", r"\) is missing before 'its end'"),
        ("ds = hr", "'hr' is no value"),
        ("hr like '7'", "like on hr, which is no text"),
        ("hr = 'seven'", "seven is no int, which hr is"),
        ("size > 1", r"size is a decimal\(3,1\), which no condition compares here"),
        ("ds ( 'x'", r"'\(' compares nothing"),
        ("ds = 'x' ; drop", "'; drop' is not understood"),
        ("(" * 300, "more than 200 parentheses"),
        ("not " * 300, "more than 200 parentheses"),
    ],
)
def test_what_is_not_understood_says_what(text: str, why: str) -> None:
    with pytest.raises(NotUnderstoodError, match=why):
        filters.parse(text, KEYS)


def test_a_value_that_is_none_of_its_type_says_so() -> None:
    with pytest.raises(NotUnderstoodError, match="seven is no int, which hr is"):
        holds("hr = 7", hr="seven")


@pytest.mark.parametrize("value", ["2026-01-31", "a=b/c", "%41", "ä☃", "it's {x}", "", "\\"])
def test_a_name_is_as_hive_makes_it_and_leads_back(value: str) -> None:
    name = partition_names.name(["DS", "k:y"], [value, "1"])
    assert name.startswith("ds=")
    assert partition_names.values(name) == [value or partition_names.NOTHING, "1"]
    assert partition_names.spec(name) == {"ds": value or partition_names.NOTHING, "k:y": "1"}
