"""Find addresses that are put together by hand: `python -m lakehouse.dev.addresses`, a part of `make lint`.

`addresses.txt` records the lines that do so already, and only gets shorter: `--write` removes lines that are
gone and never adds one.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse.dev import ratchet
from lakehouse.errors import LakehouseError
from lakehouse.model import services
from lakehouse.run import ROOT

NAME = "lakehouse/dev/addresses.txt"
RECORD = ratchet.Record(NAME, "lakehouse.dev.addresses", "code")
COMMAND = RECORD.command
LIBRARY = ("lakehouse/model/endpoints.py", "plugins/filter/endpoints.py", "lakehouse/dev/addresses.py")
# Tests name addresses on purpose, pages show them.
_SKIPPED = {"build", "docs", "tests"}
_SCANNED = (".py", ".yml", ".yaml", ".j2")
_HOSTS = r"(?:group|running|serving|having|in_group)\("


@dataclass(frozen=True)
class Rule:
    """A pattern of a line of files whose names end in `suffixes`, the fault, and what to use instead."""

    pattern: re.Pattern[str]
    fault: str
    instead: str
    suffixes: tuple[str, ...] = _SCANNED


@dataclass(frozen=True)
class Line:
    """A line that breaks a rule."""

    path: str
    number: int
    text: str
    rule: Rule

    @property
    def entry(self) -> str:
        """The line as the record has it."""
        return f"{self.path}: {self.text}"


def rules() -> tuple[Rule, ...]:
    """Return the rules; the schemes are those of the catalogue's protocols and listeners."""
    schemes = {scheme for pair in services.PROTOCOLS.values() for scheme in pair if scheme}
    schemes |= {listener.uri_scheme for listener in services.load().listeners.values() if listener.uri_scheme}
    of_scheme = "|".join(map(re.escape, sorted(schemes)))
    yaml = tuple(suffix for suffix in _SCANNED if suffix != ".py")
    return (
        Rule(
            # A variable or another text follows the slashes, or stands for the port.
            re.compile(rf"\b(?:{of_scheme})://(?:[\w.-]+:)?(?:\[?\{{|[\"']\s*[~+])"),
            "puts a URI together",
            "'metastore' | uris in YAML, cluster.endpoint('metastore').uri in Python",
        ),
        Rule(
            re.compile(r"groups(?:\.\w+|\[[^\]]+\])\s*(?:\|\s*first\b|\[0\]|\.0\b)"),
            "takes the first host of a group",
            "'namenode' | active_host",
            yaml,
        ),
        Rule(
            re.compile(rf"^\[\w+\] = .*\.{_HOSTS}|\.{_HOSTS}[^()]*\)\[0\]"),
            "takes the only or the first host of a group",
            "cluster.active('namenode')",
            (".py",),
        ),
        Rule(
            re.compile(r"""\[["']lakehouse_ports["']\]\["""),
            "reads a port from lakehouse_ports",
            "endpoints.on('metastore', host).port",
            (".py",),
        ),
    )


def broken(path: str, text: str, rules: Iterable[Rule]) -> Iterator[Line]:
    """Give each line of a file that breaks a rule, with the first broken rule."""
    file_rules = [rule for rule in rules if path.endswith(rule.suffixes)]
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        rule = next((rule for rule in file_rules if rule.pattern.search(line)), None)
        if rule and not line.startswith("#"):
            yield Line(path, number, line, rule)


def lines(root: Path) -> list[Line]:
    """Return the lines of a checkout that break a rule, by file."""
    every_rule = rules()
    return [
        line
        for path in sorted(ratchet.files(root, _SCANNED, _SKIPPED))
        if path.as_posix() not in LIBRARY
        for line in broken(path.as_posix(), (root / path).read_text(encoding="utf-8"), every_rule)
    ]


def compare(lines: Iterable[Line], record: Iterable[str]) -> tuple[list[Line], Counter[str]]:
    """Return the lines that the record lacks, and its entries without a line."""
    unused, new = Counter(record), []
    for line in lines:
        if unused[line.entry]:
            unused[line.entry] -= 1
        else:
            new.append(line)
    return new, +unused


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Name each new line and what to use instead; return 1 if there is one, or a recorded one is mended."""
    record = RECORD.entries(root)
    new, mended = compare(lines(root), record)
    faults = (
        LakehouseError(
            f"{line.path}:{line.number} {line.rule.fault}: {line.text}", f"use {line.rule.instead}"
        )
        for line in new
    )
    remaining = sorted((Counter(record) - mended).elements())
    return RECORD.settle(root, arguments, faults, mended.total(), remaining)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
