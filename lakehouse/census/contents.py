"""The contents of a table, whatever its format, and the metadata units that describe them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakehouse.catalog.partition_names import escaped
from lakehouse.census import model
from lakehouse.census.model import DEFAULT_SEGMENT, GENERAL_INFO, MetadataUnit

# The deepest type of units that a census collects, from few to many.
LEVELS = (model.TABLE, model.SEGMENT, model.PARTITION, model.FILE, model.ROW_GROUP)
# Of texts and lists that users make as long as they like.
MOST_SCHEMA_LETTERS = 1 << 20
MOST_LOCATIONS = 1000
MOST_COLUMN_STATISTICS = 200
# Of a table; row groups are counted while they are read.
MOST_UNITS = 1_000_000
# Of 64 bits, with a sign.
_NUMBERS = 1 << 63


@dataclass(frozen=True)
class TableName:
    """A table of the metastore, with the catalog of its format."""

    catalog: str
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file; None for a number that the metadata does not have."""

    start: int
    bytes: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class DataFile:
    """A file of a table, by its path in the file system.

    `partition` are name and value of each partition field, from the top level down; empty without any.
    """

    path: str
    bytes: int
    partition: tuple[tuple[str, str], ...] = ()
    rows: int | None = None
    format: str = ""
    modified: int | None = None
    row_groups: tuple[RowGroup, ...] = ()
    columns_statistics: Mapping[str, str] = field(default_factory=dict)
    # `data`, or what deletes rows of data files: `position deletes`, `equality deletes`.
    content: str = "data"


@dataclass(frozen=True)
class Partition:
    """A partition that the metastore has, or that a folder is; `facts` are what a report needs."""

    values: tuple[tuple[str, str], ...]
    location: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Contents:
    """A table as its metadata describes it; `facts` are numbers and names for reports."""

    name: TableName
    table_type: str
    location: str
    owner: str = ""
    schema: str = ""
    partition_keys: Mapping[str, str] = field(default_factory=dict)
    modified: int | None = None
    files: Sequence[DataFile] = ()
    # Partitions of the metastore, which may be without files; the others follow from the files.
    partitions: Sequence[Partition] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def number(value: Any, name: str) -> int:
    """Return a number of metadata as it is; ValueError unless it is an integer from 0 to 2^63 - 1."""
    if type(value) is not int or not 0 <= value < _NUMBERS:
        raise ValueError(f"{name} is no integer of 0 to 2^63 - 1: {str(value)[:40]}")
    return value


class UnitCount:
    """The number of units of a table so far; ValueError for too many."""

    def __init__(self) -> None:
        self.units = 0

    def add(self, files: Iterable[DataFile]) -> None:
        """Count files and their row groups."""
        self.units += sum(1 + len(file.row_groups) for file in files)
        if self.units > MOST_UNITS:
            raise ValueError(f"it has more than {MOST_UNITS} files and row groups")


def units(contents: Contents, level: model.MetadataType, version: str) -> list[MetadataUnit]:
    """Return the units of a table down to a level: first its own, then those of each key, sorted.

    The unit of a segment has the digest of all units of its key, by which the next run finds the keys that
    have changed.
    """
    depth = LEVELS.index(level)
    UnitCount().add(contents.files)
    listed = [_table(contents, version)]
    if depth == 0:
        return listed
    by_key: dict[str, list[DataFile]] = {}
    for file in contents.files:
        by_key.setdefault(key_of(file.partition), []).append(file)
    partitions = {} if depth < LEVELS.index(model.PARTITION) else _partitions(contents)
    if not contents.partition_keys and not by_key:
        by_key[DEFAULT_SEGMENT] = []
    for key in sorted({*by_key, *partitions}):
        files = by_key.get(key, [])
        deeper = list(partitions.get(key, ()))
        if depth >= LEVELS.index(model.FILE):
            deeper += [_file(contents, key, file) for file in files]
        if level == model.ROW_GROUP:
            deeper += [unit for file in files for unit in _row_groups(contents, key, file)]
        listed += [_segment(contents, key, files, deeper), *deeper]
    return listed


