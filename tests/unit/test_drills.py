"""The page of the drills tells what the last run did, and of none that is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakehouse import run
from lakehouse.dev import drills
from lakehouse.errors import LakehouseError

RESULTS = """\
<testsuites><testsuite tests="2" failures="1">
<testcase classname="x" name="test_a_node_dies[alpha1]" time="71.6"/>
<testcase classname="x" name="test_all_comes_back" time="3"><failure message="no">gone</failure></testcase>
</testsuite></testsuites>
"""


def test_a_row_says_where_what_and_how_it_ended(tmp_path: Path) -> None:
    (tmp_path / "nodes-junit.xml").write_text(RESULTS, encoding="utf-8")
    page = tmp_path / "page.md"
    drills.write(tmp_path, page)
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| nodes")]
    assert rows == ["| nodes | a node dies | passed | 72 s |", "| nodes | all comes back | failed | 3 s |"]


def test_what_a_drill_has_measured_stands_below(tmp_path: Path) -> None:
    note = '<properties><property name="note" value="restarted in 251 s"/></properties>'
    (tmp_path / "nodes-junit.xml").write_text(
        RESULTS.replace('time="71.6"/>', f'time="71.6">{note}</testcase>')
    )
    page = tmp_path / "page.md"
    drills.write(tmp_path, page)
    said = page.read_text(encoding="utf-8").partition("What they have measured:")[2]
    assert said.strip() == "- a node dies: restarted in 251 s"


def test_it_says_when_on_which_commit_and_machine() -> None:
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d, commit [0-9a-f]{7,}( with changes)?, \d+ cores, \d+ GiB, \S+, .+",
        drills.circumstances(),
    )


def test_without_results_the_page_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("the last", encoding="utf-8")
    with pytest.raises(LakehouseError, match="no drill has run; next: make drills"):
        drills.write(tmp_path, page)
    assert page.read_text(encoding="utf-8") == "the last"


def test_each_row_is_a_drill_that_there_is() -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (run.ROOT / "tests").glob("*/test_*.py"))
    page = drills.PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:nodes|compose) \| (.+?) \|", page, re.MULTILINE)
    assert rows or page == drills.page([], "")
    gone = [row for row in rows if f"def test_{row.replace(' ', '_')}(" not in tests]
    assert not gone, "next: make drills"
