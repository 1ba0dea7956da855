"""Each sentence of docs/guarantees.md names a test that exists where the page says, and who runs it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from lakehouse.run import ROOT
from tests.cluster import test_catalog_kills, test_kills, test_scale
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


def named() -> Iterator[Named]:
    """Give what each row names; `the same` is the file that was named last."""
    path, drill = Path(), False
    for row in ROWS:
        for part in row["tests"].split("; "):
            if file := FILE.search(part):
                path = ROOT / (file["path"] if "/" in file["path"] else f"{FOLDER}/{file['path']}")
                drill = bool(file["drill"])
            for test in TEST.findall(part) or [""] * bool(file):
                yield Named(row["sentence"], path, drill, test)


@pytest.mark.parametrize("one", list(named()), ids=lambda one: f"{one.path.name} {one.test}")
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


def test_what_is_killed_is_counted_as_the_seeds_are() -> None:
    killed = {one.test: one.sentence for one in named() if one.sentence.split(" | ")[0].isdigit()}
    runs = {
        test: len(mark.args[1])
        for place in (test_kills, test_catalog_kills, test_scale.TestTheFourth)
        for test, function in vars(place).items()
        for mark in getattr(function, "pytestmark", ())
        if test in killed and mark.name == "parametrize"
    }
    said = {test: int(sentence.split(" | ")[0]) for test, sentence in killed.items() if test}
    assert said == runs


def test_the_verbs_that_are_killed_are_those_that_the_seeds_choose() -> None:
    chosen = Counter(Random(seed).choice(test_kills.VERBS).words[:2] for seed in test_kills.SEEDS)  # noqa: S311 -- no secret
    [said] = {one.sentence for one in named() if one.test == "test_a_verb_is_completed_by_resume"}
    assert [int(number) for number in re.findall(r"\((\d+)\)", said)] == [
        chosen[words]
        for words in (
            ("restart", "trino"),
            ("restart", "datanode"),
            ("restart", "metastore"),
            ("backup",),
            ("restore", "--confirm"),
        )
    ]