def digests(listed: Iterable[MetadataUnit]) -> dict[str, str]:
    """Return the digest of each key of a table's units."""
    return {
        unit.metadata_key: digest_of(unit.additional_metadata)
        for unit in listed
        if unit.metadata_type in {model.TABLE, model.SEGMENT}
    }


def digest_of(additional_metadata: str | None) -> str:
    """Return the digest in the additional metadata of a table's or segment's unit; empty without one."""
    return str(facts_of(additional_metadata).get("digest", ""))


def facts_of(additional_metadata: str | None) -> Mapping[str, Any]:
    """Return the additional metadata of a unit; empty where there is none, or no object."""
    try:
        facts = json.loads(additional_metadata or "{}")
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def key_of(partition: Sequence[tuple[str, str]]) -> str:
    """Return the key of what is in a partition."""
    if not partition:
        return DEFAULT_SEGMENT
    return model.partition_key(_name(partition[:1]))


def _name(partition: Iterable[tuple[str, str]]) -> str:
    """Return the name of a partition; escaped as Hive does: a value may have `/` and `=`."""
    return "/".join(f"{escaped(name)}={escaped(value)}" for name, value in partition)


def totals(files: Iterable[DataFile]) -> dict[str, Any]:
    """Return numbers of files, bytes and rows; no rows where a data file's are unknown."""
    listed = list(files)
    data = [file for file in listed if file.content == "data"]
    rows = [file.rows for file in data if file.rows is not None]
    facts: dict[str, Any] = {"files": len(data), "bytes": sum(file.bytes for file in data)}
    if len(rows) == len(data):
        facts["rows"] = sum(rows)
    for kind in sorted({file.content for file in listed} - {"data"}):
        facts[kind.replace(" ", "_")] = sum(file.content == kind for file in listed)
    return facts


def _unit(contents: Contents, kind: model.MetadataType, key: str, **values: Any) -> MetadataUnit:
    name = contents.name
    return MetadataUnit(
        storage_plugin=name.catalog, workspace=name.database, table_name=name.table,
        metadata_type=kind, metadata_key=key, **values,
    )  # fmt: skip


def _table(contents: Contents, version: str) -> MetadataUnit:
    facts = {**totals(contents.files), **contents.facts}
    unit = _unit(
        contents, model.TABLE, GENERAL_INFO,
        owner=contents.owner or None,
        table_type=contents.table_type,
        location=contents.location or None,
        schema=_bounded_schema(contents.schema),
        metadata_statistics=_statistics(facts.get("rows")),
        last_modified_time=contents.modified,
        partition_keys=dict(contents.partition_keys),
    )  # fmt: skip
    digest = _digest([unit, replace(unit, additional_metadata=_json(facts))])
    return replace(unit, additional_metadata=_json({**facts, "version": version, "digest": digest}))


def _segment(
    contents: Contents, key: str, files: Sequence[DataFile], deeper: Sequence[MetadataUnit]
) -> MetadataUnit:
    partition = files[0].partition[:1] if files else ()
    if not partition and key != DEFAULT_SEGMENT:
        partition = next(entry.values[:1] for entry in contents.partitions if key_of(entry.values) == key)
    facts = totals(files)
    folders = sorted({file.path.rpartition("/")[0] for file in files})
    unit = _unit(
        contents, model.SEGMENT, key,
        metadata_identifier=key,
        column=partition[0][0] if partition else None,
        partition_values=[value for _, value in partition] or None,
        locations=folders[:MOST_LOCATIONS] or None,
        metadata_statistics=_statistics(facts.get("rows")),
        last_modified_time=_newest(files),
    )  # fmt: skip
    # The files count deeper their level, too: a changed one has another path, size or time.
    content = hashlib.sha256(repr(sorted(map(_identity, files))).encode()).hexdigest()
    digest = _digest([replace(unit, additional_metadata=_json({**facts, "content": content})), *deeper])
    return replace(unit, additional_metadata=_json({**facts, "digest": digest}))


