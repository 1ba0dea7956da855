"""Find pronouns in place of who acts: `python -m lakehouse.dev.pronouns`, a part of `make lint`.

`pronouns.txt` records how many lines of each file have one; most are messages that programs print. Numbers
only fall: `--write` lowers those of files that have fewer, and never raises one.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse.dev import drills, ratchet
from lakehouse.run import ROOT

NAME = "lakehouse/dev/pronouns.txt"
RECORD = ratchet.Record(NAME, "lakehouse.dev.pronouns", "files")
COMMAND = RECORD.command
WORDS = ("nobody", "somebody", "whoever", "everybody", "anybody")
INSTEAD = (
    'write who acts: a component, a command, a role ("an operator", "another client") or "you";'
    " a name, such as that of an account, stands in backticks"
)
# Expected renderings follow their templates.
_SKIPPED = {"build", "golden"}
_SCANNED = (".j2", ".java", ".md", ".py", ".yaml", ".yml")
# A part of a path or of a longer name is none.
_WORD = re.compile(rf"(?<![\w./-])(?:{'|'.join(WORDS)})(?![\w/-])", re.IGNORECASE)
_NO_PROSE = re.compile(
    # Parts that are generated, blocks of code, and code in a line.
    r"<!-- (?P<part>\w+):start.*?<!-- (?P=part):end -->"
    r"|^ *```.*?^ *```"
    r"|(?P<ticks>`+)[^`\n]+(?P=ticks)"
    # A name: a text of that word alone, a value of YAML, or the account of a command.
    rf"|(?P<quote>[\"']){_WORD.pattern}(?P=quote)"
    rf"|^[\w -]+: {_WORD.pattern}$"
    rf"|(?:\bUSER|-u) {_WORD.pattern}",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_GENERATED = re.compile(r"^<!-- Generated from ", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """A line with such a word."""

    path: str
    number: int
    text: str
    word: str

    @property
    def fault(self) -> str:
        """What is wrong, and where."""
        return f"{self.path}:{self.number} has {self.word!r} in place of who acts: {self.text}"


def pronouns(path: str, text: str) -> Iterator[Line]:
    """Give each line of a file with such a word, outside of code, names and generated text."""
    if not _WORD.search(text) or (path.endswith(".md") and _GENERATED.search(text)):
        return
    prose = _NO_PROSE.sub(_blank, _without_names(text) if path.endswith(".py") else text)
    for number, (line, original) in enumerate(zip(prose.split("\n"), text.split("\n"), strict=True), 1):
        if match := _WORD.search(line):
            yield Line(path, number, original.strip(), match[0])


def _blank(match: re.Match[str]) -> str:
    """Return as many lines without text."""
    return "\n" * match[0].count("\n")


def _without_names(text: str) -> str:
    """Return a program of Python without its names that are such words."""
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and _WORD.fullmatch(token.string):
            (row, start), (_, end) = token.start, token.end
            lines[row - 1] = lines[row - 1][:start] + "_" * (end - start) + lines[row - 1][end:]
    return "\n".join(lines)


def lines(root: Path) -> list[Line]:
    """Return the lines of a checkout with such a word, by file."""
    # Its rows are names of tests.
    rows = drills.PAGE.relative_to(ROOT)
    return [
        line
        for path in sorted(ratchet.files(root, _SCANNED, _SKIPPED))
        if path != rows
        for line in pronouns(path.as_posix(), (root / path).read_text(encoding="utf-8"))
    ]


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Name the lines of each file that has more than the record; return 1 if one has, or one has fewer."""
    return ratchet.compare_numbers(RECORD, root, arguments, lines(root), INSTEAD)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
