"""The page of the drills tells what each file of them did last, and of none that is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakehouse import run
from lakehouse.dev import drills
from lakehouse.errors import LakehouseError
from tests.unit import known_tests

RESULTS = """\
<testsuites><testsuite tests="2" failures="1">
<testcase classname="x" name="test_a_node_dies[alpha1]" time="71.6">
<properties><property name="note" value="back in 51 s"/></properties></testcase>
<testcase classname="x" name="test_all_comes_back" time="3"><failure message="no">gone</failure></testcase>
</testsuite></testsuites>
"""
TODAY = "2026-11-25, commit 1234567, 2 cores"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page that is not there yet, and two drills that have results."""
    monkeypatch.setattr(drills, "_RESULTS", tmp_path)
    for name in ("scale", "kills"):
        drills.Drill(drills.NODES, name).results.write_text(RESULTS, encoding="utf-8")
    return tmp_path / "page.md"


def sections(page: Path) -> dict[str, list[str]]:
    """The lines below each heading, without what each table begins with."""
    parts = page.read_text(encoding="utf-8").split("\n## ")[1:]
    return {lines[0]: [line for line in lines[1:] if line] for lines in map(str.splitlines, parts)}


def test_a_section_says_when_what_and_how_it_ended(page: Path) -> None:
    drills.record(drills.Drill(drills.NODES, "scale"), TODAY, page)
    assert sections(page) == {
        "scale, on nodes": [
            f"{TODAY}.",
            "| Drill | Result | Took | Measured |",
            "|---|---|---|---|",
            "| a node dies (alpha1) | passed | 72 s | back in 51 s |",
            "| all comes back | failed | 3 s | - |",
        ]
    }


def test_the_sections_of_others_stay_in_the_order_of_a_run(page: Path) -> None:
    for name, when in {"scale": "yesterday", "kills": TODAY}.items():
        drills.record(drills.Drill(drills.NODES, name), when, page)
    before = sections(page)
    assert {title: lines[0] for title, lines in before.items()} == {
        "kills, on nodes": f"{TODAY}.",
        "scale, on nodes": "yesterday.",
    }
    drills.record(drills.Drill(drills.NODES, "scale"), TODAY, page)
    assert sections(page) == before | {"scale, on nodes": before["kills, on nodes"]}


def test_a_drill_that_is_gone_has_no_section(page: Path) -> None:
    page.write_text("# Drills\n\n## flights, on nodes\n\nyesterday.\n", encoding="utf-8")
    drills.record(drills.Drill(drills.NODES, "scale"), TODAY, page)
    assert list(sections(page)) == ["scale, on nodes"]


def test_without_results_the_page_stays(page: Path) -> None:
    page.write_text("the last", encoding="utf-8")
    with pytest.raises(LakehouseError, match=r"backup-junit\.xml is not a JUnit file"):
        drills.record(drills.Drill(drills.NODES, "backup"), TODAY, page)
    assert page.read_text(encoding="utf-8") == "the last"


def test_some_are_chosen_by_name_and_run_in_one_order() -> None:
    chosen = [(drill.where, drill.name) for drill in drills.named(["scale", "two_stacks", "kills"])]
    assert chosen == [(drills.NODES, "kills"), (drills.NODES, "scale"), (drills.COMPOSE, "two_stacks")]


def test_a_name_that_none_has_is_refused_with_the_one_that_was_meant() -> None:
    said = r"no drill is called scael \(did you mean scale\?\); next: ls tests/unit "
    with pytest.raises(LakehouseError, match=said):
        drills.named(["scael"])


def test_every_long_drill_is_run() -> None:
    files = (run.ROOT / "tests").glob("*/test_*.py")
    marked = {path for path in files if any(known_tests.drills(path).values())}
    assert {drill.path for drill in drills.named([])} == marked


def test_it_says_when_on_which_commit_and_machine() -> None:
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d, commit [0-9a-f]{7,}( with changes)?, \d+ cores, \d+ GiB, \S+, .+",
        drills.circumstances(),
    )


def test_each_row_is_a_drill_that_there_is() -> None:
    there = {drill.title: known_tests.drills(drill.path) for drill in drills.known()}
    gone = [
        f"{title}: {row}"
        for title, (_, _, _, *rows) in sections(drills.PAGE).items()
        for row in rows
        if not there[title].get(f"test_{re.sub(r' [(].*', '', row.split(' | ')[0][2:]).replace(' ', '_')}")
    ]
    assert not gone, "next: make drills"
