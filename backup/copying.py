"""Copies of HDFS files on the repository's disk; what an earlier backup has is linked, not fetched again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path

from backup.config import BackupError
from backup.tree import Entry
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

# The device of a file, and its number there: the same for all hard links.
Inode = tuple[int, int]
_AT_ONCE = 4
_CHUNK_BYTES = 1 << 20


def copy(  # noqa: PLR0913, PLR0917 -- two trees and the places of both
    hdfs: WebHdfs,
    source: str,
    wanted: Mapping[str, Entry],
    target: Path,
    earlier: Mapping[str, Entry],
    earlier_folder: Path,
) -> tuple[dict[str, Entry], int]:
    """Bring the wanted files from below `source` into `target`; return their entries, and bytes fetched.

    A file that an earlier backup has with the same identity, length and time is a hard link to that one's.
    """
    for folder in sorted(path for path, entry in wanted.items() if entry.directory):
        (target / folder).mkdir(parents=True, exist_ok=True)

    def one(entry: Entry) -> tuple[Entry, int]:
        before = earlier.get(entry.path)
        if before and before.identity == entry.identity:
            # One that is gone there is fetched again.
            with suppress(FileNotFoundError):
                os.link(earlier_folder / entry.path, target / entry.path)
                return replace(entry, sha256=before.sha256), 0
        return replace(entry, sha256=_fetch(hdfs, source, entry, target / entry.path)), entry.length

    files = [entry for entry in wanted.values() if not entry.directory]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        done = list(pool.map(one, files))
    folders = {path: entry for path, entry in wanted.items() if entry.directory}
    return folders | {entry.path: entry for entry, _ in done}, sum(fetched for _, fetched in done)


def _fetch(hdfs: WebHdfs, source: str, entry: Entry, target: Path) -> str:
    """Write a file of HDFS, on the disk when this returns; return its checksum."""
    digest, left = hashlib.sha256(), entry.length
    path = f"{source}/{entry.path}"
    with target.open("wb") as stream:
        if left:
            for chunk in _chunks(hdfs, path, left):
                stream.write(chunk)
                digest.update(chunk)
                left -= len(chunk)
        stream.flush()
        os.fsync(stream.fileno())
    if left:
        raise BackupError(f"hdfs {path}: {left} of {entry.length} bytes are missing")
    return digest.hexdigest()


def _chunks(hdfs: WebHdfs, path: str, length: int) -> Iterator[bytes]:
    """Give the content of a file from a DataNode; BackupError where that fails, and not where a disk does."""
    left = length
    try:
        with hdfs.reading(path, length=str(length)) as answer:
            while left and (chunk := answer.read(min(left, _CHUNK_BYTES))):
                left -= len(chunk)
                yield chunk
    except (OSError, HTTPException) as error:
        raise BackupError(f"hdfs {path}: {error}") from error


def sha256(path: Path) -> str:
    """Return the checksum of a local file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def damaged(folder: Path, entries: Collection[Entry], known: dict[Inode, str] | None = None) -> list[str]:
    """Return the paths of files that are missing below a folder, or have other bytes than they had.

    `known` are checksums of files that were read before; those of this folder are added.
    """
    sums = {} if known is None else known

    def wrong(entry: Entry) -> bool:
        path = folder / entry.path
        if not path.is_file():
            return True
        found = path.stat()
        inode = (found.st_dev, found.st_ino)
        if inode not in sums:
            sums[inode] = sha256(path)
        return found.st_size != entry.length or sums[inode] != entry.sha256

    files = [entry for entry in entries if not entry.directory]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [entry.path for entry, bad in zip(files, pool.map(wrong, files), strict=True) if bad]
