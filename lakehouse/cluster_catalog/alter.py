"""Alter existing objects: what an alter of the metastore ignores, and which statistics stay valid."""

from __future__ import annotations

from copy import copy
from typing import Any

from lakehouse.catalog.bindings.field_reader import ReportField
from lakehouse.catalog.documents import Document, is_volatile, location
from lakehouse.catalog.restoring import Operation, Step

# Fields of a serde that an alter ignores: Hive 3.1 writes name, library and parameters (ObjectStore.copyMSD).
_OF_SERDE = ("description", "serializer", "deserializer", "type")
# Parameters with column statistics, which are valid for unchanged columns only.
_SPARK_SCHEMA = "spark.sql.sources.schema"
_BY_COLUMN = ("COLUMN_STATS_ACCURATE", "spark.sql.statistics.colStats.")


def report_unaltered(step: Step, report_field: ReportField) -> None:
    """Report the changes that an alter ignores: the removal of a description, some fields of a serde."""
    before, after = step.before or {}, step.after or {}
    if step.kind == "database" and before.get("description") and not after.get("description"):
        report_field(str(step.name), "no description")
    old, new = (_storage(document).get("serde", {}) for document in (before, after))
    for key in _OF_SERDE:
        if old.get(key) != new.get(key):
            report_field(str(step.name), f"serde {key}")


def must_recreate(step: Step) -> bool:
    """Return whether a function has to be dropped and created, since an alter ignores its resources."""
    before, after = step.before or {}, step.after or {}
    return step.operation is Operation.ALTER and before.get("resources") != after.get("resources")


def kept_volatile(step: Step, current: Any) -> Document:
    """Return the volatile part of an existing object, as far as it stays valid."""
    before, after = step.before or {}, step.after or {}
    if current is None or _place(before) != _place(after):
        return {}
    same_columns = _columns(before) == _columns(after)
    parameters = {
        key: value
        for key, value in (current.parameters or {}).items()
        if is_volatile(key) and (same_columns or not key.startswith(_BY_COLUMN))
    }
    return {"parameters": parameters, "last_access": current.lastAccessTime}


def without_volatile(thrift_object: Any) -> Any:
    """Return a Thrift object without the parameters that engines write."""
    parameters = getattr(thrift_object, "parameters", None)
    if parameters is None:
        return thrift_object
    stripped = copy(thrift_object)
    stripped.parameters = {key: value for key, value in parameters.items() if not is_volatile(key)}
    # A field of tables and partitions only, which some engines update on reads.
    if hasattr(stripped, "lastAccessTime"):
        stripped.lastAccessTime = None
    return stripped


def _storage(document: Document) -> Document:
    return dict(document.get("storage") or {})


def _columns(document: Document) -> Any:
    """Return the columns; Spark stores those of a table that Hive cannot read in parameters."""
    parameters = document.get("parameters") or {}
    spark_schema = {key: value for key, value in parameters.items() if key.startswith(_SPARK_SCHEMA)}
    return _storage(document).get("columns"), spark_schema


def _place(document: Document) -> Any:
    return document.get("location") or location(document)
