"""Git objects in memory on top of those of a repository: to read a catalog, or to write a commit in bulk."""

from __future__ import annotations

from collections.abc import Mapping

from dulwich.objects import Blob, ShaFile, Tree

from lakehouse.catalog import trees
from lakehouse.catalog.disk import DamagedError
from lakehouse.catalog.store import Store

# The size at which a batch writes a pack.
_PACK_BYTES = 64 * 1024**2


class Overlay:
    """Objects in memory on top of those of a store, if any; nothing is written to disk."""

    def __init__(self, base: Store | None) -> None:
        self._base = base
        self._objects: dict[str, ShaFile] = {}

    def blob(self, number: str) -> bytes:
        """Return a file by its id."""
        stored = self._objects.get(number)
        return stored.as_raw_string() if stored else self._require_base(number).blob(number)

    def tree(self, number: str) -> Mapping[str, str]:
        """Return the ids in a folder by name."""
        stored = self._objects.get(number)
        return trees.entries(stored) if isinstance(stored, Tree) else self._require_base(number).tree(number)

    def add_blob(self, content: bytes) -> str:
        """Add a file; return its id."""
        return self._add(Blob.from_string(content))

    def add_tree(self, entries: Mapping[str, tuple[bool, str]]) -> str:
        """Add a folder; return its id."""
        return self._add(trees.tree(entries))

    def _require_base(self, number: str) -> Store:
        if self._base is None:
            raise DamagedError(f"object {number} is missing")
        return self._base

    def _add(self, git_object: ShaFile) -> str:
        number = git_object.id.decode()
        if number not in self._objects and (self._base is None or number not in self._base.objects):
            self._objects[number] = git_object
        return number


class Batch(Overlay):
    """Objects to be written to a store, in packs."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store
        self._bytes = 0
        # The number of objects written, for the summary.
        self.written = 0

    def flush(self) -> None:
        """Write the objects that are not written yet."""
        if self._objects:
            self._store.objects.keep(list(self._objects.values()))
        self.written += len(self._objects)
        self._objects, self._bytes = {}, 0

    def _add(self, git_object: ShaFile) -> str:
        before, number = len(self._objects), super()._add(git_object)
        if len(self._objects) > before:
            self._bytes += git_object.raw_length()
            if self._bytes > _PACK_BYTES:
                self.flush()
        return number
