"""The page of the drills tells what each file of them did last, and of none that is gone."""

from __future__ import annotations

import re
from dataclasses import replace
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
TODAY = drills.Run("2026-11-25", "1234567", "2 cores")
TESTS = """import pytest

pytestmark = [pytest.mark.longdrill]

def test_a_node_dies(): {0}
def test_all_comes_back(): pass
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page that is not there yet, and two drills that have results."""
    monkeypatch.setattr(drills, "_RESULTS", tmp_path)
    monkeypatch.setattr(drills, "_TESTS", tmp_path)
    (tmp_path / "cluster").mkdir()
    for name in ("scale", "kills"):
        one = drills.Drill(drills.NODES, name)
        one.results.write_text(RESULTS, encoding="utf-8")
        one.path.write_text(TESTS.format("pass"), encoding="utf-8")
    return tmp_path / "page.md"


def sections(page: Path) -> dict[str, list[str]]:
    """The lines below each heading, without what each table begins with."""
    parts = page.read_text(encoding="utf-8").split("\n## ")[1:]
    return {lines[0]: [line for line in lines[1:] if line] for lines in map(str.splitlines, parts)}


def test_a_section_says_when_what_and_how_it_ended(page: Path) -> None:
    scale = drills.Drill(drills.NODES, "scale")
    drills.record(scale, TODAY, page)
    dies, comes = scale.tests.values()
    assert sections(page) == {
        "scale, on nodes": [
            "2 cores.",
            "| Drill | Result | Took | Run | Commit | Measured | Test |",
            "|---|---|---|---|---|---|---|",
            f"| a node dies (alpha1) | passed | 72 s | 2026-11-25 | 1234567 | back in 51 s | {dies} |",
            f"| all comes back | failed | 3 s | 2026-11-25 | 1234567 | - | {comes} |",
        ]
    }


def test_the_rows_of_others_stay_in_the_order_of_a_run(page: Path) -> None:
    for name, day in {"scale": "2026-11-24", "kills": "2026-11-25"}.items():
        drills.record(drills.Drill(drills.NODES, name), replace(TODAY, day=day), page)
    before = sections(page)
    assert list(before) == ["kills, on nodes", "scale, on nodes"]
    drills.record(drills.Drill(drills.NODES, "scale"), TODAY, page)
    assert sections(page) == before | {"scale, on nodes": before["kills, on nodes"]}


def test_a_test_that_runs_alone_leaves_the_rows_of_its_file(page: Path) -> None:
    scale = drills.Drill(drills.NODES, "scale")
    drills.record(scale, TODAY, page)
    alone = re.sub(
        r"<testcase classname=\"x\" name=\"test_a.*?</testcase>\n", "", RESULTS, count=1, flags=re.S
    )
    scale.results.write_text(alone, encoding="utf-8")
    drills.record(scale, replace(TODAY, day="2026-11-26"), page)
    days = [row.split(" | ")[3] for row in sections(page)["scale, on nodes"][3:]]
    assert days == ["2026-11-25", "2026-11-26"]


def test_a_drill_is_due_until_each_of_its_tests_has_passed_as_it_is(page: Path) -> None:
    scale, kills = (drills.Drill(drills.NODES, name) for name in ("scale", "kills"))
    both = ["test_a_node_dies", "test_all_comes_back"]
    assert drills.due(page) == {kills: both, scale: both}
    drills.record(scale, TODAY, page)
    assert drills.due(page) == {kills: both, scale: both[1:]}
    scale.results.write_text(re.sub("<failure.*</failure>", "", RESULTS), encoding="utf-8")
    drills.record(scale, TODAY, page)
    assert drills.due(page) == {kills: both}
    scale.path.write_text(TESTS.format("assert True"), encoding="utf-8")
    assert drills.due(page) == {kills: both, scale: both[:1]}


def test_a_drill_that_is_gone_has_no_section(page: Path) -> None:
    page.write_text("# Drills\n\n## flights, on nodes\n\n2 cores.\n", encoding="utf-8")
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
    now = drills.circumstances()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d, [0-9a-f]{7,}( with changes)?, \d+ cores, \d+ GiB, \S+, .+",
        f"{now.day}, {now.commit}, {now.machine}",
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
