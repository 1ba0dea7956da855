"""The declarations as tables in the pages: what was executed, for a cell that goes otherwise fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lakehouse import run
from matrix import cells, operations, switches
from matrix.cells import Cell, Expected
from matrix.cross.access import table as access
from matrix.cross.views import READERS, VIEWS
from testbed import formats
from testbed.formats import Format

MARKS = {
    Expected.WORKS: "✓",
    Expected.WRONG: "!",
    Expected.REFUSED: "✕",
    Expected.WITHHELD: "○",
    Expected.ABSENT: "·",
}


def summary(declared: Iterable[Cell]) -> str:
    """Return engines down and formats across, with how many operations end in which way."""
    known = tuple(declared)
    lines = [f"| | {' | '.join(map(str, formats.FORMATS))} |", "|---|" + "---|" * len(formats.FORMATS)]
    for engine in cells.ENGINES:
        fields = []
        for fmt in formats.FORMATS:
            found = [cell.expected for cell in known if (cell.engine, cell.format) == (engine, fmt)]
            fields.append(" ".join(f"{found.count(kind)} {MARKS[kind]}" for kind in MARKS if kind in found))
        lines.append(f"| {engine} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


def table(declared: Iterable[Cell], shown: tuple[Format, ...]) -> str:
    """Return operations down and engines across, then what the marks lead to.

    An engine with which nothing works is left out.
    """
    known = [cell for cell in declared if cell.format in shown]
    marks = {(cell.operation, cell.engine, cell.format): mark(cell) for cell in known}
    able = {cell.engine for cell in known if cell.expected is Expected.WORKS}
    engines = [engine for engine in cells.ENGINES if engine in able]
    lines = [f"| | {' | '.join(engines)} |", "|---|" + "---|" * len(engines)]
    for each in operations.OPERATIONS:
        fields = (" ".join(marks[each, engine, fmt] for fmt in shown) for engine in engines)
        lines.append(f"| {each.name} | {' | '.join(fields)} |")
    limits = sorted({cell.limit for cell in known if cell.limit and cell.engine in able}, key=label)
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
    """Return kinds of views down and their readers across."""
    lines = [f"| Made by | {' | '.join(READERS)} |", "|---|" + "---|" * len(READERS)]
    for view in VIEWS:
        limits = (view.refused.get(reader) for reader in READERS)
        fields = (linked(each.expected, each.link) if each else linked(Expected.WORKS) for each in limits)
        lines.append(f"| {view.says} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


def mark(cell: Cell) -> str:
    """Return a cell's mark, which leads to what explains the limit; behind the kit's is the engine's own."""
    text = MARKS[cell.expected] + (MARKS[cell.behind.expected] if cell.behind else "")
    return f"[{text}][{label(cell.limit)}]" if cell.limit else text


def label(limit: str) -> str:
    """Return what a page calls an address.

    >>> label("https://github.com/trinodb/trino/issues/18829")
    'trino#18829'
    """
    if found := re.fullmatch(r"https://github\.com/[^/]+/([^/]+)/(?:issues|pull)/(\d+)", limit):
        return f"{found[1]}#{found[2]}"
    return limit.removeprefix("https://")


def linked(expected: Expected, limit: str = "") -> str:
    """Return a mark that leads to what explains the limit."""
    return f"[{MARKS[expected]}]({limit})" if limit else MARKS[expected]


def _of_formats(*shown: Format) -> Callable[[], str]:
    """Return the maker of a table with one mark for each of these formats in every field."""
    return lambda: table(cells.load(), shown)


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


def written(text: str, name: str, wanted: str) -> str:
    """Return the text with this in its block of that name."""
    block = re.compile(rf"(<!-- {name}:start[^\n]*-->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    return block.sub(lambda found: found[1] + wanted + found[2], text)


def main() -> int:
    """Write the pages."""
    for path in PAGES:
        path.write_text(page(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
