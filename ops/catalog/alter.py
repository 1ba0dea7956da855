"""What becomes of an object that is there: what an alter of the metastore does not take, and what stays."""

from __future__ import annotations

from copy import copy
from typing import Any

from lakehouse.catalog.bindings.field_reader import Lost
from lakehouse.catalog.documents import Document, is_volatile, location
from lakehouse.catalog.restoring import Deed, Step

# Of a serde, Hive 3.1 takes the name, the library and the parameters (copyMSD of ObjectStore.java).
_OF_SERDE = ("description", "serializer", "deserializer", "type")
# What is counted by column, of columns as they are.
_SPARK_SCHEMA = "spark.sql.sources.schema"
_BY_COLUMN = ("COLUMN_STATS_ACCURATE", "spark.sql.statistics.colStats.")


def unheard(step: Step, lost: Lost) -> None:
    """Tell what an alter would leave as it is: a description that was taken away, details of a serde."""
    before, after = step.now or {}, step.then or {}
    if step.kind == "database" and before.get("description") and not after.get("description"):
        lost(str(step.name), "no description")
    old, new = (_storage(said).get("serde", {}) for said in (before, after))
    for key in _OF_SERDE:
        if old.get(key) != new.get(key):
            lost(str(step.name), f"serde {key}")


def anew(step: Step) -> bool:
    """Tell whether a function is made anew in place of altered: an alter leaves its resources."""
    before, after = step.now or {}, step.then or {}
    return step.deed is Deed.ALTER and before.get("resources") != after.get("resources")


def volatile(step: Step, there: Any) -> Document:
    """Return what engines have counted of an object that is there, as far as it is true afterwards."""
    before, after = step.now or {}, step.then or {}
    if there is None or _place(before) != _place(after):
        return {}
    same = _columns(before) == _columns(after)
    counted = {
        key: value
        for key, value in (there.parameters or {}).items()
        if is_volatile(key) and (same or not key.startswith(_BY_COLUMN))
    }
    return {"parameters": counted, "last_access": there.lastAccessTime}


def meant(there: Any) -> Any:
    """Return an object of Thrift without what engines write beside what a user meant."""
    parameters = getattr(there, "parameters", None)
    if parameters is None:
        return there
    made = copy(there)
    made.parameters = {key: value for key, value in parameters.items() if not is_volatile(key)}
    # A field of tables and partitions alone, which some engines write when they read.
    if hasattr(made, "lastAccessTime"):
        made.lastAccessTime = None
    return made


def _storage(said: Document) -> Document:
    return dict(said.get("storage") or {})


def _columns(said: Document) -> Any:
    """Return the columns; Spark keeps those of a table that Hive cannot read in parameters."""
    parameters = said.get("parameters") or {}
    return _storage(said).get("columns"), {k: v for k, v in parameters.items() if k.startswith(_SPARK_SCHEMA)}


def _place(said: Document) -> Any:
    return said.get("location") or location(said)
