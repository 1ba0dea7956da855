"""Find missing and damaged files of a table in a commit."""

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
# Parallel requests to a file system.
_AT_ONCE = 16
_GZIP_MAGIC = b"\x1f\x8b"
# The limit of a metadata file, unpacked: a small file of a hostile writer may unpack to any size.
_MOST_BYTES = 256 << 20
_ENTRY, _CHECKPOINT = re.compile(r"(\d{20})\.json"), re.compile(r"(\d{20})\.checkpoint\b.*")
_ABSENT, _EMPTY = "is not there", "is empty"


class UnreadableError(LakehouseError):
    """One file cannot be read, though its file system answers."""


class Files(Protocol):
    """Files by URI. LakehouseError if the file system does not answer, UnreadableError for one file."""

    def holds(self, uri: str) -> bool:
        """Return whether a URI belongs to this file system."""

    def size(self, uri: str) -> int | None:
        """Return the size of a file, 0 for a folder; None if there is neither."""

    def exists(self, uri: str) -> bool:
        """Return whether there is such a file or folder."""

    def read(self, uri: str) -> bytes:
        """Return the content of a file."""

    def names(self, uri: str) -> list[str]:
        """Return the names in a folder."""


@dataclass(frozen=True)
class FileFault:
    """A file or folder that a table needs, by URI, and its fault."""

    path: str
    why: str
    # The probable cause.
    meaning: str = ""

    def __str__(self) -> str:
        return f"{f'{self.meaning}: ' if self.meaning else ''}{self.path} {self.why}"


class DamagedError(Exception):
    """A file that is missing, cannot be read, or is damaged."""

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
    `copies` (such as a snapshot) if `files` lacks it; without a copy the further files are not checked.
    Files of other file systems are assumed to exist. LakehouseError if a file system does not answer.
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
    """Return the folder that a table or partition needs; None for a view."""
    # The document of a partition has it outside of the storage.
    place = document.get("location") or location(document)
    return f"{place}/_delta_log" if place and table_format(document) == "delta" else place


def folder_faults(folders: Iterable[str], files: Files) -> dict[str, FileFault]:
    """Return the faults of many folders by path, with one listing for each parent."""
    by_parent: dict[str, list[str]] = {}
    for place in folders:
        if files.holds(place):
            by_parent.setdefault(place.rstrip("/").rpartition("/")[0] or "/", []).append(place)

    def faults_in(parent: str) -> list[FileFault]:
        try:
            names = set(files.names(parent))
        except UnreadableError as error:
            return [_refused(place, error) for place in by_parent[parent]]
        absent = (place for place in by_parent[parent] if place.rstrip("/").rpartition("/")[2] not in names)
        return [FileFault(place, _ABSENT) for place in absent]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return {fault.path: fault for faults in pool.map(faults_in, by_parent) for fault in faults}


def why_unreadable(document: Document, files: Files) -> str:
    """Return why a table's state in a commit can no longer be read; empty if it can, and for a view.

    Data files are not checked: there may be many. Iceberg keeps those of an existing snapshot; the VACUUM of
    Delta does not.
    """
    version = str(document.get("data", {}).get("version") or "")
    if table_format(document) == "delta" and version and (place := folder(document)):
        # Any client may write the version.
        if not re.fullmatch(r"\d{1,20}", version, re.ASCII):
            return f"its version is {version[:40]!r}"
        try:
            return _missing_entry(files.names(place), int(version)) if files.holds(place) else ""
        except UnreadableError as error:
            return str(_refused(place, error))
    return in_one_line(file_faults(document, files))


def in_one_line(faults: Sequence[FileFault]) -> str:
    """Return the first of some faults, and the number of further ones; empty without faults."""
    rest = f" (and {len(faults) - 1} more)" if faults[1:] else ""
    return f"{faults[0]}{rest}" if faults else ""


def iceberg(place: str, files: Files) -> dict[str, Any]:
    """Return the metadata of an Iceberg table; empty if its file is in another file system.

    Raises DamagedError if the file is missing, unreadable or damaged.
    """
    return _read(place, files, parse_metadata) or {}


