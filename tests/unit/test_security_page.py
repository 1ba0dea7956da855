"""The tables of docs/security.md name tests that exist, and the text counts what they say."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from lakehouse.run import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
STATES = ("yes", "partly", "no", "n/a")
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(test_\w+)`")
SENTENCES = {
    "controls": r"has (\d+) in full, (\d+) in part and not (\d+); (\d+) does? not apply",
    "failures": r"prevents or diagnoses (\d+), (\d+) in part and not (\d+);\s+(\d+) do not apply",
}
each_table = pytest.mark.parametrize(("table", "rows"), [("controls", 20), ("failures", 33)])


def rows_of(table: str) -> list[tuple[str, ...]]:
    """Number, name, state and reason of every row."""
    return ROW.findall(PAGE.partition(f"<!-- {table} -->")[2].partition(f"<!-- /{table} -->")[0])


@cache
def functions() -> frozenset[str]:
    """Every test function of the repository."""
    paths = [path for top in ("matrix", "smoke", "tests") for path in (ROOT / top).rglob("*.py")]
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return frozenset(name for text in texts for name in re.findall(r"def (test_\w+)\(", text))


@each_table
def test_every_row_is_there_once_with_a_state(table: str, rows: int) -> None:
    found = rows_of(table)
    assert [int(number) for number, *_ in found] == list(range(1, rows + 1))
    assert {state for _, _, state, _ in found} <= set(STATES)


@each_table
def test_the_text_counts_what_the_table_says(table: str, rows: int) -> None:
    counts = Counter(state for _, _, state, _ in rows_of(table))
    said = re.search(SENTENCES[table], PAGE)
    assert said
    assert tuple(map(int, said.groups())) == tuple(counts[state] for state in STATES)
    assert sum(counts.values()) == rows


@each_table
def test_what_is_held_is_held_by_a_test_that_exists(table: str, rows: int) -> None:
    named = {number: TEST.findall(reason) for number, _, _, reason in rows_of(table)}
    assert len(named) == rows
    missing = [(number, name) for number, names in named.items() for name in names if name not in functions()]
    assert missing == []
    without = [number for number, _, state, _ in rows_of(table) if state == "yes" and not named[number]]
    assert without == []
