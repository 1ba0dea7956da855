"""Git's objects on the disk, each a file or in a pack: what is read is whole, and what is written stays.

What a kill leaves behind is objects without a reference, which the next commit takes if they fit, and
`git gc` removes.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from dulwich.objects import ObjectID, ShaFile
from dulwich.pack import Pack, UnpackedObject, write_pack_data
from dulwich.repo import Repo

from lakehouse.catalog import files, packs
from lakehouse.errors import LakehouseError

# So many objects at once are a file each, as git writes them; more are a pack.
_LOOSE = 200
# No program of git's, which does not ask for the lock, writes one file for longer.
_LEFT_SECONDS = 3600
# Of a pack that another repository sends: no history of a catalog is as large.
_PACK_BYTES, _CHUNK_BYTES = 4 << 30, 1 << 20


class DamagedError(LakehouseError):
    """An object of the repository is missing or is not what its id says."""


class Objects:
    """The objects of a repository, by their ids."""

    def __init__(self, path: Path, repo: Repo) -> None:
        self._path = path
        self._repo = repo

    def __contains__(self, number: str) -> bool:
        """Tell whether there is an object of this id."""
        return ObjectID(number.encode()) in self._repo.object_store

    def read(self, number: str) -> ShaFile:
        """Return an object by its id; DamagedError where it is not there, or has another content."""
        try:
            found = self._repo.object_store[ObjectID(number.encode())]
            content = found.as_raw_string()
        except KeyError:
            raise self.damaged(f"object {number} is missing") from None
        except Exception as error:
            # zlib's own error, and those of a pack whose bytes are others, are of no common class.
            raise self.damaged(f"object {number} is damaged", error) from error
        # No other code compares what is there with what it is called.
        head = f"{found.type_name.decode()} {len(content)}\0".encode()
        if hashlib.sha1(head + content, usedforsecurity=False).hexdigest() != number:
            raise self.damaged(f"object {number} is damaged: it has another content")
        return found

    def beginning(self, letters: str) -> list[str]:
        """Return the ids that begin with these letters."""
        found = self._repo.object_store.iter_prefix(letters.encode())
        return [number.decode() for number in dict.fromkeys(found)]

    def damaged(self, what: str, why: Exception | None = None) -> DamagedError:
        """Return the error that says what is wrong here, and why if that is known; `fsck` says where."""
        said = f"{self._path}: {what}: {_what(why)}" if why else f"{self._path}: {what}"
        return DamagedError(said, ".venv/bin/lakehouse catalog fsck")

    def keep(self, objects: list[ShaFile]) -> None:
        """Write objects to the disk."""
        if len(objects) <= _LOOSE:
            for one in objects:
                self._write(one)
            return
        self._synced(self._repo.object_store.add_objects([(one, None) for one in objects]))

    def write_pack(self, have: Iterable[str], wanted: Iterable[str], stream: IO[bytes]) -> None:
        """Write what commits lead to and others do not as a pack; nothing where that is nothing.

        Raises DamagedError where an object is missing or cannot be read.
        """
        try:
            count, found = self._pack(have, wanted)
            if count:
                write_pack_data(stream.write, found, self._repo.object_format, num_records=count)
        except OSError:
            raise
        except Exception as error:
            # As in `read`; which one it is, `fsck` says.
            raise self.damaged("an object is damaged", error) from error

    def read_pack(self, stream: IO[bytes]) -> None:
        """Keep the objects of a pack, if there is one; DamagedError where it is not whole."""
        file, keep, drop = self._repo.object_store.add_pack()
        try:
            if _copy(stream, file):
                packs.want_bounded(file)
                file.seek(0, os.SEEK_END)  # where the end is looked for
            pack = keep()
        except Exception as error:
            # As in `read`.
            drop()
            raise DamagedError(f"{self._path}: what came is no whole pack: {_what(error)}") from error
        self._synced(pack)

    def keep_only(self, wanted: Iterable[str]) -> None:
        """Keep what commits lead to, as one pack, and no more; a kill leaves some of it twice."""
        store = self._repo.object_store
        before = list(store.packs)
        loose = [one for one in (self._path / "objects").glob("??/*") if one.is_file()]
        count, found = self._pack((), wanted)
        kept = store.add_pack_data(count, found)
        self._synced(kept)
        for pack in before:
            if kept is None or pack.name() != kept.name():
                store._remove_pack(pack)  # as its own repack does
        for one in loose:
            one.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove the packs of a writer that was killed."""
        for left in (self._path / "objects" / "pack").glob("tmp*"):
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                    left.unlink()

    def _pack(self, have: Iterable[str], wanted: Iterable[str]) -> tuple[int, Iterator[UnpackedObject]]:
        """Return what commits lead to and others do not: how many objects, and the objects of a pack."""
        return self._repo.object_store.generate_pack_data(
            [ObjectID(one.encode()) for one in have if one in self],
            [ObjectID(one.encode()) for one in wanted],
            shallow=self._repo.get_shallow(),
        )

    def _synced(self, pack: Pack | None) -> None:
        """Have a pack on the disk."""
        if pack:
            for suffix in (".pack", ".idx"):
                files.to_disk(Path(f"{os.fsdecode(pack._basename)}{suffix}"))  # its only name
            files.to_disk(self._path / "objects" / "pack")

    def _write(self, one: ShaFile) -> None:
        number = one.id.decode()
        path = self._path / "objects" / number[:2] / number[2:]
        path.parent.mkdir(exist_ok=True)
        # dulwich's own way leaves a lock where it was killed, and then refuses the object for ever.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="tmp_obj_", delete=False) as stream:
            stream.write(one.as_legacy_object())
            stream.flush()
            os.fsync(stream.fileno())
            os.fchmod(stream.fileno(), 0o444)
        Path(stream.name).replace(path)


def _copy(stream: IO[bytes], file: IO[bytes]) -> int:
    """Copy a pack; return its bytes."""
    left = _PACK_BYTES
    while chunk := stream.read(_CHUNK_BYTES):
        left -= len(chunk)
        if left < 0:
            raise ValueError(f"it has more than {_PACK_BYTES >> 20} MiB")
        file.write(chunk)
    return _PACK_BYTES - left


def _what(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
