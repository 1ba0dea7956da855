"""The tables of the pages are the declarations."""

from __future__ import annotations

from pathlib import Path

import pytest

from smoke.matrix import cells, formats, markdown, operations
from smoke.matrix.cells import Cell, Expected
from smoke.matrix.cross.views import VIEWS


@pytest.mark.parametrize("path", markdown.PAGES, ids=lambda path: path.name)
def test_the_page_is_what_is_declared(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert f"<!-- {markdown.PAGES[path][0]}:start" in text
    assert markdown.page(path) == text, "next: make docs"


def test_every_field_has_a_mark_for_every_format() -> None:
    lines = markdown.table(cells.load(), (formats.ICEBERG, formats.DELTA)).splitlines()
    assert len(lines) == 2 + len(operations.OPERATIONS)
    assert all(len(field.split()) == 2 for line in lines[2:] for field in line.split("|")[2:-1])


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
    assert markdown.mark(cell) == "[✕](https://x.test/1)"
