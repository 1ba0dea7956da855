"""Contents of an Iceberg table from its metadata file, manifest list and manifests.

Reference: https://iceberg.apache.org/spec/ (table metadata, manifest lists, manifests, partition transforms).
"""

from __future__ import annotations

import base64
import json
import struct
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from lakehouse.catalog import avro, partition_names, readable
from lakehouse.census.contents import Contents, DataFile, RowGroup, UnitCount, number
from lakehouse.census.files import MOST_ENTRIES, DamagedError, Files
from lakehouse.census.metastore import Table
from plugins.module_utils.lakehouse.webhdfs import path_of

# Of a snapshot; an old table of many small commits has thousands.
_MOST_MANIFESTS = 20_000
_MOST_SPEC_FIELDS = 100
# Of a decimal, as of its digits.
_MOST_SCALE = 38
# Of a file in a manifest, by its number in the specification.
CONTENTS = {0: "data", 1: "position deletes", 2: "equality deletes"}
_DELETED = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LIST_FIELDS: Sequence[avro.Field] = [
    ("manifest_path",), ("partition_spec_id",), ("content",),
    ("added_files_count",), ("existing_files_count",),
    ("added_data_files_count",), ("existing_data_files_count",),
]  # fmt: skip
_FILE_FIELDS: Sequence[avro.Field] = [
    ("status",), ("data_file", "content"), ("data_file", "file_path"), ("data_file", "file_format"),
    ("data_file", "record_count"), ("data_file", "file_size_in_bytes"), ("data_file", "split_offsets"),
]  # fmt: skip
_PARTITION = ("data_file", "partition")
# Categories of Unicode: Character.isLetter and Character.isDigit.
_LETTERS, _DIGIT = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo"}), "Nd"


@dataclass(frozen=True)
class SpecField:
    """A field of a partition spec: its name, its transform, and the type of the values in manifests."""

    name: str
    transform: str
    type: str

    def text(self, value: Any) -> str:
        """Return a value as Iceberg names a folder; a time that Python has no date for is a number.

        NULL is the name that Hive has for it: `null` is a text.
        """
        if value is None:
            return partition_names.NOTHING
        try:
            return _text(self.transform, self.type, value)
        except (OverflowError, ValueError):
            return str(value)


