"""The declarations of `cells.yml`: the result of each operation by engine and format."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from lakehouse.errors import LakehouseError
from suites.matrix import operations, switches
from suites.matrix.operations import Operation
from suites.testbed import formats
from suites.testbed.formats import Format

PATH = Path(__file__).with_name("cells.yml")
ENGINES = ("spark", "trino", "flink", "pyiceberg", "delta-rs", "duckdb", "polars")
# In the place of an operation: all that are not named, for an engine that knows nothing of the format.
REST = "every other operation"
_EXPLANATIONS = ("limit", "design")
# What the engine itself does where the kit refuses.
_BEHIND = "behind"
_WORDS = "works, wrong, refused, withheld, absent"


class Design(StrEnum):
    """Why a cell is no limit that an upstream issue could explain: no project is to mend it."""

    FORMAT = "format"
    ENGINE = "engine"
    KIT = "kit"


class Expected(StrEnum):
    """What must happen."""

    WORKS = "works"
    WRONG = "wrong"
    REFUSED = "refused"
    WITHHELD = "withheld"
    ABSENT = "absent"


@dataclass(frozen=True)
class Cell:
    """One declaration.

    `reason` is a regular expression for what a refusal says or how a proof fails, or why there is no concept.
    `note` is the condition under which it works. `limit` is the address of what explains it, `design` a word
    of `Design` where nothing is to be explained. What the kit withholds is refused by a setting of the kit:
    `behind` is the same operation without that setting, so what the engine itself does.
    """

    engine: str
    format: Format
    operation: Operation
    expected: Expected
    reason: str = ""
    note: str = ""
    limit: str = ""
    design: str = ""
    behind: Cell | None = None

    @property
    def refuses(self) -> bool:
        """Whether it must end in an error and leave the table alone."""
        return self.expected in {Expected.REFUSED, Expected.WITHHELD}

    def properties(self) -> list[tuple[str, str]]:
        """Return the properties of the cell in the JUnit file, without empty ones."""
        values = {
            "engine": self.engine,
            "format": self.format.name,
            "operation": self.operation.name,
            "expected": self.expected.value,
            "reason": self.reason,
            "note": self.note,
            "limit": self.limit,
            "design": self.design,
        }
        return [(name, value) for name, value in values.items() if value]

    def __str__(self) -> str:
        return f"{self.engine}-{self.format}-{self.operation.slug}"


def load(path: Path = PATH) -> tuple[Cell, ...]:
    """Return every cell, in the order engine, format, operation.

    Raises LakehouseError with one line that names the place when a combination is declared never or twice, a
    name is unknown, or a declaration is none.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Strict)  # noqa: S506 -- a SafeLoader
    except (OSError, yaml.YAMLError) as error:
        line = " ".join(str(error).split())
        raise LakehouseError(f"{path.name} cannot be read: {line}", f"less {path}") from None
    cells = {(cell.engine, cell.format, cell.operation): cell for cell in _cells(path.name, data)}
    combinations = list(product(ENGINES, formats.FORMATS, operations.OPERATIONS))
    for engine, fmt, operation in combinations:
        if (engine, fmt, operation) not in cells:
            raise _error(path.name, f"{engine}.{fmt}", f"lacks {operation.name!r}")
    return tuple(cells[key] for key in combinations)


