"""Tests arranged by what they prove: engine and format down, operation across."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse.report.model import NONE, Case, Status


@dataclass(frozen=True)
class Cell:
    """All tests of one operation with one engine and format."""

    engine: str
    format: str
    operation: str
    cases: tuple[Case, ...]

    @property
    def row(self) -> tuple[str, str]:
        """Where it stands: engine and format."""
        return self.engine, self.format

    @property
    def status(self) -> Status:
        """The worst that happened."""
        return max((case.status for case in self.cases), key=lambda status: status.severity)

    @property
    def seconds(self) -> float:
        """What the tests took together."""
        return sum(case.seconds for case in self.cases)


@dataclass(frozen=True)
class Matrix:
    """Cells by row and operation; rows and operations in the order in which the tests first met them."""

    rows: tuple[tuple[str, str], ...]
    operations: tuple[str, ...]
    cells: tuple[Cell, ...]

    def cell(self, engine: str, table_format: str, operation: str) -> Cell | None:
        """Return the cell; None where nothing was tested."""
        key = (engine, table_format, operation)
        return next((cell for cell in self.cells if (cell.engine, cell.format, cell.operation) == key), None)


def of_tables(cases: Iterable[Case]) -> Matrix:
    """Arrange the tests that are about a table format."""
    return arrange([case for case in cases if case.format != NONE])


def of_services(cases: Iterable[Case]) -> Matrix:
    """Arrange the tests that are about none: services, their failures, other clients."""
    return arrange([case for case in cases if case.format == NONE])


def arrange(cases: Iterable[Case]) -> Matrix:
    """Arrange any tests."""
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.engine, case.format, case.operation), []).append(case)
    return Matrix(
        rows=tuple(dict.fromkeys((engine, table_format) for engine, table_format, _ in groups)),
        operations=tuple(dict.fromkeys(operation for _, _, operation in groups)),
        cells=tuple(Cell(*key, tuple(group)) for key, group in groups.items()),
    )
