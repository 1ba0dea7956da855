"""Copies of HDFS files on the repository's disk; unchanged files are hard links to an earlier backup."""

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
    entries: Mapping[str, Entry],
    target: Path,
    earlier: Mapping[str, Entry],
    earlier_folder: Path,
) -> tuple[dict[str, Entry], int]:
    """Copy files from below `source` into `target`; return their entries, and the bytes fetched.

    A file that an earlier backup has with the same identity, length and time becomes a hard link to it.
    """
    for folder in sorted(path for path, entry in entries.items() if entry.directory):
        (target / folder).mkdir(parents=True, exist_ok=True)

    def copy_entry(entry: Entry) -> tuple[Entry, int]:
        earlier_entry = earlier.get(entry.path)
        if earlier_entry and earlier_entry.identity == entry.identity:
            # A file that is missing there is fetched.
            with suppress(FileNotFoundError):
                os.link(earlier_folder / entry.path, target / entry.path)
                return replace(entry, sha256=earlier_entry.sha256), 0
        return replace(entry, sha256=_fetch(hdfs, source, entry, target / entry.path)), entry.length

    files = [entry for entry in entries.values() if not entry.directory]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        copies = list(pool.map(copy_entry, files))
    folders = {path: entry for path, entry in entries.items() if entry.directory}
    return folders | {entry.path: entry for entry, _ in copies}, sum(fetched for _, fetched in copies)


def _fetch(hdfs: WebHdfs, source: str, entry: Entry, target: Path) -> str:
    """Write a file of HDFS to the disk and sync it; return its checksum."""
    digest, remaining = hashlib.sha256(), entry.length
    path = f"{source}/{entry.path}"
    with target.open("wb") as stream:
        if remaining:
            for chunk in _chunks(hdfs, path, remaining):
                stream.write(chunk)
                digest.update(chunk)
                remaining -= len(chunk)
        stream.flush()
        os.fsync(stream.fileno())
    if remaining:
        raise BackupError(f"hdfs {path}: {remaining} of {entry.length} bytes are missing")
    return digest.hexdigest()


def _chunks(hdfs: WebHdfs, path: str, length: int) -> Iterator[bytes]:
    """Give the content of a file; BackupError for failures of HDFS alone, not of the local disk."""
    remaining = length
    try:
        with hdfs.reading(path, length=str(length)) as response:
            while remaining and (chunk := response.read(min(remaining, _CHUNK_BYTES))):
                remaining -= len(chunk)
                yield chunk
    except (OSError, HTTPException) as error:
        raise BackupError(f"hdfs {path}: {error}") from error


def sha256(path: Path) -> str:
    """Return the checksum of a local file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def damaged(folder: Path, entries: Collection[Entry], checksums: dict[Inode, str] | None = None) -> list[str]:
    """Return the paths of files that are missing below a folder, or whose content has changed.

    `checksums` are those of files that were read before; those of this folder are added.
    """
    checksums = {} if checksums is None else checksums

    def is_damaged(entry: Entry) -> bool:
        path = folder / entry.path
        if not path.is_file():
            return True
        status = path.stat()
        inode = (status.st_dev, status.st_ino)
        if inode not in checksums:
            checksums[inode] = sha256(path)
        return status.st_size != entry.length or checksums[inode] != entry.sha256

    files = [entry for entry in entries if not entry.directory]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [
            entry.path
            for entry, file_damaged in zip(files, pool.map(is_damaged, files), strict=True)
            if file_damaged
        ]
