"""Git objects on disk, as files and packs: reads verify the checksum, and writes are synced.

A killed writer leaves unreferenced objects, which the next commit may reuse, and `git gc` removes.
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

# Up to so many objects are written as loose objects, more as a pack.
_LOOSE = 200
# Temporary files older than this are orphaned: git itself, which ignores the lock, writes no file for longer.
_ORPHAN_SECONDS = 3600
# The limit of a pack that another repository sends, far beyond any history of a catalog.
_PACK_BYTES, _CHUNK_BYTES = 4 << 30, 1 << 20


class DamagedError(LakehouseError):
    """An object of the repository is missing, or does not match its id."""


class Objects:
    """The objects of a repository, by their ids."""

    def __init__(self, path: Path, repo: Repo) -> None:
        self._path = path
        self._repo = repo

    def __contains__(self, number: str) -> bool:
        """Return whether there is an object with this id."""
        return ObjectID(number.encode()) in self._repo.object_store

    def read(self, number: str) -> ShaFile:
        """Return an object by its id; DamagedError if it is missing, or its content does not match."""
        try:
            git_object = self._repo.object_store[ObjectID(number.encode())]
            content = git_object.as_raw_string()
        except KeyError:
            raise self.damaged(f"object {number} is missing") from None
        except Exception as error:
            # The errors of zlib and of damaged packs have no common class.
            raise self.damaged(f"object {number} is damaged", error) from error
        # dulwich does not verify the checksum.
        head = f"{git_object.type_name.decode()} {len(content)}\0".encode()
        if hashlib.sha1(head + content, usedforsecurity=False).hexdigest() != number:
            raise self.damaged(f"object {number} is damaged: it has another content")
        return git_object

    def beginning(self, prefix: str) -> list[str]:
        """Return the ids that begin with a prefix."""
        numbers = self._repo.object_store.iter_prefix(prefix.encode())
        return [number.decode() for number in dict.fromkeys(numbers)]

    def damaged(self, fact: str, cause: Exception | None = None) -> DamagedError:
        """Return the error for a damaged object, with its cause if known; `fsck` finds its path."""
        message = f"{self._path}: {fact}: {_summary(cause)}" if cause else f"{self._path}: {fact}"
        return DamagedError(message, ".venv/bin/lakehouse catalog fsck")

    def keep(self, objects: list[ShaFile]) -> None:
        """Write objects to disk."""
        if len(objects) <= _LOOSE:
            for git_object in objects:
                self._write(git_object)
            return
        pack = self._repo.object_store.add_objects([(git_object, None) for git_object in objects])
        self._sync(pack)

    def write_pack(self, have: Iterable[str], want: Iterable[str], stream: IO[bytes]) -> None:
        """Write a pack of the objects reachable from `want` and not from `have`; nothing if there are none.

        Raises DamagedError if an object is missing or cannot be read.
        """
        try:
            count, objects = self._pack(have, want)
            if count:
                write_pack_data(stream.write, objects, self._repo.object_format, num_records=count)
        except OSError:
            raise
        except Exception as error:
            # As in `read`; `fsck` tells which object it is.
            raise self.damaged("an object is damaged", error) from error

    def read_pack(self, stream: IO[bytes]) -> None:
        """Store the objects of a pack, if the stream has one; DamagedError if it is incomplete."""
        file, commit, abort = self._repo.object_store.add_pack()
        try:
            if _copy(stream, file):
                packs.want_bounded(file)
                file.seek(0, os.SEEK_END)  # dulwich takes the position as the size
            pack = commit()
        except Exception as error:
            # As in `read`.
            abort()
            raise DamagedError(f"{self._path}: what came is no whole pack: {_summary(error)}") from error
        self._sync(pack)

    def keep_only(self, commits: Iterable[str]) -> None:
        """Repack the objects reachable from commits, and delete all others; a kill leaves duplicates."""
        store = self._repo.object_store
        old_packs = list(store.packs)
        loose = [path for path in (self._path / "objects").glob("??/*") if path.is_file()]
        count, objects = self._pack((), commits)
        new_pack = store.add_pack_data(count, objects)
        self._sync(new_pack)
        for pack in old_packs:
            if new_pack is None or pack.name() != new_pack.name():
                store._remove_pack(pack)  # as its own repack does
        for path in loose:
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove the temporary packs of killed writers."""
        for path in (self._path / "objects" / "pack").glob("tmp*"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ORPHAN_SECONDS:
                    path.unlink()

    def _pack(self, have: Iterable[str], want: Iterable[str]) -> tuple[int, Iterator[UnpackedObject]]:
        """Return the number of objects reachable from `want` and not from `have`, and these objects."""
        return self._repo.object_store.generate_pack_data(
            [ObjectID(commit.encode()) for commit in have if commit in self],
            [ObjectID(commit.encode()) for commit in want],
            shallow=self._repo.get_shallow(),
        )

    def _sync(self, pack: Pack | None) -> None:
        """Sync a pack to disk."""
        if pack:
            for suffix in (".pack", ".idx"):
                files.to_disk(Path(f"{os.fsdecode(pack._basename)}{suffix}"))  # its only name
            files.to_disk(self._path / "objects" / "pack")

    def _write(self, git_object: ShaFile) -> None:
        number = git_object.id.decode()
        path = self._path / "objects" / number[:2] / number[2:]
        path.parent.mkdir(exist_ok=True)
        # A killed dulwich leaves a lock file, and then can never write the object again.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="tmp_obj_", delete=False) as stream:
            stream.write(git_object.as_legacy_object())
            stream.flush()
            os.fsync(stream.fileno())
            os.fchmod(stream.fileno(), 0o444)
        Path(stream.name).replace(path)


def _copy(stream: IO[bytes], file: IO[bytes]) -> int:
    """Copy a pack; return its size."""
    size = 0
    while chunk := stream.read(_CHUNK_BYTES):
        size += len(chunk)
        if size > _PACK_BYTES:
            raise ValueError(f"it has more than {_PACK_BYTES >> 20} MiB")
        file.write(chunk)
    return size


def _summary(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
