"""The commits of one table since the last look, by its format.

A reader gets a table, its files and the text that the last look has left, and returns the commits since then,
the oldest first, with the text for the next look.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Of a table that is seen for the first time, or after a long time.
MOST_COMMITS = 1000
# Of a table whose files are kept; a larger one has commits alone.
MOST_FILES = 100_000
# What a writer says of itself, which any client may write.
_LETTERS = 200
_OWN = "lakehouse."
# The last moment of a year of four digits: any client may write a time.
_LAST_MS = 253402300799999
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class File:
    """A file that a commit has added; `rows` are unknown where its format does not say."""

    path: str
    bytes: int
    rows: int | None = None
    partition: str = ""
    content: str = "data"


@dataclass(frozen=True)
class Files:
    """What a commit has changed; with `whole`, the added files are all files of the table."""

    added: Sequence[File] = ()
    removed: Sequence[str] = ()
    whole: bool = False


@dataclass(frozen=True)
class Commit:
    """A commit: its id in the format, its action and time in milliseconds, who made it with which engine.

    `files` is None where they are not known.
    """

    id: str
    action: str
    time_ms: int
    author: str = ""
    engine: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    files: Files | None = None

    def document(self) -> dict[str, Any]:
        """Return the argument of `timeline.observe` for this commit."""
        details: dict[str, Any] = {
            **self.facts, "time_ms": min(self.time_ms, _LAST_MS),
            "author": short(self.author), "engine": short(self.engine),
        }  # fmt: skip
        if self.files:
            details["added"] = [vars(file) for file in self.files.added]
            details["removed"] = list(self.files.removed)
            details["whole"] = self.files.whole
        return {"commit": self.id, "action": short(self.action), "details": details}


@dataclass(frozen=True)
class Open:
    """A commit that has begun and is not complete, by the files of a format that shows it."""

    instant: int
    state: str
    action: str
    time_ms: int


@dataclass(frozen=True)
class Seen:
    """What a look at a table has shown; `fault` is what cannot be read, `lag` what the metastore lacks."""

    state: str
    commits: Sequence[Commit] = ()
    open: Sequence[Open] = ()
    fault: str = ""
    lag: str = ""


def short(text: Any) -> str:
    """Return a text of a writer in one line of bounded length."""
    return _UNPRINTABLE.sub(" ", str(text))[:_LETTERS]


def own_facts(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return what the kit's own pipelines have written into the properties of a commit, without prefix."""
    return {
        short(name.removeprefix(_OWN)): short(value)
        for name, value in properties.items()
        if name.startswith(_OWN)
    }


def numbers(properties: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    """Return the counts among the properties of a commit, which are texts; others are left out."""
    texts = {name: str(properties.get(name, "")) for name in names}
    return {name.replace("-", "_"): int(text) for name, text in texts.items() if _NUMBER.fullmatch(text)}


_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
