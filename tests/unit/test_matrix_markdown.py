"""The tables of the pages are the declarations."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from suites.matrix import cells, markdown, operations
from suites.matrix.cells import Cell, Expected
from suites.matrix.cross.views import VIEWS
from suites.testbed import formats

CELLS = cells.load()


@pytest.mark.parametrize("path", markdown.PAGES, ids=lambda path: path.name)
def test_the_page_is_what_is_declared(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in markdown.PAGES[path]:
        assert f"<!-- {name}:start" in text
    assert markdown.page(path) == text, "next: make docs"


def test_every_field_has_a_mark_for_every_format() -> None:
    lines = markdown.table(CELLS, (formats.ICEBERG, formats.DELTA)).partition("\n\n")[0].splitlines()
    assert len(lines) == 2 + len(operations.OPERATIONS)
    assert all(len(field.split()) == 2 for line in lines[2:] for field in line.split("|")[2:-1])


def test_every_mark_that_leads_somewhere_says_where_once() -> None:
    rows, _, addresses = markdown.table(CELLS, formats.FORMATS).partition("\n\n")
    found = re.findall(r"^\[([^\]]+)\]: https://", addresses, re.MULTILINE)
    assert len(found) == len(set(found))
    assert set(re.findall(r"\[[^\]]+\]\[([^\]]+)\]", rows)) == set(found)


def test_the_summary_counts_every_cell() -> None:
    numbers = [int(number) for number in re.findall(r"(\d+) \S", markdown.summary(CELLS))]
    assert sum(numbers) == len(CELLS)


def test_what_the_kit_withholds_is_listed_with_what_the_engine_itself_does() -> None:
    lines = markdown.withheld_table().splitlines()[2:]
    assert len(lines) == sum(cell.expected is Expected.WITHHELD for cell in CELLS)
    assert "| trino x delta, `delta.security: READ_ONLY` | drop | ✓ works |" in lines


def test_an_engine_without_the_formats_is_left_out() -> None:
    head = markdown.table(cells.load(), (formats.HIVE_ORC,)).splitlines()[0]
    assert "spark" in head
    assert "polars" not in head


def test_a_view_is_read_or_refused_with_a_link() -> None:
    lines = markdown.view_table().splitlines()
    assert len(lines) == 2 + len(VIEWS)
    fields = [field.strip() for line in lines[2:] for field in line.split("|")[2:-1]]
    assert "✓" in fields
    assert all(field == "✓" or field.startswith("[✕](https://github.com/") for field in fields)


def test_a_limit_is_a_link() -> None:
    cell = Cell("trino", formats.DELTA, operations.OPERATIONS[0], Expected.REFUSED, limit="https://x.test/1")
    assert markdown.mark(cell) == "[✕][x.test/1]"


def test_what_is_withheld_shows_the_engine_s_own_mark_behind() -> None:
    itself = Cell("trino", formats.DELTA, operations.OPERATIONS[1], Expected.WORKS)
    assert markdown.mark(replace(itself, expected=Expected.WITHHELD, behind=itself)) == "○✓"
