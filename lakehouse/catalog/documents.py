"""The documents of a commit: their serialization, and which parameters are volatile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from plugins.module_utils.lakehouse.table_format import of as table_format_of

# The version of the tree's layout and of the documents: with another one, the same catalog is another tree.
FORMAT: Final = 1
# Parameters that engines write and no user sets: a commit stores them separately, with the statistics.
VOLATILE = (
    "COLUMN_STATS_ACCURATE",
    "STATS_GENERATED",
    "STATS_GENERATED_VIA_STATS_TASK",
    "last_modified_by",
    "last_modified_time",
    "numFiles",
    "numFilesErasureCoded",
    "numPartitions",
    "numRows",
    "rawDataSize",
    "totalSize",
    "transient_lastDdlTime",
)
VOLATILE_PREFIXES = ("spark.sql.statistics.",)

Document = Mapping[str, Any]


def pretty(document: Document) -> bytes:
    """Serialize a document for people: sorted, a line for each value."""
    return f"{json.dumps(document, ensure_ascii=False, sort_keys=True, indent=2)}\n".encode()


def line(document: Document) -> str:
    """Serialize a document as one line, sorted."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def without_nothing(document: Document) -> dict[str, Any]:
    """Return a document without empty values: null, "", an empty list, false, and zero."""
    return {key: value for key, value in document.items() if value}


def in_order(values: Iterable[Any]) -> list[Any]:
    """Sort values whose order has no meaning."""
    return sorted(values, key=lambda value: line({"": value}))


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_volatile(key: str) -> bool:
    """Return whether a parameter is one that engines write and no user sets."""
    return key in VOLATILE or key.startswith(VOLATILE_PREFIXES)


# Parameters for the state of a table's files, and their keys in `data`, in which they change together.
_VERSIONS: Mapping[str, Mapping[str, str]] = {
    "iceberg": {
        "metadata_location": "metadata",
        "previous_metadata_location": "previous",
        "current-snapshot-id": "snapshot",
    },
    "delta": {"delta.lastUpdateVersion": "version", "delta.lastCommitTimestamp": "committed"},
}
# Further parameters about that state.
_ABOUT = ("current-snapshot-summary", "current-snapshot-timestamp-ms")


def table_format(document: Document) -> str:
    """Return `view`, `iceberg`, `delta`, `hudi` or `hive`.

    An Iceberg table without metadata has no files but those in its folder, as one of Hive.
    """
    parameters = document.get("parameters", {})
    if not parameters.get("metadata_location"):
        parameters = {**parameters, "table_type": None}
    return table_format_of(document.get("type"), parameters)


def location(document: Document) -> str | None:
    """Return the location of a table's files; None for a view.

    Spark stores the folder of a table that Hive cannot read (docs/metastore.md) in the serde's parameters.
    """
    storage = document.get("storage", {})
    place = storage.get("serde", {}).get("parameters", {}).get("path") or storage.get("location")
    return str(place) if place and table_format(document) != "view" else None


def data(document: Document) -> dict[str, str]:
    """Return the state of a table's files, as far as the metastore has it."""
    format_, parameters = table_format(document), document.get("parameters", {})
    if format_ == "view":
        return {}
    fields = _VERSIONS.get(format_, {})
    return {"format": format_} | {
        field: str(parameters[key]) for key, field in fields.items() if parameters.get(key) is not None
    }


def of_data(document: Document, key: str) -> bool:
    """Return whether a parameter belongs to the `data` of its table."""
    fields = _VERSIONS.get(str(document.get("data", {}).get("format")), {})
    return key in fields or (bool(fields) and key in _ABOUT)
