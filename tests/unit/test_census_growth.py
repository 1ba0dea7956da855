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


CAPACITY = 600 * MIB


def sizes(*megabytes: int, days: float = 1.0) -> list[Size]:
    """Return censuses of tables whose files, in three copies, are all that HDFS has."""
    return [
        Size(int(number * days * DAY), 1, 1, size * MIB, CAPACITY - 3 * size * MIB)
        for number, size in enumerate(megabytes)
    ]


@given(st.integers(1, 1000), st.integers(0, 10**6), st.integers(2, 40))
def test_steady_growth_is_found_exactly(daily: int, free: int, runs: int) -> None:
    history = [Size(day * DAY, 1, 1, 1, (free + daily * (runs - day)) * MIB) for day in range(runs)]
    prediction = forecast(history)
    assert prediction is not None
    assert prediction.bytes_per_day == pytest.approx(daily * MIB)
    if free + daily < 3000 * daily:
        assert prediction.full_in_days == pytest.approx((free + daily) / daily)


def test_days_without_growth_count() -> None:
    """HDFS was filled for ten days, and for ten days not."""
    history = sizes(*range(11), *([10] * 10))
    prediction = forecast(history)
    assert prediction is not None
    assert prediction.bytes_per_day < 3 * MIB * 0.8


@pytest.mark.parametrize("free", [[None], [None, None], [5 * MIB, None]])
def test_a_namenode_that_did_not_answer_makes_no_forecast(free: list[int | None]) -> None:
    assert forecast([Size(day * DAY, 1, 1, 1, free_bytes) for day, free_bytes in enumerate(free)]) is None


@pytest.mark.parametrize("history", [[], sizes(1), sizes(1, 2, days=0.9)])
def test_less_than_a_day_makes_no_forecast(history: list[Size]) -> None:
    assert forecast(history) is None


@pytest.mark.parametrize(
    "history", [sizes(5, 5, 5), sizes(5, 4), [Size(0, 1, 1, 1, 10**15), Size(2 * DAY, 1, 1, 1, 10**15 - 1)]]
)
def test_hdfs_that_is_not_filled_in_ten_years_has_no_day(history: list[Size]) -> None:
    prediction = forecast(history)
    assert prediction is not None
    assert prediction.full_in_days is None
    assert "full" not in str(prediction)


def a_report(history: list[Size], **changed: Any) -> dict[str, Any]:
    row: Mapping[str, Any] = {"name": "iceberg", "table_count": 2, "files": 9, "size_bytes": 2 * MIB}
    return {
        "findings": [],
        **{name: [row] for name in ("formats", "versions", "databases", "owners")},
        "history": [vars(size) for size in history],
        **changed,
    }


def test_the_page_has_sizes_growth_and_findings_and_no_markup_of_names(program: Program) -> None:
    finding = {
        "code": "small_files", "severity": "warning", "storage_plugin": "iceberg", "workspace": "x",
        "table_name": "<b>t", "fact": "why", "files": 9, "size_bytes": MIB, "spark_sql": "CALL <script>",
    }  # fmt: skip
    page = census_page.render(program, a_report(sizes(1, 3, 5), findings=[finding]))
    assert "&lt;b&gt;t" in page
    assert "CALL &lt;script&gt;" in page
    assert "HDFS +6.0 MiB a day, full in 98 days" in page
    assert re.search(r"<b>98</b> days until HDFS is full", page)
    [points] = re.findall(r'<polyline points="([^"]+)"', page)
    assert points.split() == ["0.0,144.0", "580.0,72.0", "1160.0,0.0"]


def test_a_page_of_the_first_run_has_no_plot(program: Program) -> None:
    page = census_page.render(program, a_report(sizes(1)))
    assert "The plot begins with the second census." in page
    assert "Nothing was found." in page
    assert "<polyline" not in page


def test_the_last_line_of_a_report_has_the_forecast(program: Program) -> None:
    reply = census_program.Reply(Answer(0), a_report(sizes(1, 3)), "")
    assert "HDFS +6.0 MiB a day, full in 98 days" in census_program.result(program, reply, 1.0).last_line
