"""The declarations as tables in the pages: what was executed, for a cell that goes otherwise fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lakehouse import run
from smoke.matrix import cells, formats, operations
from smoke.matrix.cells import Cell, Expected
from smoke.matrix.cross.views import READERS, VIEWS
from smoke.matrix.formats import TableFormat

MARKS = {
    Expected.WORKS: "✓",
    Expected.WRONG: "!",
    Expected.REFUSED: "✕",
    Expected.WITHHELD: "○",
    Expected.ABSENT: "·",
}


def table(declared: Iterable[Cell], shown: tuple[TableFormat, ...]) -> str:
    """Return operations down and engines across; an engine with which nothing works is left out."""
    known = tuple(declared)
    marks = {(cell.operation, cell.engine, cell.format): mark(cell) for cell in known}
    able = {cell.engine for cell in known if cell.format in shown and cell.expected is Expected.WORKS}
    engines = [engine for engine in cells.ENGINES if engine in able]
    lines = [f"| | {' | '.join(engines)} |", "|---|" + "---|" * len(engines)]
    for each in operations.OPERATIONS:
        fields = (" ".join(marks[each, engine, fmt] for fmt in shown) for engine in engines)
        lines.append(f"| {each.name} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


def view_table() -> str:
    """Return kinds of views down and their readers across."""
    lines = [f"| Made by | {' | '.join(READERS)} |", "|---|" + "---|" * len(READERS)]
    for view in VIEWS:
        limits = (view.refused.get(reader) for reader in READERS)
        fields = (linked(each.expected, each.link) if each else linked(Expected.WORKS) for each in limits)
        lines.append(f"| {view.says} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


def mark(cell: Cell) -> str:
    """Return a cell's mark."""
    return linked(cell.expected, cell.limit)


def linked(expected: Expected, limit: str = "") -> str:
    """Return a mark that leads to what explains the limit."""
    return f"[{MARKS[expected]}]({limit})" if limit else MARKS[expected]


def _of_formats(*shown: TableFormat) -> Callable[[], str]:
    """Return the maker of a table with one mark for each of these formats in every field."""
    return lambda: table(cells.load(), shown)


# Which block a page has, and who makes the table in it.
PAGES: Mapping[Path, tuple[str, Callable[[], str]]] = {
    run.ROOT / "README.md": ("matrix", _of_formats(formats.ICEBERG, formats.DELTA)),
    run.ROOT / "docs" / "matrix.md": ("matrix", _of_formats(formats.HIVE_PARQUET, formats.HIVE_ORC)),
    run.ROOT / "docs" / "across-engines.md": ("views", view_table),
}


def page(path: Path) -> str:
    """Return the page with its table as declared now."""
    name, make = PAGES[path]
    block = re.compile(rf"(<!-- {name}:start[^\n]*-->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    wanted = make()
    return block.sub(lambda found: found[1] + wanted + found[2], path.read_text(encoding="utf-8"))


def main() -> int:
    """Write the pages."""
    for path in PAGES:
        path.write_text(page(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
