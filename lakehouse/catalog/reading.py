"""What the script of `query` printed, as rows; a stream that was cut off is no smaller catalog."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from lakehouse.catalog.query import END, MARK
from lakehouse.errors import LakehouseError

_NULL = b"\\N"


class Stream:
    """The sections of a script's output, each to be read once and in order."""

    def __init__(self, lines: Iterable[bytes], why: str = "") -> None:
        """`why` is what is known of a stream that ends too early."""
        self._lines = iter(lines)
        self._why = why
        self._head = self._next()

    def section(self, name: str) -> Iterator[bytes]:
        """Give the rows of the next section; LakehouseError if it is not there."""
        if self._head != f"{MARK}{name}".encode():
            raise self._cut()
        while not (line := self._next()).startswith(MARK.encode()):
            yield line
        self._head = line

    def end(self) -> None:
        """Raise LakehouseError where the script has not come to its end."""
        if self._head != END.encode():
            raise self._cut()

    def rows(self, name: str) -> list[Any]:
        """Return the rows of a section whose rows are one document each."""
        return [document(row) for row in self.section(name)]

    def _next(self) -> bytes:
        line = next(self._lines, b"")
        if not line.endswith(b"\n"):
            raise self._cut()
        return line.removesuffix(b"\n")

    def _cut(self) -> LakehouseError:
        return LakehouseError(
            f"the metastore's database was not read to the end{f': {self._why}' if self._why else ''};"
            " nothing was committed",
            ".venv/bin/lakehouse doctor",
        )


def document(field: bytes) -> Any:
    """Return the JSON of a field of COPY, whose only escape is that of the backslash; None for NULL."""
    return None if field == _NULL else json.loads(field.replace(b"\\\\", b"\\"))
