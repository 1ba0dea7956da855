"""Records of the lines that break a rule of `make lint`: a record only gets shorter."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse.counting import counted

_WRITE = "--write"


@dataclass(frozen=True)
class Record:
    """The file `name` of a checkout; `command` removes entries that are no longer in the `scanned` text."""

    name: str
    module: str
    scanned: str

    @property
    def command(self) -> str:
        """The command that updates the record after lines were corrected."""
        return f"python -m {self.module} {_WRITE}"

    def entries(self, root: Path) -> list[str]:
        """Return its lines."""
        return (root / self.name).read_text(encoding="utf-8").splitlines()

    def settle(
        self,
        root: Path,
        arguments: Collection[str],
        faults: Iterable[LakehouseError],
        corrected: int,
        remaining: Iterable[str],
    ) -> int:
        """Print new faults, and the number of corrected lines; return 1 if there is either, else 0.

        With `--write` among the arguments the `remaining` entries become the record.
        """
        new = list(faults)
        for fault in new:
            sys.stderr.write(f"{fault}\n")
        if corrected and _WRITE in arguments:
            (root / self.name).write_text("".join(f"{entry}\n" for entry in remaining), encoding="utf-8")
            corrected = 0
        if corrected:
            number = counted(corrected, "line is", "lines are")
            fact = f"{number} in {self.name} and no longer in the {self.scanned}"
            sys.stderr.write(f"{LakehouseError(fact, self.command)}\n")
        return int(bool(new or corrected))


class Breach(Protocol):
    """A place that breaks a rule whose record has a number for each file."""

    @property
    def path(self) -> str:
        """The file, from the root of the checkout."""

    @property
    def fault(self) -> str:
        """What is wrong, and where."""


def compare_numbers(
    record: Record, root: Path, arguments: Collection[str], breaches: Sequence[Breach], instead: str
) -> int:
    """Print the breaches of each file that has more than its number in the record; return as `settle`.

    Numbers only fall. `instead` is the advice.
    """
    parts = (entry.rpartition(": ") for entry in record.entries(root))
    recorded = Counter({path: int(number) for path, _, number in parts})
    numbers = Counter(breach.path for breach in breaches)
    excess, corrected = numbers - recorded, recorded - numbers
    faults = (
        LakehouseError(
            f"{breach.fault}"
            f" ({record.name} has {recorded[breach.path]} of {numbers[breach.path]} in this file)",
            instead,
        )
        for breach in breaches
        if breach.path in excess
    )
    remaining = (f"{path}: {number}" for path, number in sorted((recorded & numbers).items()))
    return record.settle(root, arguments, faults, corrected.total(), remaining)


def files(root: Path, suffixes: tuple[str, ...], skipped: Collection[str]) -> Iterator[Path]:
    """Give the files below a folder with such names, by their paths from there; links are their targets'."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in skipped and not name.startswith(".")]
        paths = (Path(folder) / name for name in names if name.endswith(suffixes))
        yield from (path.relative_to(root) for path in paths if not path.is_symlink())
