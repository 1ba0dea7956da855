"""Parse the output of the script of `query`; a truncated output is an error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from lakehouse.catalog.query import END, MARK
from lakehouse.errors import LakehouseError

_NULL = b"\\N"


class Stream:
    """The sections of a script's output; each is read once, in order."""

    def __init__(self, lines: Iterable[bytes], why: str = "") -> None:
        """`why` is the reason of a truncated stream, for the message."""
        self._lines = iter(lines)
        self._why = why
        self._head = self._next()

    def section(self, name: str) -> Iterator[bytes]:
        """Give the rows of the next section; LakehouseError if it is missing."""
        if self._head != f"{MARK}{name}".encode():
            raise self._truncated()
        while not (line := self._next()).startswith(MARK.encode()):
            yield line
        self._head = line

    def end(self) -> None:
        """Raise LakehouseError if the output of the script is truncated."""
        if self._head != END.encode():
            raise self._truncated()

    def rows(self, name: str) -> list[Any]:
        """Return the rows of a section, each of them a document."""
        return [document(row) for row in self.section(name)]

    def _next(self) -> bytes:
        line = next(self._lines, b"")
        if not line.endswith(b"\n"):
            raise self._truncated()
        return line.removesuffix(b"\n")

    def _truncated(self) -> LakehouseError:
        return LakehouseError(
            f"the metastore's database was not read to the end{f': {self._why}' if self._why else ''};"
            " nothing was committed",
            ".venv/bin/lakehouse doctor",
        )


def document(field: bytes) -> Any:
    """Parse the JSON of a field of COPY, in which only the backslash is escaped; None for NULL."""
    return None if field == _NULL else json.loads(field.replace(b"\\\\", b"\\"))
