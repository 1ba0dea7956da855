"""The 22 queries: one text that every engine takes, kept in a file each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("queries")

_COMMENT = re.compile(r"^-- ?(.*)\n", re.MULTILINE)
_ORDER = re.compile(r"^ORDER BY (.+)$", re.MULTILINE)
_LIMIT = re.compile(r"^LIMIT (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Query:
    """One query; `text` is the statement without comments and without a semicolon."""

    name: str
    title: str
    text: str

    def __str__(self) -> str:
        return self.name

    @property
    def order(self) -> tuple[str, ...]:
        """Columns of the answer that say in which order its rows come; none where any order will do."""
        clause = _ORDER.search(self.text)
        return tuple(key.split()[0] for key in clause[1].split(", ")) if clause else ()

    @property
    def limit(self) -> int | None:
        """How many rows the answer has at most; None where there is no bound."""
        clause = _LIMIT.search(self.text)
        return int(clause[1]) if clause else None

    @property
    def unlimited(self) -> str:
        """The statement without its bound."""
        return _LIMIT.sub("", self.text).strip()


def parse(name: str, content: str) -> Query:
    """Make a query of what its file holds: the first comment is its title."""
    return Query(name, _COMMENT.findall(content)[0], _COMMENT.sub("", content).strip())


QUERIES = tuple(parse(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.sql")))
