"""Each sentence of docs/guarantees.md names a test that exists where the page says, and who runs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lakehouse.run import ROOT
from tests.cluster import kills, test_catalog_kills, test_kills, test_scale
from tests.unit.known_tests import drills

PAGE = ROOT / "docs" / "guarantees.md"
ROW = re.compile(r"^\| (?P<sentence>.+) \| (?P<tests>.+) \|$", re.MULTILINE)
FILE = re.compile(r"`(?P<path>[\w/]+\.py)`(?P<drill> \(`make drills`\))?")
TEST = re.compile(r"`(test_\w+)`")
# Where nothing else is said.
FOLDER = "tests/cluster"
ROWS = [row for row in ROW.finditer(PAGE.read_text(encoding="utf-8")) if row["tests"] != "Test"]


class Named(NamedTuple):
    """A test that a sentence names, or all of a file where it is empty; whether it is said to be a drill."""

    sentence: str
    path: Path
    drill: bool
    test: str


def named_tests() -> Iterator[Named]:
    """Give what each row names; `the same` is the file that was named last."""
    path, drill = Path(), False
    for row in ROWS:
        for part in row["tests"].split("; "):
            if file := FILE.search(part):
                path = ROOT / (file["path"] if "/" in file["path"] else f"{FOLDER}/{file['path']}")
                drill = bool(file["drill"])
            for test in TEST.findall(part) or [""] * bool(file):
                yield Named(row["sentence"], path, drill, test)


@pytest.mark.parametrize("one", list(named_tests()), ids=lambda one: f"{one.path.name} {one.test}")
def test_a_sentence_names_a_test_that_exists_and_who_runs_it(one: Named) -> None:
    found = drills(one.path)
    marks = [found[one.test]] if one.test else list(found.values())
    assert marks, one.sentence
    assert set(marks) == {one.drill}, one.sentence


def test_every_sentence_says_where_its_test_is() -> None:
    assert len(ROWS) > 40
    for row in ROWS:
        for part in row["tests"].split("; "):
            assert FILE.search(part) or part.startswith("the same"), part


def test_what_is_killed_is_counted_as_the_drills_count_it() -> None:
    """By the most shares of a run that a test tries."""
    counts = {
        named.test: named.sentence.split(" | ")[0] for named in named_tests() if named.test in least_kills()
    }
    assert {test: int(count) for test, count in counts.items()} == least_kills()


def least_kills() -> dict[str, int]:
    """Return how many kills have to land, by test."""
    return {
        test: max((kills.least(len(shares)) for shares in tried(function)), default=kills.LEAST)
        for place in (test_kills, test_catalog_kills, test_scale.TestTheFourth)
        for test, function in vars(place).items()
        if test.startswith("test_") and test not in {"test_nothing_of_it_is_left"}
        if place is not test_scale.TestTheFourth or test.endswith("killed_at_any_moment")
    }


def tried(function: Callable[..., None]) -> Iterator[tuple[float, ...]]:
    """Give the shares that each case of a test tries, where it names them."""
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize" and "shares" in mark.args[0]:
            for case in mark.args[1]:
                yield case if mark.args[0] == "shares" else case[mark.args[0].index("shares")]


def test_the_verbs_that_are_killed_are_those_of_the_drill() -> None:
    [said] = {one.sentence for one in named_tests() if one.test == "test_a_verb_is_completed_by_resume"}
    names = {"restart datanode": "DataNodes", "restart trino": "Trino", "restart metastore": "metastore"}
    for words in test_kills.VERBS:
        assert names.get(" ".join(words[:2]), words[0]) in said
