"""Each known failure is prevented, which a test that exists holds, or diagnosed by a check that exists."""

from __future__ import annotations

import re
from collections import Counter

from lakehouse.doctor import failures
from lakehouse.doctor.diagnosis import CHECKS
from lakehouse.run import ROOT
from tests.unit.known_tests import functions

KNOWN = failures.load()
PAGE = failures.PAGE.read_text(encoding="utf-8")
COUNT = 33


def test_every_failure_is_there_once() -> None:
    assert len({row.failure for row in KNOWN}) == len(KNOWN) == COUNT


def test_each_is_prevented_or_diagnosed_or_cannot_happen() -> None:
    without = [row.failure for row in KNOWN if bool(row.tests or row.checks) == bool(row.absent)]
    assert without == []


def test_what_prevents_it_is_held_by_a_test_that_exists() -> None:
    missing = [(row.failure, name) for row in KNOWN for name in row.tests if name not in functions()]
    assert missing == []


def test_what_diagnoses_it_is_a_check_that_exists() -> None:
    names = {check.name for check in CHECKS}
    missing = [(row.failure, name) for row in KNOWN for name in row.checks if name not in names]
    assert missing == []


def test_the_page_is_written_from_the_table() -> None:
    assert failures.page(KNOWN) == PAGE, "next: make docs"


def test_every_page_counts_what_the_table_says() -> None:
    states = Counter("absent" if row.absent else "held" for row in KNOWN)
    pages = [path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]]
    said = [
        found
        for page in pages
        for found in re.findall(r"(\d+) of (\d+)(?= known failures|: \d+ are prev)", page)
    ]
    assert len(said) >= 2
    assert set(said) == {(str(states["held"]), str(COUNT))}
    assert states["absent"] == COUNT - states["held"]
