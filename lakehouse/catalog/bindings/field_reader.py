"""Takes a document apart field by field, so that what was not taken is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lakehouse.catalog.documents import Document

# What of an object Thrift cannot hold: told with the name of the object and that of the field.
Lost = Callable[[str, str], None]


class Taken:
    """A document of which each field is taken once; at the end, the rest is lost."""

    def __init__(self, said: Document | None, name: str, lost: Lost) -> None:
        self._left = dict(said or {})
        self.name, self.lost = name, lost

    def take(self, key: str, otherwise: Any = None) -> Any:
        """Return the value of a field, or what is meant where the document has none."""
        return self._left.pop(key, otherwise)

    def below(self, key: str) -> Taken:
        """Return a document in the document; its rest is lost under its own name."""
        return Taken(self._left.pop(key, None), f"{self.name} {key}".strip(), self.lost)

    def each(self, key: str) -> Iterable[Taken]:
        """Give the documents of a list."""
        for one in self._left.pop(key, None) or ():
            yield Taken(one, f"{self.name} {key}", self.lost)

    def end(self, *known: str) -> None:
        """Tell everything that was not taken, but for `known`, which is told elsewhere."""
        for key in sorted(self._left.keys() - set(known)):
            self.lost(self.name, key)
        self._left = {}
