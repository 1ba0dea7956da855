"""Which files a table of a commit needs, and which of them are missing or damaged."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from lakehouse.catalog.documents import Document, location, table_format
from lakehouse.errors import LakehouseError

T = TypeVar("T")
# Questions to a file system at a time.
_AT_ONCE = 16
_GZIP_MAGIC = b"\x1f\x8b"
# Of a metadata file, unpacked: any writer of a table writes it, and a small one may unpack to any size.
_MOST_BYTES = 256 << 20
_ENTRY, _CHECKPOINT = re.compile(r"(\d{20})\.json"), re.compile(r"(\d{20})\.checkpoint\b.*")
_ABSENT, _EMPTY = "is not there", "is empty"


class UnreadableError(LakehouseError):
    """One file cannot be read, though its file system answers."""


class Files(Protocol):
    """Files by URI. LakehouseError where the file system does not answer, UnreadableError for one file."""

    def holds(self, uri: str) -> bool:
        """Tell whether a URI belongs to this file system; nothing is known of the files of others."""

    def size(self, uri: str) -> int | None:
        """Return the bytes of a file, 0 for a folder; None where there is neither."""

    def exists(self, uri: str) -> bool:
        """Tell whether there is such a file or folder."""

    def read(self, uri: str) -> bytes:
        """Return what is in a file."""

    def names(self, uri: str) -> list[str]:
        """Return the names in a folder."""


@dataclass(frozen=True)
class FileFault:
    """A file or folder that a table needs, by URI, and what is wrong with it."""

    path: str
    why: str
    # What it is a sign of.
    meaning: str = ""

    def __str__(self) -> str:
        return f"{f'{self.meaning}: ' if self.meaning else ''}{self.path} {self.why}"


class DamagedError(Exception):
    """A file that is there and cannot be understood."""

    def __init__(self, fault: FileFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def file_faults(
    document: Document, files: Files, copies: Files | None = None, *, rows: bool = False
) -> list[FileFault]:
    """Return the missing and damaged files and folders that a table or partition of a commit needs.

    An Iceberg table needs its metadata file, and its current snapshot's manifest list and manifests; with
    `rows` the data and delete files of those manifests, too. A Delta table needs its `_delta_log`, a table
    of another format and a partition its folder, a view nothing. A file that names further files is read from
    `copies` (such as a snapshot) where `files` lacks it; without a copy the further files stay unknown.
    Files of other file systems are taken to be there. LakehouseError where a file system does not answer.
    """
    if table_format(document) == "iceberg":
        return list(
            _Iceberg(files, copies, rows=rows).faults(str(document["parameters"]["metadata_location"]))
        )
    place = folder(document)
    try:
        return [] if place is None or files.exists(place) else [FileFault(place, _ABSENT)]
    except UnreadableError as error:
        return [_refused(str(place), error)]


def folder(document: Document) -> str | None:
    """Return the folder without which a table or partition cannot be read; None for a view."""
    # Of a partition it is beside the storage.
    place = document.get("location") or location(document)
    return f"{place}/_delta_log" if place and table_format(document) == "delta" else place


def folder_faults(folders: Iterable[str], files: Files) -> dict[str, FileFault]:
    """Return what is wrong with which of many folders: those of one parent are found by one listing."""
    by_parent: dict[str, list[str]] = {}
    for place in folders:
        if files.holds(place):
            by_parent.setdefault(place.rstrip("/").rpartition("/")[0] or "/", []).append(place)

    def faults(parent: str) -> list[FileFault]:
        try:
            names = set(files.names(parent))
        except UnreadableError as error:
            return [_refused(place, error) for place in by_parent[parent]]
        absent = (one for one in by_parent[parent] if one.rstrip("/").rpartition("/")[2] not in names)
        return [FileFault(place, _ABSENT) for place in absent]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return {fault.path: fault for found in pool.map(faults, by_parent) for fault in found}


def lost(document: Document, files: Files) -> str:
    """Return why a table's state in a commit cannot be read any more; empty where it can, and for a view.

    A file with rows is not looked for: there may be many. Iceberg keeps those of a snapshot that it has; the
    VACUUM of Delta does not.
    """
    version = str(document.get("data", {}).get("version") or "")
    if table_format(document) == "delta" and version and (place := folder(document)):
        # An engine tells the metastore, and so may any other client.
        if not re.fullmatch(r"\d{1,20}", version, re.ASCII):
            return f"its version is {version[:40]!r}"
        try:
            return _lost_delta(files.names(place), int(version)) if files.holds(place) else ""
        except UnreadableError as error:
            return str(_refused(place, error))
    return in_one_line(file_faults(document, files))


def in_one_line(faults: Sequence[FileFault]) -> str:
    """Return the first of some faults, and how many more there are; empty for none."""
    more = f" (and {len(faults) - 1} more)" if faults[1:] else ""
    return f"{faults[0]}{more}" if faults else ""


def iceberg(place: str, files: Files) -> dict[str, Any]:
    """Return the metadata of an Iceberg table of its file; none where that is in another file system.

    Raises DamagedError where it is missing, or cannot be read or understood.
    """
    return _read(place, files, parse_metadata) or {}


def _read(path: str, files: Files, parse: Callable[[bytes], T]) -> T | None:
    """Return what a file says, by a parser that raises ValueError; None where it is in another file system.

    Raises DamagedError where it is missing, or cannot be read or understood.
    """
    if not files.holds(path):
        return None
    _check(path, files)
    try:
        return parse(files.read(path))
    except UnreadableError as error:
        raise DamagedError(_refused(path, error)) from error
    except ValueError as error:
        raise DamagedError(FileFault(path, f"is damaged: {' '.join(str(error).split())}")) from error


def _check(path: str, files: Files) -> None:
    """Return if a file is there, or in another file system; DamagedError where it is missing or empty."""
    try:
        if files.holds(path) and not (size := files.size(path)):
            raise DamagedError(FileFault(path, _ABSENT if size is None else _EMPTY))
    except UnreadableError as error:
        raise DamagedError(_refused(path, error)) from error


def parse_metadata(content: bytes) -> dict[str, Any]:
    """Return the metadata of an Iceberg table; ValueError where it is none."""
    try:
        # The writer's codec, whatever the name says.
        found = json.loads(_unpacked(content) if content.startswith(_GZIP_MAGIC) else content)
    except (RecursionError, zlib.error) as error:
        raise ValueError(str(error)) from error
    if not _is_metadata(found):
        raise ValueError("it is no metadata of an Iceberg table")
    current = found.get("current-snapshot-id")
    # Before the first row, writers say -1 or nothing.
    if current not in {None, -1} and snapshot(found) is None:
        raise ValueError(f"it does not have its current snapshot {current}")
    return dict(found)


def _unpacked(content: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    found = unpacker.decompress(content, _MOST_BYTES)
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {_MOST_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("it ends in the middle")
    return found


def snapshot(metadata: Document) -> Document | None:
    """Return the snapshot that is an Iceberg table's current one; None before the first row."""
    current = metadata.get("current-snapshot-id")
    return next((one for one in metadata.get("snapshots") or () if one["snapshot-id"] == current), None)


