"""Features of Iceberg tables that an engine reads wrongly or not at all: pure functions over metadata."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakehouse.tables.features import (
    CUT,
    FLINK,
    LATER,
    OF_ICEBERG,
    PYTHON,
    REFUSED,
    SPARK,
    TRINO,
    WRONG,
    Risk,
)

NAME_MAPPING = "schema.name-mapping.default"
# The newest format of which the kit's engines read the metadata at all, and the one that all of them read.
_KNOWN_FORMAT, _SHARED_FORMAT = 3, 2
_COPY = "copy it: docs/across-engines.md#from-hive-to-iceberg"
_FORMAT_V3 = Risk(
    "format-version 3",
    REFUSED,
    "Trino 476 cannot read the table",
    "https://github.com/trinodb/trino/pull/27786",
    newer=True,
    engines=(TRINO,),
)
_NEW_FORMAT = Risk(
    "format-version", REFUSED, "no engine of the kit reads it", "https://iceberg.apache.org/spec/",
    newer=True, engines=OF_ICEBERG,
)  # fmt: skip
_EQUALITY_DELETES = Risk(
    "equality deletes",
    REFUSED,
    "PyIceberg cannot read the table, nor DuckDB and Polars through it; optimize it in Trino",
    "https://github.com/apache/iceberg-python/issues/1210",
    engines=PYTHON,
)
_DROPPED_SOURCE = Risk(
    "partitions of a dropped column",
    REFUSED,
    "Trino and Flink cannot read it before Spark's rewrite_data_files with rewrite-all, and one more commit",
    "https://github.com/apache/iceberg/issues/4563",
    engines=(TRINO, FLINK),
)
_TIME = "https://github.com/apache/iceberg/issues/4865"
_TIME_IN_SPARK = Risk(
    "time", REFUSED, "Spark has no such type, and cannot read the table", _TIME, engines=(SPARK,)
)
_TIME_IN_FLINK = Risk(
    "time",
    CUT,
    "Flink shows milliseconds of a time that has microseconds, and a filter with all six digits finds no row",
    _TIME,
    engines=(FLINK,),
)
_REUSED = Risk(
    "imported files",
    WRONG,
    "every engine reads the values of a dropped or renamed column in the one that has its name now",
    _COPY,
    engines=OF_ICEBERG,
)
_CAPITALS = Risk(
    "imported files with capitals",
    WRONG,
    "Spark and Flink read nulls, and rewrite_data_files of Spark loses the values",
    _COPY,
    engines=(SPARK, FLINK),
)
_CAPITALS_IN_PYTHON = Risk(
    "imported files with capitals",
    REFUSED,
    "PyIceberg cannot read them, nor DuckDB and Polars through it",
    _COPY,
    engines=PYTHON,
)
_INT96 = Risk(
    "imported files with INT96", REFUSED, "Flink cannot read the table", _COPY, engines=(FLINK,)
)  # fmt: skip
_ESCAPED = Risk(
    "imported partitions",
    WRONG,
    "every engine reads the name of a folder with its escapes, and no filter finds the value",
    _COPY,
    engines=OF_ICEBERG,
)
_UNMAPPED = Risk(
    "imported files without name mapping",
    REFUSED,
    f"PyIceberg cannot read them, nor DuckDB and Polars through it; the table lacks {NAME_MAPPING}",
    _COPY,
    engines=PYTHON,
)
_UNMAPPED_IN_TRINO = Risk(
    "imported files without name mapping",
    WRONG,
    f"Trino reads nulls, and Spark and Flink read columns by their places; the table lacks {NAME_MAPPING}",
    _COPY,
    engines=(TRINO,),
)
_IMPORTED = Risk(
    "imported files",
    LATER,
    "a column that is dropped and added again, or renamed and its name used again, has the old values",
    _COPY,
)


@dataclass(frozen=True)
class ImportedFile:
    """A data file that no writer of Iceberg has made: its columns have no field ids.

    `columns` are the names of its top level; `capitals` differ from those of the name mapping in case alone.
    """

    columns: frozenset[str]
    capitals: tuple[str, ...] = ()
    int96: tuple[str, ...] = ()


@dataclass(frozen=True)
class Live:
    """What the current snapshot consists of, as far as it was read.

    `specs` are the ids of the partition specs of its manifests that have files, `all_specs` those of all: one
    of deleted files alone is there until the next commit. `escaped` are partition values that are the
    escaped names of folders.
    """

    specs: frozenset[int] = frozenset()
    all_specs: frozenset[int] = frozenset()
    imported: tuple[ImportedFile, ...] = ()
    escaped: tuple[str, ...] = ()


def format_version(metadata: Mapping[str, Any]) -> int:
    """Return the version of the format; ValueError where it is no number."""
    return int(metadata.get("format-version", 1))


def is_known(metadata: Mapping[str, Any]) -> bool:
    """Tell whether the version of the format is one that the kit's engines know."""
    return format_version(metadata) <= _KNOWN_FORMAT