class _Strict(yaml.SafeLoader):
    """YAML in which a key stands once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"{key!r} twice in line {node.start_mark.line + 1} and below")
        return super().construct_mapping(node, deep)


def _cells(file: str, data: object) -> Iterator[Cell]:
    for engine, by_format in _members(file, "", data, ENGINES):
        for name, by_operation in _members(file, engine, by_format, formats.BY_NAME):
            where = f"{engine}.{name}"
            names = (REST, *operations.BY_NAME)
            declared = dict(_members(file, where, by_operation, names))
            for operation in operations.OPERATIONS:
                if declaration := declared.get(operation.name, declared.get(REST)):
                    yield _cell(file, engine, formats.BY_NAME[name], operation, declaration)


def _members(file: str, where: str, data: object, allowed: Collection[str]) -> Iterator[tuple[str, object]]:
    if not isinstance(data, dict):
        raise _error(file, where, f"is {data!r}, expected keys and values")
    for key, value in data.items():
        if key not in allowed:
            raise _error(file, where, f"has {key!r}, expected one of: {', '.join(allowed)}")
        yield key, value


def _cell(file: str, engine: str, fmt: Format, operation: Operation, declared: object) -> Cell:
    where = f"{engine}.{fmt}.{operation.name}"
    if declared == Expected.WORKS:
        return Cell(engine, fmt, operation, Expected.WORKS)
    if not isinstance(declared, dict) or not all(
        isinstance(text, str) for key, text in declared.items() if key != _BEHIND
    ):
        raise _error(
            file,
            where,
            f"is {declared!r}, expected works, or wrong, refused, withheld or absent with a reason",
        )
    unknown_keys = [key for key in declared if key not in {*Expected, *_EXPLANATIONS, _BEHIND}]
    outcomes = [outcome for outcome in Expected if outcome in declared]
    if unknown_keys:
        raise _error(file, where, f"has {unknown_keys[0]!r}, expected {_WORDS}, behind, limit or design")
    if len(outcomes) != 1:
        raise _error(file, where, f"must be one of: {_WORDS}")
    outcome = outcomes[0]
    text = declared[outcome]
    if not text:
        raise _error(file, where, f"is {outcome} without a word why")
    limit, design = _why(file, where, declared)
    behind = _behind(file, engine, fmt, operation, declared)
    if outcome is Expected.WORKS:
        return Cell(engine, fmt, operation, outcome, note=text, limit=limit, design=design)
    if outcome is not Expected.ABSENT:
        _compiled(file, where, text)
    return Cell(engine, fmt, operation, outcome, reason=text, limit=limit, design=design, behind=behind)


def _behind(
    file: str, engine: str, fmt: Format, operation: Operation, declared: Mapping[str, object]
) -> Cell | None:
    """Return the same operation without the kit's setting; None where the kit withholds nothing."""
    where = f"{engine}.{fmt}.{operation.name}"
    if (Expected.WITHHELD in declared) != (_BEHIND in declared):
        raise _error(file, where, "has one of withheld and behind, expected both or none")
    if _BEHIND not in declared:
        return None
    switch = switches.of(engine, fmt)
    if switch is None:
        raise _error(file, where, "is withheld by no setting in suites/matrix/switches.py")
    cell = _cell(file, engine, switch.format, operation, declared[_BEHIND])
    if cell.expected in {Expected.WITHHELD, Expected.ABSENT}:
        raise _error(file, where, f"is {cell.expected} behind the setting, expected works, wrong or refused")
    return cell


def _why(file: str, where: str, declared: Mapping[str, Any]) -> tuple[str, str]:
    """Return the explanation, an address and a word, of which one at least is empty."""
    limit, design = (declared.get(key, "") for key in _EXPLANATIONS)
    if limit and design:
        raise _error(file, where, "has a limit and a design, expected one of them")
    if limit and not limit.startswith("https://"):
        raise _error(file, where, f"has the limit {limit!r}, expected an address")
    if design and design not in set(Design):
        raise _error(file, where, f"has the design {design!r}, expected {', '.join(Design)}")
    return limit, design


def _compiled(file: str, where: str, expression: str) -> None:
    try:
        re.compile(expression)
    except re.error as error:
        raise _error(file, where, f"has {expression!r}, which is no regular expression: {error}") from None


def _error(file: str, where: str, problem: str) -> LakehouseError:
    return LakehouseError(f"{file}: {where or 'the file'} {problem}", f"edit suites/matrix/{file}")
