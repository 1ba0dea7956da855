"""Objects in memory above those of a repository: to look at a catalog, or to write a commit at once."""

from __future__ import annotations

from collections.abc import Mapping

from dulwich.objects import Blob, ShaFile, Tree

from lakehouse.catalog import trees
from lakehouse.catalog.disk import DamagedError
from lakehouse.catalog.store import Store

# As large as a pack is to be.
_PACK_BYTES = 64 * 1024**2


class Overlay:
    """Objects in memory above those of a store, or of nothing: for a look that keeps none of them."""

    def __init__(self, below: Store | None) -> None:
        self._below = below
        self._objects: dict[str, ShaFile] = {}

    def blob(self, number: str) -> bytes:
        """Return a file by its id."""
        kept = self._objects.get(number)
        return kept.as_raw_string() if kept else self._beneath(number).blob(number)

    def tree(self, number: str) -> Mapping[str, str]:
        """Return the ids in a folder by name."""
        kept = self._objects.get(number)
        return trees.entries(kept) if isinstance(kept, Tree) else self._beneath(number).tree(number)

    def add_blob(self, content: bytes) -> str:
        """Keep a file; return its id."""
        return self._add(Blob.from_string(content))

    def add_tree(self, entries: Mapping[str, tuple[bool, str]]) -> str:
        """Keep a folder; return its id."""
        return self._add(trees.tree(entries))

    def _beneath(self, number: str) -> Store:
        if self._below is None:
            raise DamagedError(f"object {number} is missing")
        return self._below

    def _add(self, one: ShaFile) -> str:
        number = one.id.decode()
        if number not in self._objects and (self._below is None or number not in self._below.objects):
            self._objects[number] = one
        return number


class Batch(Overlay):
    """Collects objects for a store, and writes them where there are enough, and at the end."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store
        self._bytes = 0
        # What was written: numbers for a person.
        self.written = 0

    def flush(self) -> None:
        """Write what is left."""
        if self._objects:
            self._store.objects.keep(list(self._objects.values()))
        self.written += len(self._objects)
        self._objects, self._bytes = {}, 0

    def _add(self, one: ShaFile) -> str:
        before, number = len(self._objects), super()._add(one)
        if len(self._objects) > before:
            self._bytes += one.raw_length()
            if self._bytes > _PACK_BYTES:
                self.flush()
        return number