def iceberg_risks(metadata: Mapping[str, Any], live: Live) -> list[Risk]:
    """Judge an Iceberg table by its metadata file and the files of its current snapshot."""
    if not is_known(metadata):
        return [replace(_NEW_FORMAT, feature=f"format-version {format_version(metadata)}")]
    risks = [_FORMAT_V3] if format_version(metadata) > _SHARED_FORMAT else []
    if int(_summary(metadata).get("total-equality-deletes", 0)):
        risks.append(_EQUALITY_DELETES)
    fields = list(_fields(_schema(metadata)))
    ids = {field.id for field in fields}
    if dropped := _dropped_sources(metadata, live.all_specs, ids):
        engines = (TRINO, FLINK) if _dropped_sources(metadata, live.specs, ids) else (TRINO,)
        risks.append(replace(_DROPPED_SOURCE.of(dropped), engines=engines))
    if times := [field.path for field in fields if field.type == "time"]:
        risks += [_TIME_IN_SPARK.of(times), _TIME_IN_FLINK.of(times)]
    return risks + list(_of_imported(metadata, live))


def snapshot(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the current snapshot of a metadata file; None where it has none."""
    current = metadata.get("current-snapshot-id")
    snapshots: Mapping[Any, Mapping[str, Any]] = {
        row["snapshot-id"]: row for row in metadata.get("snapshots") or ()
    }
    return snapshots.get(current)


def name_mapping(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the entries of the name mapping, None without one; ValueError if it is not a list."""
    text = (metadata.get("properties") or {}).get(NAME_MAPPING)
    if text is None:
        return None
    entries = json.loads(text)
    if not isinstance(entries, list):
        raise ValueError(f"{NAME_MAPPING} is no list")  # noqa: TRY004 -- of the table, not of a caller
    return entries


def capitals(
    columns: Mapping[str, Any], mapping: Sequence[Mapping[str, Any]], path: str = ""
) -> Iterator[str]:
    """Give the paths of columns, nested ones included, whose case differs from the name mapping."""
    mapped = {str(name): entry for entry in mapping for name in entry.get("names") or ()}
    folded = {name.casefold() for name in mapped}
    for name, inner in columns.items():
        if name in mapped:
            yield from capitals(inner, mapped[name].get("fields") or (), f"{path}{name}.")
        elif name.casefold() in folded:
            yield f"{path}{name}"


def _of_imported(metadata: Mapping[str, Any], live: Live) -> Iterator[Risk]:
    if live.escaped:
        yield _ESCAPED.of(live.escaped)
    if not live.imported:
        return
    if NAME_MAPPING not in (metadata.get("properties") or {}):
        yield from (_UNMAPPED_IN_TRINO, _UNMAPPED)
        return
    columns = frozenset().union(*(file.columns for file in live.imported))
    unmapped = sorted({path for file in live.imported for path in file.capitals})
    times = sorted({path for file in live.imported for path in file.int96})
    reused = sorted(columns & _used_again(metadata))
    if unmapped:
        yield _CAPITALS.of(unmapped)
        yield _CAPITALS_IN_PYTHON.of(unmapped)
    if times:
        yield _INT96.of(times)
    yield _REUSED.of(reused) if reused else _IMPORTED


def _used_again(metadata: Mapping[str, Any]) -> set[str]:
    """Return the columns whose names other columns had before."""
    ids: dict[str, set[int]] = {}
    for schema in (*(metadata.get("schemas") or ()), _schema(metadata)):
        for field in schema.get("fields") or ():
            ids.setdefault(str(field["name"]), set()).add(field["id"])
    current = {str(field["name"]) for field in _schema(metadata).get("fields") or ()}
    return {name for name in current if len(ids[name]) > 1}


def _dropped_sources(
    metadata: Mapping[str, Any], specs: Collection[int], fields: Collection[int]
) -> list[str]:
    """Return the partition fields, of specs that files have, whose column the schema does not have."""
    return sorted({
        str(field["name"])
        for spec in metadata.get("partition-specs") or ()
        if spec["spec-id"] in specs
        for field in spec["fields"]
        if field["transform"] != "void" and not _sources(field) <= set(fields)
    })  # fmt: skip


def _sources(field: Mapping[str, Any]) -> set[int]:
    return set(field["source-ids"]) if "source-ids" in field else {field["source-id"]}


def _summary(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    summary: Mapping[str, Any] = (snapshot(metadata) or {}).get("summary") or {}
    return summary


def _schema(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the current schema, in format version 1 or later."""
    current = metadata.get("current-schema-id", 0)
    schemas = {schema.get("schema-id", 0): schema for schema in metadata.get("schemas") or ()}
    current_schema: Mapping[str, Any] = schemas.get(current) or metadata.get("schema") or {}
    return current_schema


@dataclass(frozen=True)
class _Field:
    """A field of a schema by its dotted path; its type is a name, or "" where fields are in it."""

    path: str
    id: int
    type: str


def _fields(kind: Any, path: str = "") -> Iterator[_Field]:
    """Yield every field of an Iceberg type, those inside of other fields too."""
    if not isinstance(kind, Mapping):
        return
    inner = [(field["name"], field["id"], field["type"]) for field in kind.get("fields") or ()]
    inner += [(part, kind[f"{part}-id"], kind[part]) for part in ("element", "key", "value") if part in kind]
    for name, number, of in inner:
        yield _Field(f"{path}{name}", number, of if isinstance(of, str) else "")
        yield from _fields(of, f"{path}{name}.")
