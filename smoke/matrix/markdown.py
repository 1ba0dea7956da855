"""The declarations as tables in the pages: what was executed, for a cell that goes otherwise fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from lakehouse import run
from smoke.matrix import cells, formats, operations
from smoke.matrix.cells import Cell, Expected
from smoke.matrix.formats import TableFormat

MARKS = {Expected.WORKS: "✓", Expected.WRONG: "!", Expected.REFUSED: "✕", Expected.ABSENT: "·"}
# Which formats a page shows, as one mark each in every field of its table.
PAGES = {
    run.ROOT / "README.md": (formats.ICEBERG, formats.DELTA),
    run.ROOT / "docs" / "matrix.md": (formats.HIVE_PARQUET, formats.HIVE_ORC),
}
_BLOCK = re.compile(r"(<!-- matrix:start[^\n]*-->\n).*?(<!-- matrix:end -->)", re.DOTALL)


def table(declared: Iterable[Cell], shown: tuple[TableFormat, ...]) -> str:
    """Return operations down and engines across; an engine that knows none of the formats is left out."""
    marks = {(cell.operation, cell.engine, cell.format): mark(cell) for cell in declared}
    absent = MARKS[Expected.ABSENT]
    engines = [
        engine
        for engine in cells.ENGINES
        if any(marks[each, engine, fmt] != absent for each in operations.OPERATIONS for fmt in shown)
    ]
    lines = [f"| | {' | '.join(engines)} |", "|---|" + "---|" * len(engines)]
    for each in operations.OPERATIONS:
        fields = (" ".join(marks[each, engine, fmt] for fmt in shown) for engine in engines)
        lines.append(f"| {each.name} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


def mark(cell: Cell) -> str:
    """Return a cell's mark; it leads to what explains the limit."""
    return f"[{MARKS[cell.expected]}]({cell.limit})" if cell.limit else MARKS[cell.expected]


def page(path: Path) -> str:
    """Return the page with its table as declared now."""
    wanted = table(cells.load(), PAGES[path])
    return _BLOCK.sub(lambda block: block[1] + wanted + block[2], path.read_text(encoding="utf-8"))


def main() -> int:
    """Write the pages."""
    for path in PAGES:
        path.write_text(page(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