def _identity(file: DataFile) -> tuple[Any, ...]:
    return file.path, file.bytes, file.modified or 0, file.rows or 0, file.partition


def _partitions(contents: Contents) -> dict[str, list[MetadataUnit]]:
    """Return the units of the partitions of a table, by key; those of files alone, too."""
    by_values: dict[tuple[tuple[str, str], ...], Partition] = {}
    files: dict[tuple[tuple[str, str], ...], list[DataFile]] = {}
    for partition in contents.partitions:
        by_values[partition.values] = partition
    for file in contents.files:
        if file.partition:
            by_values.setdefault(file.partition, Partition(file.partition))
            files.setdefault(file.partition, []).append(file)
    listed: dict[str, list[MetadataUnit]] = {}
    for values, partition in sorted(by_values.items()):
        listed.setdefault(key_of(values), []).append(_partition(contents, partition, files.get(values, [])))
    return listed


def _partition(contents: Contents, partition: Partition, files: Sequence[DataFile]) -> MetadataUnit:
    facts = {**totals(files), **partition.facts}
    folders = [partition.location] if partition.location else _folders(files)
    return _unit(
        contents, model.PARTITION, key_of(partition.values),
        metadata_identifier=_name(partition.values),
        column=partition.values[-1][0],
        partition_values=[value for _, value in partition.values],
        locations=folders or None,
        metadata_statistics=_statistics(facts.get("rows")),
        last_modified_time=_newest(files),
        additional_metadata=_json(facts),
    )  # fmt: skip


def _file(contents: Contents, key: str, file: DataFile) -> MetadataUnit:
    facts = {"bytes": file.bytes, "format": file.format, "content": file.content}
    if file.rows is not None:
        facts["rows"] = file.rows
    statistics = dict(sorted(file.columns_statistics.items())[:MOST_COLUMN_STATISTICS])
    return _unit(
        contents, model.FILE, key,
        metadata_identifier=file.path,
        path=file.path,
        location=file.path.rpartition("/")[0],
        metadata_statistics=_statistics(file.rows),
        columns_statistics=statistics or None,
        last_modified_time=file.modified,
        additional_metadata=_json(facts),
    )  # fmt: skip


def _row_groups(contents: Contents, key: str, file: DataFile) -> Iterator[MetadataUnit]:
    for index, group in enumerate(file.row_groups):
        facts: dict[str, Any] = {"start": group.start, "bytes": group.bytes, "rows": group.rows}
        yield _unit(
            contents, model.ROW_GROUP, key,
            metadata_identifier=f"{file.path}/{index}",
            path=file.path,
            location=file.path.rpartition("/")[0],
            row_group_index=index,
            metadata_statistics=_statistics(group.rows),
            last_modified_time=file.modified,
            additional_metadata=_json({name: value for name, value in facts.items() if value is not None}),
        )  # fmt: skip


def _folders(files: Sequence[DataFile]) -> list[str]:
    return sorted({file.path.rpartition("/")[0] for file in files})[:MOST_LOCATIONS]


def _newest(files: Iterable[DataFile]) -> int | None:
    return max((file.modified for file in files if file.modified is not None), default=None)


def _statistics(rows: int | None) -> list[str] | None:
    return None if rows is None else [_json({"statisticsKind": "rowCount", "statisticsValue": rows})]


def _bounded_schema(schema: str) -> str | None:
    return schema if schema and len(schema) <= MOST_SCHEMA_LETTERS else None


def _digest(listed: Sequence[MetadataUnit]) -> str:
    digest = hashlib.sha256()
    for unit in listed:
        # UnicodeEncodeError, a ValueError, for text that no engine can store.
        digest.update(json.dumps(unit.row(), sort_keys=True, ensure_ascii=False).encode())
    return digest.hexdigest()[:32]


def _json(facts: Mapping[str, Any]) -> str:
    """Return facts as JSON; ValueError for a number beyond 64 bits, which SQL cannot read."""
    for name, value in facts.items():
        if isinstance(value, int):
            number(int(value), name)
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))
