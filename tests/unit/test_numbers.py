"""What is promised and was measured: one file of numbers, and a page that says the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.dev import bench, drills, numbers
from lakehouse.dev.drills import Run
from lakehouse.dev.numbers import Number

TODAY = Run("2026-11-27", "1234567", "4 cores")
SMOKE = Number(
    "smoke", "how", (182.0,), "2026-11-26", "abcdef1", "2 cores", key="full seconds.smoke", unit="s", most=180
)


def test_the_page_has_the_numbers_of_the_file() -> None:
    page = numbers.PAGE.read_text(encoding="utf-8")
    assert numbers.with_table(page, numbers.load()) == page, "next: make docs"
    assert numbers.table(numbers.load()) in page


def test_each_key_is_one_number_s_and_each_missed_promise_says_why() -> None:
    keys = [one.key for one in numbers.load() if one.key]
    assert len(keys) == len({*keys})
    assert [one.name for one in numbers.load() if one.missed and not one.note] == []


@pytest.mark.parametrize(
    ("number", "promise", "result"),
    [
        (SMOKE, "at most 3 min 00 s", "3 min 02 s, **missed**"),
        (replace(SMOKE, measured=(179.0, 179.5)), "at most 3 min 00 s", "2 min 59 s to 3 min 00 s"),
        (replace(SMOKE, most=None, note="why"), "", "3 min 02 s; why"),
        (
            replace(SMOKE, unit="", most=None, least=1.3, measured=(1.5, 1.2)),
            "at least 1.30",
            "1.20 to 1.50, **missed**",
        ),
        (replace(SMOKE, unit="MiB", most=3072, measured=(1024,)), "at most 3.0 GiB", "1.0 GiB"),
    ],
)
def test_a_number_says_whether_its_promise_is_met(number: Number, promise: str, result: str) -> None:
    assert (number.promise, number.result) == (promise, result)


def test_what_a_benchmark_wrote_has_names() -> None:
    found = {"seconds": {"second run": 19.5, "smoke": 170}, "kit_by_floor": 1.4, "measured": "2026"}
    assert dict(numbers.flat("full ", found)) == {
        "full seconds.second run": 19.5,
        "full seconds.smoke": 170,
        "full kit_by_floor": 1.4,
    }


def test_a_run_replaces_what_it_has_measured_in_the_file_and_on_the_page(tmp_path: Path) -> None:
    file, page = tmp_path / "numbers.yml", tmp_path / "page.md"
    old = numbers.FILE.read_text(encoding="utf-8")
    file.write_text(old, encoding="utf-8")
    page.write_text("before\n<!-- numbers:start x -->\nold\n<!-- numbers:end -->\nafter\n", encoding="utf-8")
    numbers.record({}, TODAY, file, page)
    assert file.read_text(encoding="utf-8") == old
    numbers.record({"full seconds.smoke": 171.2, "unknown": 1}, TODAY, file, page)
    before, after = (numbers.load(path) for path in (numbers.FILE, file))
    [(was, now)] = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert now == replace(was, measured=(171.2,), day=TODAY.day, commit=TODAY.commit, machine=TODAY.machine)
    assert page.read_text(encoding="utf-8") == (
        f"before\n<!-- numbers:start x -->\n{numbers.table(after)}<!-- numbers:end -->\nafter\n"
    )
    assert "- 2026-11-27, 1234567: 4 cores\n" in numbers.table(after)


def test_a_benchmark_writes_its_file_and_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[object] = []
    monkeypatch.setattr(drills, "circumstances", lambda: TODAY)
    monkeypatch.setattr(numbers, "record", lambda *said: recorded.extend(said))
    bench.write(tmp_path / "bench" / "bench.json", "core", seconds={"smoke": 163}, kit_by_floor=1.4)
    written = json.loads((tmp_path / "bench" / "bench.json").read_text(encoding="utf-8"))
    assert (written["seconds"], written["kit_by_floor"]) == ({"smoke": 163}, 1.4)
    assert recorded == [{"core seconds.smoke": 163, "core kit_by_floor": 1.4}, TODAY]


def test_a_promise_that_a_test_holds_is_the_page_s() -> None:
    assert numbers.most("render of 50 hosts") == 40
    with pytest.raises(KeyError):
        numbers.most("render of 51 hosts")
