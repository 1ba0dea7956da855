"""The files of tables in HDFS, and their metadata for the check of risky tables.

Users write these files: each is read within limits, and an unreadable one is a fault of its table alone.
"""

from __future__ import annotations

import io
import itertools
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import orc, parquet

from lakehouse.catalog import avro, readable
from lakehouse.catalog.readable import DamagedError, FileFault, UnreadableError
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from lakehouse.tables.iceberg_features import ImportedFile, Live, capitals, name_mapping
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, NoPathError, WebHdfs, WebHdfsError, path_of

T = TypeVar("T")
_COMMIT = re.compile(r"(?P<version>\d{20})\.json")
_CHECKPOINT = re.compile(r"(?P<version>\d{20})\.checkpoint(\.[\w-]+)*\.parquet")
_ACTIONS = ("protocol", "metaData")
# Of a Delta log: one without checkpoints has a file for each commit.
_MOST_COMMITS = 10_000
# Of a snapshot, to find files that were imported: they come first, and one is like the other.
_MANIFESTS, _ENTRIES, _FOOTERS = 4, 10_000, 3
# Of one file of rows, for its footer.
_FOOTER_BYTES = 32 << 20
_DATA_PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
_FIELD_ID = b"PARQUET:field_id"
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_DELETED, _OF_ROWS = 2, 0
_LIST = [
    (name,)
    for name in (
        "manifest_path", "partition_spec_id", "content", "sequence_number",
        "added_files_count", "existing_files_count", "added_data_files_count", "existing_data_files_count",
    )
]  # fmt: skip


class Files:
    """The files of HDFS by URI, read by HTTP as its superuser.

    LakehouseError where it does not answer, UnreadableError for one file.
    """

    def __init__(self, hdfs: WebHdfs) -> None:
        self._hdfs = hdfs

    def holds(self, uri: str) -> bool:
        """Tell whether a URI belongs to this file system."""
        return path_of(uri) is not None

    def size(self, uri: str) -> int | None:
        """Return the bytes of a file, 0 for a folder; None where there is neither."""
        status = self._asked(uri, self._hdfs.status, none=None)
        return None if status is None else int(status["length"])

    def exists(self, uri: str) -> bool:
        """Tell whether there is such a file or folder."""
        return self.size(uri) is not None

    def names(self, uri: str) -> list[str]:
        """Return the names in a folder; none where there is no such folder."""
        return self._asked(uri, self._hdfs.names, none=[])

    def read(self, uri: str) -> bytes:
        """Return what is in a file."""
        return self._asked(uri, self._hdfs.read, none=b"")

    def part(self, uri: str, offset: int, length: int) -> bytes:
        """Return so many bytes of a file from a place on, fewer at its end."""

        def part(path: str) -> bytes:
            with self._hdfs.reading(path, offset=str(offset), length=str(length)) as stream:
                return stream.read(length)

        return self._asked(uri, part, none=b"")

    def _asked(self, uri: str, ask: Callable[[str], T], *, none: T) -> T:
        """Return what HDFS answers, and `none` for what it cannot have."""
        path = path_of(uri)
        if path is None:
            raise UnreadableError(f"{uri} is not in HDFS", "DESCRIBE TABLE EXTENDED in Spark")
        try:
            return ask(path)
        except NoPathError:
            return none
        except NoAnswerError as error:
            raise LakehouseError(f"the cluster does not answer: {error}", "make lakehouse") from None
        except WebHdfsError as error:
            raise UnreadableError(str(error), f"{PROGRAM} doctor") from None


