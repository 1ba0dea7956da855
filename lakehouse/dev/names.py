"""Find names of variables that say nothing: `python -m lakehouse.dev.names`, a part of `make lint`.

`names.txt` records how many each file assigns. Numbers only fall, as those of `lakehouse.dev.pronouns`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse.dev import ratchet
from lakehouse.run import ROOT

NAME = "lakehouse/dev/names.txt"
RECORD = ratchet.Record(NAME, "lakehouse.dev.names", "files")
# Participles and pronouns: what is found, said or left is the name.
WORDS = frozenset({
    "again", "alone", "asked", "back", "begun", "below", "beside", "found", "given", "gone", "held",
    "here", "kept", "known", "left", "lost", "made", "more", "named", "noted", "now", "one", "other",
    "others", "own", "said", "seen", "shown", "some", "taken", "then", "there", "told", "wanted",
    "what",
})  # fmt: skip
INSTEAD = "name what it is: table, host, row, response, missing_hosts"


@dataclass(frozen=True)
class Assignment:
    """A line that assigns such a name."""

    path: str
    number: int
    name: str

    @property
    def fault(self) -> str:
        """What is wrong, and where."""
        return f"{self.path}:{self.number}: the name {self.name!r} says nothing"


def vague(path: str, text: str) -> Iterator[Assignment]:
    """Give each assignment of such a name in a program, those of loops and comprehensions included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in WORDS:
            yield Assignment(path, node.lineno, node.id)


def assignments(root: Path) -> list[Assignment]:
    """Return those of a checkout, by file."""
    return [
        assignment
        for path in sorted(ratchet.files(root, (".py",), {"build", "golden"}))
        for assignment in vague(path.as_posix(), (root / path).read_text(encoding="utf-8"))
    ]


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Name the assignments of each file that has more than its number; return 1 if a number is not right."""
    return ratchet.compare_numbers(RECORD, root, arguments, assignments(root), INSTEAD)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
