"""The documentation stays short: pages, words, and the width of a line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakehouse.run import ROOT

DOCS = ROOT / "docs"
MOST_PAGES, MOST_WORDS, WIDTH = 40, 40_000, 160
# Pages that a command writes, with the file that writes them.
GENERATED = {
    "drills.md": "lakehouse/dev/drills.py",
    "failures.md": "lakehouse/doctor/failures.py",
    "ports.md": "lakehouse/dev/roledocs.py",
    "sizing.md": "lakehouse/sizing/page.py",
}
# Texts by hand that such a page is made of: they count as pages do.
TEMPLATES = [ROOT / "lakehouse/sizing/page.md"]
# A part of a page that a command writes.
BLOCK = re.compile(r"^<!-- (?P<name>\w+):start\b.*?^<!-- (?P=name):end -->$", re.DOTALL | re.MULTILINE)
# A row of a table is one line, and so is a link or a call in code.
LONG = re.compile(r"^\||`[^`]{80,}`|\]\([^)]{80,}\)")
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
# Decisions are held to a length of their own.
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if "decisions" not in path.parts and str(path.relative_to(DOCS)) not in GENERATED
)


def written(page: Path) -> str:
    """Return the part of a page that is written by hand."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def words(page: Path) -> int:
    """Count the words of a page that are written by hand."""
    return len(written(page).split())


def test_the_pages_are_at_most_so_many_with_so_many_words() -> None:
    counts = {str(page.relative_to(ROOT)): words(page) for page in (*PAGES, *TEMPLATES)}
    longest = sorted(counts.items(), key=lambda item: -item[1])
    total = sum(counts.values())
    pages = len(PAGES) + len(GENERATED)
    summary = f"{pages} pages, {total} words: {longest}"
    assert pages <= MOST_PAGES, summary
    assert total <= MOST_WORDS, summary


@pytest.mark.parametrize(
    "page", [*PAGES, *TEMPLATES, CONTRIBUTING], ids=lambda page: str(page.relative_to(ROOT))
)
def test_a_line_fits_into_a_window(page: Path) -> None:
    too_long = [line for line in written(page).splitlines() if len(line) > WIDTH and not LONG.search(line)]
    assert too_long == [], f"next: break these lines at {WIDTH} characters"


@pytest.mark.parametrize(("page", "source"), GENERATED.items())
def test_a_generated_page_names_what_writes_it(page: str, source: str) -> None:
    assert (DOCS / page).is_file()
    assert (ROOT / source).is_file()