def last_actions(folder: str, files: Files) -> dict[str, dict[str, Any]]:
    """Return the current `protocol` and `metaData` of a Delta log: the newest of each.

    DamagedError if a file cannot be parsed.
    """
    names = sorted(files.names(folder), reverse=True)
    log_files = [name for name in names if _COMMIT.fullmatch(name) or _CHECKPOINT.fullmatch(name)]
    actions: dict[str, dict[str, Any]] = {}
    for name in log_files[:_MOST_COMMITS]:
        parse = _commit if _COMMIT.fullmatch(name) else _checkpoint
        for action in reversed(_parsed(posixpath.join(folder, name), files, parse)):
            for key in _ACTIONS:
                if action.get(key) is not None:
                    actions.setdefault(key, action[key])
        if len(actions) == len(_ACTIONS):
            break
    return actions


def delta(location: str, files: Files) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the `protocol` of a Delta table, and its `metaData` with the schema parsed; DamagedError."""
    log = posixpath.join(location, "_delta_log")
    actions = last_actions(log, files)
    if not actions:
        raise DamagedError(FileFault(log, "has no commit"))
    metadata = dict(actions.get("metaData", {}))
    metadata["schema"] = json.loads(metadata.get("schemaString") or "{}")
    return actions.get("protocol", {}), metadata


def iceberg(place: str, files: Files) -> Mapping[str, Any]:
    """Return the metadata of an Iceberg table; DamagedError."""
    if not place or not files.holds(place):
        raise DamagedError(
            FileFault(place or "metadata_location", "is not in HDFS" if place else "is not set")
        )
    return readable.iceberg(place, files)


def live(metadata: Mapping[str, Any], files: Files) -> Live:
    """Return the contents of the current snapshot of an Iceberg table; DamagedError if it is unreadable."""
    snapshot = readable.snapshot(dict(metadata))
    if snapshot is None:
        return Live()
    if not (manifest_list := snapshot.get("manifest-list")):
        # Old writers of format 1 list the manifests directly.
        specs = frozenset(int(spec["spec-id"]) for spec in metadata.get("partition-specs") or ())
        return _live(metadata, files, specs, [str(path) for path in snapshot.get("manifests") or ()])
    all_rows = _parsed(str(manifest_list), files, _listed)
    rows = [row for row in all_rows if _has_files(row)]
    rows.sort(key=lambda row: row[3] or 0)
    manifests = [str(row[0]) for row in rows if (row[2] or 0) == _OF_ROWS]
    contents = _live(metadata, files, frozenset(int(row[1] or 0) for row in rows), manifests)
    return replace(contents, all_specs=frozenset(int(row[1] or 0) for row in all_rows))


def _live(metadata: Mapping[str, Any], files: Files, specs: frozenset[int], manifests: Sequence[str]) -> Live:
    partitions = sorted({
        str(field["name"])
        for spec in metadata.get("partition-specs") or ()
        for field in spec["fields"]
        if spec["spec-id"] in specs and field["transform"] == "identity"
    })  # fmt: skip
    outside = _outside(metadata, files, manifests[:_MANIFESTS], partitions)
    outside_files = list(itertools.islice(outside, _FOOTERS))
    mapping = name_mapping(metadata) or []
    imported = (_footer(path, kind, files, mapping) for path, kind, _ in outside_files)
    escaped = (
        f"{name}={value}"
        for path, _, values in outside_files
        for name, value in values.items()
        if _ESCAPED.search(value) and f"/{name}={value}/" in path
    )
    return Live(specs, specs, tuple(footer for footer in imported if footer), tuple(dict.fromkeys(escaped)))


def _outside(
    metadata: Mapping[str, Any], files: Files, manifests: Iterable[str], partitions: Sequence[str]
) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Give path, format and partition values of data files outside of the folders of Iceberg's writers."""
    properties = metadata.get("properties") or {}
    configured_paths = [properties[key] for key in _DATA_PATHS if properties.get(key)]
    folders = tuple(
        f"{path_of(str(path))}/"
        for path in (*configured_paths, posixpath.join(str(metadata["location"]), "data"))
    )
    fields: list[avro.Field] = [("status",), ("data_file", "file_path"), ("data_file", "file_format")]
    fields += [("data_file", "partition", name) for name in partitions]
    for manifest in manifests:
        rows = _parsed(
            manifest, files, lambda content: list(itertools.islice(avro.read(content, fields), _ENTRIES))
        )
        for status, path, kind, *values in rows:
            if status != _DELETED and not (path_of(str(path)) or "").startswith(folders):
                texts = {
                    name: value
                    for name, value in zip(partitions, values, strict=True)
                    if isinstance(value, str)
                }
                yield str(path), str(kind).lower(), texts


