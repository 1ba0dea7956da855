"""What is promised and was measured last, `docs/numbers.yml`, as data and as a table of a page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from lakehouse import run, yamlfile
from lakehouse.dev.drills import Run
from lakehouse.report import text

FILE = run.ROOT / "docs" / "numbers.yml"
PAGE = run.ROOT / "docs" / "benchmarks.md"
_NUMBERS = "numbers"
_BLOCK = re.compile(rf"(<!-- {_NUMBERS}:start[^\n]*-->\n).*?(<!-- {_NUMBERS}:end -->)", re.DOTALL)


@dataclass(frozen=True)
class Number:
    """A number with what was measured last, in seconds, MiB, or without a unit.

    `most` or `least` is what is promised, if anything is; `key` names it in what a benchmark writes, and is
    empty for what a person measures. `note` says why a promise is missed, or what else one has to know.
    """

    name: str
    how: str
    measured: tuple[float, ...]
    day: str
    commit: str
    machine: str
    key: str = ""
    unit: str = ""
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def missed(self) -> bool:
        """Whether a measurement breaks the promise."""
        above = self.most is not None and max(self.measured) > self.most
        return above or (self.least is not None and min(self.measured) < self.least)

    @property
    def promise(self) -> str:
        """Return the promise for people; empty where there is none."""
        if self.most is not None:
            return f"at most {self.shown(self.most)}"
        return "" if self.least is None else f"at least {self.shown(self.least)}"

    @property
    def result(self) -> str:
        """Return what was measured for people, and whether that is not what is promised."""
        values = dict.fromkeys(map(self.shown, (min(self.measured), max(self.measured))))
        parts = [" to ".join(values) + (", **missed**" if self.missed else ""), self.note]
        return "; ".join(filter(None, parts))

    @property
    def run(self) -> str:
        """Return the day and the commit of the run."""
        return f"{self.day}, {self.commit}"

    def shown(self, value: float) -> str:
        """Return a value with its unit."""
        if self.unit == "s":
            return text.seconds(value)
        return text.size(int(value * 2**20)) if self.unit == "MiB" else f"{value:.2f}"


def load(path: Path = FILE) -> tuple[Number, ...]:
    """Read the file."""
    rows: dict[str, dict[str, Any]] = yamlfile.read(path)[_NUMBERS]
    return tuple(Number(name, **row | {"measured": tuple(row["measured"])}) for name, row in rows.items())


def most(name: str) -> float:
    """Return what a number may be at the most, for the test that holds it; KeyError for none such."""
    return {number.name: number.most for number in load() if number.most is not None}[name]


def flat(prefix: str, data: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Give each number of what a benchmark wrote, with a name such as `full seconds.smoke`."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from flat(f"{prefix}{name}.", value)
        elif isinstance(value, int | float):
            yield f"{prefix}{name}", value


def record(values: Mapping[str, float], when: Run, path: Path = FILE, page: Path = PAGE) -> None:
    """Write measured values, by key, to the file and the page; the other numbers stay."""
    numbers = [
        replace(
            number, measured=(values[number.key],), day=when.day, commit=when.commit, machine=when.machine
        )
        if number.key in values
        else number
        for number in load(path)
    ]
    old = path.read_text(encoding="utf-8")
    head = "".join(line for line in old.splitlines(keepends=True) if line.startswith(("#", "---")))
    rows = {number.name: dict(_fields(number)) for number in numbers}
    # Lists of numbers in one line, and a line for everything else.
    written = yaml.safe_dump(
        {_NUMBERS: rows}, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    path.write_text(head + written, encoding="utf-8")
    page.write_text(with_table(page.read_text(encoding="utf-8"), numbers), encoding="utf-8")


def _fields(number: Number) -> Iterator[tuple[str, Any]]:
    """Give the fields of a number as the file has them, without its name and those that are empty."""
    for field in fields(number)[1:]:
        value = getattr(number, field.name)
        if value not in {"", None}:
            yield field.name, list(value) if isinstance(value, tuple) else value


def table(numbers: Sequence[Number]) -> str:
    """Return the table of the page: a number in a row, with the run that measured it."""
    lines = ["| Number | How it is measured | Promise | Measured | Run |", "|---|---|---|---|---|"]
    lines += [
        f"| {number.name} | {number.how} | {number.promise} | {number.result} | {number.run} |"
        for number in numbers
    ]
    machines = sorted({f"- {number.run}: {number.machine}" for number in numbers})
    return "\n".join([*lines, "", "Machines:", "", *machines]) + "\n"


def with_table(page: str, numbers: Sequence[Number]) -> str:
    """Return the page with the table of these numbers."""
    return _BLOCK.sub(lambda match: f"{match[1]}{table(numbers)}{match[2]}", page)


def main() -> int:
    """Write the table of the page again."""
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), load()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
