"""The declarations as tables of the pages: executed facts, since a cell with another result fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lakehouse import run
from suites.matrix import cells, operations, switches
from suites.matrix.cells import Cell, Expected
from suites.matrix.cross.access import table as access
from suites.matrix.cross.views import READERS, VIEWS
from suites.testbed import formats
from suites.testbed.formats import Format

MARKS = {
    Expected.WORKS: "✓",
    Expected.WRONG: "!",
    Expected.REFUSED: "✕",
    Expected.WITHHELD: "○",
    Expected.ABSENT: "·",
}


def summary(declared: Iterable[Cell]) -> str:
    """Return a table of engines by formats, with the number of operations for each result."""
    declarations = tuple(declared)
    lines = [f"| | {' | '.join(map(str, formats.FORMATS))} |", "|---|" + "---|" * len(formats.FORMATS)]
    for engine in cells.ENGINES:
        fields = []
        for fmt in formats.FORMATS:
            kinds = [cell.expected for cell in declarations if (cell.engine, cell.format) == (engine, fmt)]
            fields.append(" ".join(f"{kinds.count(kind)} {MARKS[kind]}" for kind in MARKS if kind in kinds))
        lines.append(f"| {engine} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


def table(declared: Iterable[Cell], table_formats: tuple[Format, ...]) -> str:
    """Return a table of operations by engines, followed by the links of the marks.

    Engines without a working operation are excluded.
    """
    declarations = [cell for cell in declared if cell.format in table_formats]
    marks = {(cell.operation, cell.engine, cell.format): mark(cell) for cell in declarations}
    able = {cell.engine for cell in declarations if cell.expected is Expected.WORKS}
    engines = [engine for engine in cells.ENGINES if engine in able]
    lines = [f"| | {' | '.join(engines)} |", "|---|" + "---|" * len(engines)]
    for operation in operations.OPERATIONS:
        fields = (" ".join(marks[operation, engine, fmt] for fmt in table_formats) for engine in engines)
        lines.append(f"| {operation.name} | {' | '.join(fields)} |")
    limits = sorted({cell.limit for cell in declarations if cell.limit and cell.engine in able}, key=label)
    return "\n".join([*lines, "", *(f"[{label(limit)}]: {limit}" for limit in limits)]) + "\n"


def withheld_table() -> str:
    """Return what the kit withholds: the operation, the setting, and what the engine itself does."""
    lines = ["| | Operation | Without the setting |", "|---|---|---|"]
    for cell in cells.load():
        switch = switches.of(cell.engine, cell.format)
        if cell.behind and switch:
            itself = cell.behind
            words = f": `{itself.reason}`" if itself.reason else f", {itself.note}" if itself.note else ""
            words += f" ([{label(itself.limit)}]({itself.limit}))" if itself.limit else ""
            where = f"{cell.engine} x {cell.format}, `{switch.setting}`"
            lines.append(
                f"| {where} | {cell.operation.name} | {MARKS[itself.expected]} {itself.expected}{words} |"
            )
    return "\n".join(lines) + "\n"


def view_table() -> str:
    """Return a table of kinds of views by readers."""
    lines = [f"| Made by | {' | '.join(READERS)} |", "|---|" + "---|" * len(READERS)]
    for view in VIEWS:
        limits = (view.refused.get(reader) for reader in READERS)
        fields = (linked(limit.expected, limit.link) if limit else linked(Expected.WORKS) for limit in limits)
        lines.append(f"| {view.label} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


def mark(cell: Cell) -> str:
    """Return a cell's mark, which leads to what explains the limit; behind the kit's is the engine's own."""
    text = MARKS[cell.expected] + (MARKS[cell.behind.expected] if cell.behind else "")
    return f"[{text}][{label(cell.limit)}]" if cell.limit else text


def label(limit: str) -> str:
    """Return the label of a link.

    >>> label("https://github.com/trinodb/trino/issues/18829")
    'trino#18829'
    """
    if match := re.fullmatch(r"https://github\.com/[^/]+/([^/]+)/(?:issues|pull)/(\d+)", limit):
        return f"{match[1]}#{match[2]}"
    return limit.removeprefix("https://")


def linked(expected: Expected, limit: str = "") -> str:
    """Return a mark that leads to what explains the limit."""
    return f"[{MARKS[expected]}]({limit})" if limit else MARKS[expected]


def _of_formats(*table_formats: Format) -> Callable[[], str]:
    """Return a function that writes a table with a mark for each of these formats in every field."""
    return lambda: table(cells.load(), table_formats)


# Which blocks a page has, and who makes what is in them.
PAGES: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    run.ROOT / "README.md": {"matrix": lambda: summary(cells.load())},
    run.ROOT / "docs" / "matrix.md": {
        "matrix": _of_formats(formats.ICEBERG, formats.DELTA),
        "hive": _of_formats(formats.HIVE_PARQUET, formats.HIVE_ORC),
        "withheld": withheld_table,
    },
    run.ROOT / "docs" / "across-engines.md": {"views": view_table},
    run.ROOT / "docs" / "security.md": {"access": access.markdown},
}


def page(path: Path) -> str:
    """Return the page with its blocks as declared now."""
    text = path.read_text(encoding="utf-8")
    for name, make in PAGES[path].items():
        text = written(text, name, make())
    return text


def written(text: str, name: str, content: str) -> str:
    """Return the text with new content of the named block."""
    block = re.compile(rf"(<!-- {name}:start[^\n]*-->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    return block.sub(lambda match: match[1] + content + match[2], text)


def main() -> int:
    """Write the pages."""
    for path in PAGES:
        path.write_text(page(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