def _is_metadata(found: Any) -> bool:
    """Tell whether a document has the fields that are read of it here, in their types."""
    if not isinstance(found, dict) or not isinstance(found.get("current-snapshot-id"), int | None):
        return False
    snapshots, refs = found.get("snapshots") or [], found.get("refs") or {}
    return (
        isinstance(snapshots, list)
        and isinstance(refs, dict)
        and all(isinstance(one, dict) for one in (*snapshots, *refs.values()))
        and all(isinstance(one.get(key), int) for one in snapshots for key in ("snapshot-id", "timestamp-ms"))
        and all(isinstance(one.get("max-ref-age-ms"), int | None) for one in refs.values())
    )


@dataclass(frozen=True)
class _Iceberg:
    """Goes from a metadata file to the files that it names, as far as they can be read."""

    files: Files
    copies: Files | None
    rows: bool

    def faults(self, place: str) -> Iterator[FileFault]:
        """Give what is wrong with a metadata file, and with the files of its current snapshot."""
        metadata = yield from self._parsed(place, parse_metadata)
        current = snapshot(metadata) if metadata else None
        if current is None:
            return
        # PyIceberg takes a quarter of a second to load.
        from lakehouse.catalog import manifests  # noqa: PLC0415

        if listed := current.get("manifest-list"):
            why = f"snapshot {current['snapshot-id']} has expired"
            found = yield from self._parsed(str(listed), manifests.manifests, absent=why)
        else:
            # Old writers of format 1 name the manifests themselves.
            found = [manifests.named(str(path)) for path in current.get("manifests") or ()]
        for manifest in found or ():
            path = str(manifest.manifest_path)
            if not self.rows:
                yield from self._there(path)
                continue
            paths = yield from self._parsed(path, partial(manifests.data_files, manifest))
            for data in paths or ():
                yield from self._there(data)

    def _there(self, path: str) -> Iterator[FileFault]:
        try:
            _check(path, self.files)
        except DamagedError as error:
            yield error.fault

    def _parsed(
        self, path: str, parse: Callable[[bytes], T], *, absent: str = ""
    ) -> Generator[FileFault, None, T | None]:
        """Give the fault of a file, and return what it says, or its copy; None where neither can be read.

        `absent` is what it means that there is no such file.
        """
        try:
            return _read(path, self.files, parse)
        except DamagedError as error:
            yield replace(error.fault, meaning=absent if error.fault.why == _ABSENT else "")
        try:
            return _read(path, self.copies, parse) if self.copies else None
        except DamagedError:
            return None


def _refused(path: str, error: UnreadableError) -> FileFault:
    return FileFault(path, f"cannot be read: {' '.join(error.message.split())}")


def _lost_delta(names: Collection[str], version: int) -> str:
    """Return which entry is missing from the checkpoint before a version of Delta, or from the first one."""
    entries = {int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))}
    checkpoints = {int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))}
    first = max((one for one in checkpoints if one <= version), default=-1) + 1
    missing = next((one for one in range(first, version + 1) if one not in entries), None)
    return "" if missing is None else f"its log has no version {missing} any more"
