"""Tables and partitions of the metastore, parsed from Thrift's simple JSON (TSimpleJSONProtocol)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakehouse.census.contents import TableName
from plugins.module_utils.lakehouse import table_format


class MetastoreError(Exception):
    """The metastore rejects a call, or its reply is not what it should be."""


@dataclass(frozen=True)
class HivePartition:
    """A partition of the metastore."""

    values: tuple[str, ...]
    location: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    input_format: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the metastore; columns and partition keys are name and type."""

    name: TableName
    format: str
    owner: str = ""
    location: str = ""
    input_format: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[tuple[str, str], ...] = ()
    partition_keys: tuple[tuple[str, str], ...] = ()
    partitions: tuple[HivePartition, ...] = ()
    # Why its partitions could not be listed.
    failed: str = ""


def parse_tables(text: str) -> list[Table]:
    """Return the tables of a reply, without views; MetastoreError."""
    return [table for row in _rows(text, "tables") if (table := _table(row)) is not None]


def parse_partitions(text: str) -> list[HivePartition]:
    """Return the partitions of a reply; MetastoreError."""
    return [_partition(row) for row in _rows(text, "partitions")]


def _rows(text: str, key: str) -> Sequence[Mapping[str, Any]]:
    try:
        rows = json.loads(text).get(key) or ()
    except (ValueError, AttributeError, RecursionError) as error:
        raise MetastoreError(f"the metastore's reply cannot be read: {error}") from None
    if not all(isinstance(row, dict) for row in rows):
        raise MetastoreError("the metastore's reply is no list of objects")
    return list(rows)


def _table(row: Mapping[str, Any]) -> Table | None:
    parameters = _texts(row.get("parameters"))
    kind = table_format.of(row.get("tableType"), parameters)
    if kind == "view":
        return None
    storage = row.get("sd") or {}
    return Table(
        name=TableName(kind, str(row.get("dbName")), str(row.get("tableName"))),
        format=kind,
        owner=str(row.get("owner") or ""),
        location=_location(storage, kind),
        input_format=str(storage.get("inputFormat") or ""),
        parameters=parameters,
        columns=_columns(storage.get("cols")),
        partition_keys=_columns(row.get("partitionKeys")),
    )


def _location(storage: Mapping[str, Any], kind: str) -> str:
    """Return the location of a table; Spark keeps that of a table of another format beside a placeholder."""
    parameters = _texts((storage.get("serdeInfo") or {}).get("parameters"))
    if kind in {"delta", "hudi"} and parameters.get("path"):
        return parameters["path"]
    return str(storage.get("location") or "")


def _partition(row: Mapping[str, Any]) -> HivePartition:
    storage = row.get("sd") or {}
    values = tuple(str(value) for value in row.get("values") or ())
    return HivePartition(
        values,
        str(storage.get("location") or ""),
        _texts(row.get("parameters")),
        str(storage.get("inputFormat") or ""),
    )


def _columns(rows: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(row.get("name")), str(row.get("type"))) for row in rows or ())


def _texts(values: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in (values or {}).items()}