def _read(path: str, files: Files, parse: Callable[[bytes], T]) -> T | None:
    """Parse a file with a function that may raise ValueError; None if it is in another file system.

    Raises DamagedError if the file is missing, unreadable or damaged.
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
    """Return if a file exists, or is in another file system; DamagedError if it is missing or empty."""
    try:
        if files.holds(path) and not (size := files.size(path)):
            raise DamagedError(FileFault(path, _ABSENT if size is None else _EMPTY))
    except UnreadableError as error:
        raise DamagedError(_refused(path, error)) from error


def parse_metadata(content: bytes) -> dict[str, Any]:
    """Parse the metadata of an Iceberg table; ValueError if it is invalid."""
    try:
        # The magic number decides, since the name need not show the codec.
        metadata = json.loads(_unpacked(content) if content.startswith(_GZIP_MAGIC) else content)
    except (RecursionError, zlib.error) as error:
        raise ValueError(str(error)) from error
    if not _is_metadata(metadata):
        raise ValueError("it is no metadata of an Iceberg table")
    current = metadata.get("current-snapshot-id")
    # Before the first row, writers set it to -1 or omit it.
    if current not in {None, -1} and snapshot(metadata) is None:
        raise ValueError(f"it does not have its current snapshot {current}")
    return dict(metadata)


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    content = unpacker.decompress(packed, _MOST_BYTES)
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {_MOST_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("it ends in the middle")
    return content


def snapshot(metadata: Document) -> Document | None:
    """Return the current snapshot of an Iceberg table; None before the first row."""
    current = metadata.get("current-snapshot-id")
    snapshots = metadata.get("snapshots") or ()
    return next((snapshot for snapshot in snapshots if snapshot["snapshot-id"] == current), None)


def _is_metadata(document: Any) -> bool:
    """Return whether a document has the fields that this module reads, with their types."""
    if not isinstance(document, dict) or not isinstance(document.get("current-snapshot-id"), int | None):
        return False
    snapshots, refs = document.get("snapshots") or [], document.get("refs") or {}
    return (
        isinstance(snapshots, list)
        and isinstance(refs, dict)
        and all(isinstance(item, dict) for item in (*snapshots, *refs.values()))
        and all(isinstance(item.get("snapshot-id"), int) for item in snapshots)
        and all(isinstance(item.get("timestamp-ms"), int) for item in snapshots)
        and all(isinstance(ref.get("max-ref-age-ms"), int | None) for ref in refs.values())
    )


@dataclass(frozen=True)
class _Iceberg:
    """Checks a metadata file and, as far as they can be read, the files that it refers to."""

    files: Files
    copies: Files | None
    rows: bool

    def faults(self, place: str) -> Iterator[FileFault]:
        """Give the faults of a metadata file, and of the files of its current snapshot."""
        metadata = yield from self._parsed(place, parse_metadata)
        current = snapshot(metadata) if metadata else None
        if current is None:
            return
        # PyIceberg takes a quarter of a second to load.
        from lakehouse.catalog import manifests  # noqa: PLC0415

        if manifest_list := current.get("manifest-list"):
            why = f"snapshot {current['snapshot-id']} has expired"
            files = yield from self._parsed(str(manifest_list), manifests.manifests, absent=why)
        else:
            # Old writers of format 1 list the manifests in the metadata file.
            files = [manifests.from_path(str(path)) for path in current.get("manifests") or ()]
        for manifest in files or ():
            path = str(manifest.manifest_path)
            if not self.rows:
                yield from self._check(path)
                continue
            data_files = yield from self._parsed(path, partial(manifests.data_files, manifest))
            for data_file in data_files or ():
                yield from self._check(data_file)

    def _check(self, path: str) -> Iterator[FileFault]:
        try:
            _check(path, self.files)
        except DamagedError as error:
            yield error.fault

    def _parsed(
        self, path: str, parse: Callable[[bytes], T], *, absent: str = ""
    ) -> Generator[FileFault, None, T | None]:
        """Give the fault of a file, and return the parsed file or its copy; None if neither can be read.

        `absent` is the meaning of a missing file.
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


def _missing_entry(names: Collection[str], version: int) -> str:
    """Return the log entry that is missing between the checkpoint before a Delta version and that version."""
    entries = {int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))}
    checkpoints = {int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))}
    first = max((checkpoint for checkpoint in checkpoints if checkpoint <= version), default=-1) + 1
    missing = next((entry for entry in range(first, version + 1) if entry not in entries), None)
    return "" if missing is None else f"its log has no version {missing} any more"