def _footer(path: str, kind: str, files: Files, mapping: Sequence[Mapping[str, Any]]) -> ImportedFile | None:
    """Return what is in a data file without field ids; None for one that has them or is of another format."""
    if kind == "parquet":
        opened = parquet.ParquetFile(_Range(path, files))
        schema = opened.schema_arrow
        if any(_FIELD_ID in (field.metadata or {}) for field in schema):
            return None
        leaves = (opened.schema.column(number) for number in range(len(opened.schema)))
        int96 = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    elif kind == "orc":
        schema, int96 = orc.ORCFile(_Range(path, files)).schema, []
    else:
        return None
    columns = {field.name: _inner(field.type) for field in schema}
    return ImportedFile(frozenset(columns), tuple(capitals(columns, mapping)), tuple(int96))


def _inner(kind: pa.DataType) -> dict[str, Any]:
    """Return the fields in a type by name, as a name mapping of Iceberg names them."""
    if pa.types.is_struct(kind):
        return {field.name: _inner(field.type) for field in kind}
    if pa.types.is_map(kind):
        return {"key": _inner(kind.key_type), "value": _inner(kind.item_type)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"element": _inner(kind.value_type)}
    return {}


def _has_files(row: avro.Values) -> bool:
    """Tell whether a manifest has files that the snapshot has: one of deleted files alone is not read."""
    counts = [count for count in row[4:] if count is not None]
    return not counts or sum(counts) > 0


def _listed(content: bytes) -> list[avro.Values]:
    return list(avro.read(content, _LIST))


def _commit(content: bytes) -> list[dict[str, Any]]:
    actions = [json.loads(line) for line in content.splitlines() if line.strip()]
    if not all(isinstance(action, dict) for action in actions):
        raise ValueError("an action is no object")
    return actions


def _checkpoint(content: bytes) -> list[dict[str, Any]]:
    rows = parquet.read_table(io.BytesIO(content), columns=list(_ACTIONS)).to_pylist(maps_as_pydicts="strict")
    return [row for row in rows if any(row[key] is not None for key in _ACTIONS)]


def _parsed(path: str, files: Files, parse: Callable[[bytes], T]) -> T:
    """Return the parsed content of a file; DamagedError if it is missing, empty or invalid."""
    try:
        size = files.size(path)
        if not size:
            raise DamagedError(FileFault(path, "is not there" if size is None else "is empty"))
        return parse(files.read(path))
    except UnreadableError as error:
        raise DamagedError(FileFault(path, f"cannot be read: {error.message}")) from None
    except (ValueError, LookupError, RecursionError, OSError, pa.ArrowException) as error:
        raise DamagedError(FileFault(path, f"is damaged: {error or type(error).__name__}")) from None


class _Range(io.RawIOBase):
    """A file of HDFS with random access, up to a limit of bytes."""

    def __init__(self, path: str, files: Files) -> None:
        self._path, self._files = path, files
        self._size, self._position, self._budget = files.size(path) or 0, 0, _FOOTER_BYTES

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        remaining = max(self._size - self._position, 0)
        length = remaining if size < 0 else min(size, remaining)
        if length > self._budget:
            raise ValueError(f"its footer has more than {_FOOTER_BYTES >> 20} MiB")
        content = self._files.part(self._path, self._position, length) if length else b""
        self._budget -= len(content)
        self._position += len(content)
        return content