def collect(table: Table, files: Files) -> Contents:
    """Return the contents of the current snapshot of a table; DamagedError, UnavailableError."""
    place = table.parameters.get("metadata_location", "")
    if not place:
        raise DamagedError("its parameter metadata_location is not set")
    content = files.read(place)
    try:
        metadata = readable.parse_metadata(content)
        return _contents(table, metadata, files)
    except avro.DamagedAvroError as error:
        raise DamagedError(f"a manifest of {place} is damaged: {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise DamagedError(f"{place} is damaged: {str(error) or type(error).__name__}") from None


def version(table: Table) -> str:
    """Return what changes with each commit of a table: the path of its metadata file."""
    return table.parameters.get("metadata_location", "")


def _contents(table: Table, metadata: Mapping[str, Any], files: Files) -> Contents:
    snapshot = readable.snapshot(dict(metadata))
    schema = current_schema(metadata)
    specs = partition_specs(metadata)
    current_spec = specs.get(int(metadata.get("default-spec-id") or 0), ())
    manifests = list(_manifests(snapshot, files)) if snapshot else []
    listed: list[DataFile] = []
    count = UnitCount()
    for manifest in manifests:
        for file in _files(manifest, specs, files):
            count.add([file])
            listed.append(file)
            if len(listed) > MOST_ENTRIES:
                raise DamagedError(f"its snapshot has more than {MOST_ENTRIES} files")
    refs = metadata.get("refs") or {}
    snapshots = metadata.get("snapshots") or ()
    facts = {
        "format": "iceberg",
        "format_version": number(metadata.get("format-version") or 1, "format-version"),
        "snapshots": len(snapshots),
        "oldest_snapshot": min((snapshot_time(row) for row in snapshots), default=None),
        "references": len(refs),
        "manifests": len(manifests),
        "metadata_log": len(metadata.get("metadata-log") or ()),
        "file_formats": sorted({file.format for file in listed}),
        "last_commit": snapshot_time(snapshot) if snapshot else None,
    }
    return Contents(
        name=table.name,
        table_type="ICEBERG",
        location=str(metadata.get("location") or table.location),
        owner=table.owner,
        schema=json.dumps(schema, separators=(",", ":")),
        partition_keys={field.name: field.transform for field in current_spec},
        modified=number(metadata.get("last-updated-ms") or 0, "last-updated-ms") or None,
        files=listed,
        facts=facts,
    )


def snapshot_time(snapshot: Mapping[str, Any]) -> int:
    """Return when a snapshot was made, in milliseconds since 1970; ValueError for no such number."""
    return number(snapshot["timestamp-ms"], "timestamp-ms")


def current_schema(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the current schema; empty where the metadata has none."""
    number = metadata.get("current-schema-id")
    schemas = metadata.get("schemas") or ()
    return dict(next((schema for schema in schemas if schema.get("schema-id") == number), None)
                or metadata.get("schema") or {})  # fmt: skip


def partition_specs(metadata: Mapping[str, Any]) -> dict[int, tuple[SpecField, ...]]:
    """Return the fields of each partition spec by its id; those of transform void have no values."""
    types: dict[int, str] = {}
    for schema in (*(metadata.get("schemas") or ()), metadata.get("schema") or {}):
        types.update(_types(schema.get("fields") or ()))
    specs = metadata.get("partition-specs")
    if specs is None:
        # Writers of format 1 list the fields of the only spec.
        specs = [{"spec-id": 0, "fields": metadata.get("partition-spec") or ()}]
    listed = {}
    for spec in specs:
        if len(spec["fields"]) > _MOST_SPEC_FIELDS:
            raise DamagedError(f"a partition spec has more than {_MOST_SPEC_FIELDS} fields")
        listed[int(spec["spec-id"])] = tuple(
            SpecField(str(field["name"]), str(field["transform"]), types.get(field.get("source-id"), ""))
            for field in spec["fields"]
            if field["transform"] != "void"
        )
    return listed


def _types(fields: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """Yield id and primitive type of columns, those inside of structs, too."""
    for field in fields:
        kind = field["type"]
        if isinstance(kind, str):
            yield int(field["id"]), kind
        elif isinstance(kind, dict) and kind.get("type") == "struct":
            yield from _types(kind["fields"])


@dataclass(frozen=True)
class _Manifest:
    path: str
    spec: int


def _manifests(snapshot: Mapping[str, Any], files: Files) -> Iterator[_Manifest]:
    """Yield the manifests of a snapshot that have files which it has."""
    if not (manifest_list := snapshot.get("manifest-list")):
        # Old writers of format 1 list the manifests directly.
        yield from (_Manifest(str(path), 0) for path in snapshot.get("manifests") or ())
        return
    for count, row in enumerate(avro.read(files.read(str(manifest_list)), _LIST_FIELDS)):
        if count >= _MOST_MANIFESTS:
            raise DamagedError(f"its snapshot has more than {_MOST_MANIFESTS} manifests")
        path, spec, _, *counts = row
        numbers = [number for number in counts if number is not None]
        if not numbers or sum(numbers) > 0:
            yield _Manifest(str(path), int(spec or 0))


def _files(manifest: _Manifest, specs: Mapping[int, Sequence[SpecField]], files: Files) -> Iterator[DataFile]:
    spec = specs.get(manifest.spec)
    if spec is None:
        raise DamagedError(f"{manifest.path} has the unknown partition spec {manifest.spec}")
    partition_fields = [(*_PARTITION, avro_name(field.name)) for field in spec]
    for row in avro.read(files.read(manifest.path), [*_FILE_FIELDS, *partition_fields], partition_fields):
        status, content, path, kind, rows, size, offsets, *values = row
        if status == _DELETED:
            continue
        size = number(size, "file_size_in_bytes")
        rows = number(rows, "record_count")
        yield DataFile(
            path=path_of(str(path)) or str(path),
            bytes=size,
            partition=tuple(
                (field.name, field.text(value)) for field, value in zip(spec, values, strict=True)
            ),
            rows=rows,
            format=str(kind).lower(),
            row_groups=_row_groups(str(kind), offsets, size, rows),
            content=CONTENTS.get(int(content or 0), "data"),
        )


def _row_groups(kind: str, offsets: Sequence[int] | None, size: int, rows: int) -> tuple[RowGroup, ...]:
    """Return the row groups of a Parquet file, which start at its split offsets.

    The last one ends with the file: its bytes include the footer. Only a single one has known rows.
    """
    if kind.lower() != "parquet" or not offsets:
        return ()
    starts = sorted({int(offset) for offset in offsets if 0 <= offset < size})
    ends = [*starts[1:], size]
    known_rows = rows if len(starts) == 1 else None
    return tuple(RowGroup(start, end - start, known_rows) for start, end in zip(starts, ends, strict=True))


def avro_name(name: str) -> str:
    """Return the name of a partition field in Avro, as org.apache.iceberg.avro.AvroSchemaUtil sanitizes it.

    Java's letters are units of UTF-16: a character beyond the first 65,536 is two of them, and no letter.
    """
    encoded = name.encode("utf-16-be", "surrogatepass")
    units = [chr(unit) for (unit,) in struct.iter_unpack(">H", encoded)]
    return "".join(_avro_letter(unit, is_first=position == 0) for position, unit in enumerate(units))


def _avro_letter(unit: str, *, is_first: bool) -> str:
    category = unicodedata.category(unit)
    if category in _LETTERS or unit == "_" or (category == _DIGIT and not is_first):
        return unit
    return f"_{unit}" if category == _DIGIT else f"_x{ord(unit):X}"


def _text(transform: str, kind: str, value: Any) -> str:
    """Return a partition value as Iceberg's own names of folders have it."""
    if isinstance(value, int) and transform in _TIMES:
        return _TIMES[transform](value)
    if transform.startswith("bucket"):
        return str(value)
    if isinstance(value, bytes):
        return _bytes_text(kind, value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return _integer_text(kind, value)
    return str(value)


def _integer_text(kind: str, value: int) -> str:
    if kind == "date":
        return _day(value)
    if kind.startswith(("timestamp_ns", "timestamptz_ns")):
        value //= 1000
    if kind.startswith("timestamp"):
        moment = _EPOCH + timedelta(microseconds=value)
        return (moment if kind.startswith("timestamptz") else moment.replace(tzinfo=None)).isoformat()
    if kind == "time":
        return (_EPOCH + timedelta(microseconds=value)).time().isoformat()
    return str(value)


def _bytes_text(kind: str, value: bytes) -> str:
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(") ").rpartition(",")[2])
        if not 0 <= scale <= _MOST_SCALE:
            raise DamagedError(f"a partition field has the type {kind[:40]}")
        unscaled = int.from_bytes(value, "big", signed=True)
        digits = tuple(map(int, str(abs(unscaled))))
        # Exact, unlike the arithmetic of a context.
        return str(Decimal((int(unscaled < 0), digits, -scale)))
    if kind == "uuid":
        return str(UUID(bytes=value))
    return base64.b64encode(value).decode()


def _moment(delta: timedelta, form: str) -> str:
    return (_EPOCH + delta).strftime(form)


def _day(value: int) -> str:
    return _moment(timedelta(days=value), "%Y-%m-%d")


def _month(value: int) -> str:
    years, month = divmod(value, 12)
    return f"{1970 + years:04}-{month + 1:02}"


_TIMES: Mapping[str, Callable[[int], str]] = {
    "year": lambda value: f"{1970 + value:04}",
    "month": _month,
    "day": _day,
    "hour": lambda value: _moment(timedelta(hours=value), "%Y-%m-%d-%H"),
}
