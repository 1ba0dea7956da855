"""The table of docs/security.md names tests that exist, and the text counts what it says."""

from __future__ import annotations

import re
from collections import Counter

from lakehouse.run import ROOT
from tests.unit.known_tests import functions

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
STATES = ("yes", "partly", "no", "n/a")
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(test_\w+)`")
SENTENCE = r"has (\d+) in full, (\d+) in part and not (\d+); (\d+) does? not apply"
COUNT = 20


def rows() -> list[tuple[str, ...]]:
    """Number, name, state and reason of every row."""
    return ROW.findall(PAGE.partition("<!-- controls -->")[2].partition("<!-- /controls -->")[0])


def test_every_row_is_there_once_with_a_state() -> None:
    assert [int(number) for number, *_ in rows()] == list(range(1, COUNT + 1))
    assert {state for _, _, state, _ in rows()} <= set(STATES)


def test_the_text_counts_what_the_table_says() -> None:
    counts = Counter(state for _, _, state, _ in rows())
    said = re.search(SENTENCE, PAGE)
    assert said
    assert tuple(map(int, said.groups())) == tuple(counts[state] for state in STATES)
    assert sum(counts.values()) == COUNT


def test_what_is_held_is_held_by_a_test_that_exists() -> None:
    named = {number: TEST.findall(reason) for number, _, _, reason in rows()}
    assert len(named) == COUNT
    missing = [(number, name) for number, names in named.items() for name in names if name not in functions()]
    assert missing == []
    without = [number for number, _, state, _ in rows() if state == "yes" and not named[number]]
    assert without == []
