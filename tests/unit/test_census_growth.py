"""Growth of tables, the forecast, and the page that has both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.census.growth import Size, forecast
from lakehouse.maybe import Answer
from lakehouse.model import inventory, placement
from lakehouse.run import ROOT
from lakehouse.tables import census_page, census_program
from lakehouse.tables.census_program import Program

DAY = 24 * 3600 * 1000
MIB = 1 << 20


@pytest.fixture(scope="module")
def program() -> Program:
    return census_program.reporter(placement.read(inventory.load(str(ROOT / "tests/inventory"))))


def sizes(*megabytes: int, days: float = 1.0) -> list[Size]:
    return [Size(int(number * days * DAY), 1, 1, size * MIB) for number, size in enumerate(megabytes)]


@given(st.integers(1, 1000), st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 3))
def test_steady_growth_is_found_exactly(daily: int, first: int, runs: int, replication: int) -> None:
    prediction = forecast(sizes(*(first + daily * run for run in range(runs))), 600 * MIB, replication)
    assert prediction is not None
    assert prediction.bytes_per_day == pytest.approx(daily * MIB)
    assert prediction.full_in_days == pytest.approx(600 / replication / daily)


@pytest.mark.parametrize("history", [[], sizes(1), sizes(1, 2, days=0.9)])
def test_less_than_a_day_makes_no_forecast(history: list[Size]) -> None:
    assert forecast(history, MIB, 3) is None


@pytest.mark.parametrize("history", [sizes(5, 5, 5), sizes(5, 4)])
def test_tables_that_do_not_grow_fill_nothing(history: list[Size]) -> None:
    prediction = forecast(history, MIB, 3)
    assert prediction is not None
    assert prediction.full_in_days is None
    assert "full" not in str(prediction)


def a_report(history: list[Size], **changed: Any) -> dict[str, Any]:
    row: Mapping[str, Any] = {"name": "iceberg", "tables": 2, "files": 9, "bytes": 2 * MIB}
    return {
        "findings": [],
        **{name: [row] for name in ("formats", "versions", "databases", "owners")},
        "history": [vars(size) for size in history],
        "free_bytes": 600 * MIB,
        **changed,
    }


def test_the_page_has_sizes_growth_and_findings_and_no_markup_of_names(program: Program) -> None:
    finding = {
        "code": "small_files", "severity": "warning", "storage_plugin": "iceberg", "workspace": "x",
        "table_name": "<b>t", "fact": "why", "files": 9, "bytes": MIB, "statement": "CALL <script>",
    }  # fmt: skip
    page = census_page.render(program, a_report(sizes(1, 3, 5), findings=[finding]))
    assert "&lt;b&gt;t" in page
    assert "CALL &lt;script&gt;" in page
    assert "+2.0 MiB a day, HDFS is full in 100 days" in page
    assert re.search(r"<b>100</b> days until HDFS is full", page)
    [points] = re.findall(r'<polyline points="([^"]+)"', page)
    assert points.split() == ["0.0,144.0", "580.0,72.0", "1160.0,0.0"]


def test_a_page_of_the_first_run_has_no_plot(program: Program) -> None:
    page = census_page.render(program, a_report(sizes(1)))
    assert "One census so far." in page
    assert "No table needs work." in page
    assert "<polyline" not in page


def test_the_last_line_of_a_report_has_the_forecast(program: Program) -> None:
    reply = census_program.Reply(Answer(0), a_report(sizes(1, 3)), "")
    assert "HDFS is full in 100 days" in census_program.result(program, reply, 1.0).last_line
