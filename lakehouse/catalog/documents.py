"""The documents of a commit: their form, their bytes, and what of them is volatile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

# Of the tree's layout and of the documents' form: with another one, the same catalog is another tree.
FORMAT: Final = 1
# Parameters that engines write by themselves, beside what a user meant: kept apart, in the statistics.
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
    """Return a document as a file that a person reads: sorted, a line for each value."""
    return f"{json.dumps(document, ensure_ascii=False, sort_keys=True, indent=2)}\n".encode()


def line(document: Document) -> str:
    """Return a document as one line, sorted."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def without_nothing(document: Document) -> dict[str, Any]:
    """Return a document without its keys that say nothing: null, no text, an empty list, false, and zero."""
    return {key: value for key, value in document.items() if value}


def in_order(found: Iterable[Any]) -> list[Any]:
    """Return a list that has no order of its own."""
    return sorted(found, key=lambda one: line({"": one}))


def digest(text: str) -> str:
    """Return a short name for a text by what is in it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_volatile(key: str) -> bool:
    """Tell whether a parameter is written beside what a user meant."""
    return key in VOLATILE or key.startswith(VOLATILE_PREFIXES)


# Parameters that say which state of its files a table has, by their word: they change as one, the `data`.
_VERSIONS: Mapping[str, Mapping[str, str]] = {
    "iceberg": {
        "metadata_location": "metadata",
        "previous_metadata_location": "previous",
        "current-snapshot-id": "snapshot",
    },
    "delta": {"delta.lastUpdateVersion": "version", "delta.lastCommitTimestamp": "committed"},
}
# What an engine says of that state beside it.
_ABOUT = ("current-snapshot-summary", "current-snapshot-timestamp-ms")


def table_format(document: Document) -> str:
    """Return `view`, `iceberg`, `delta`, `hudi` or `hive`: by what the parameters say, never by the type."""
    parameters: Mapping[str, str | None] = document.get("parameters", {})
    provider = str(parameters.get("spark.sql.sources.provider") or "").lower()
    if str(parameters.get("table_type") or "").upper() == "ICEBERG" and parameters.get("metadata_location"):
        return "iceberg"
    if "VIEW" in str(document.get("type")):
        return "view"
    return provider if provider in {"delta", "hudi"} else "hive"


def location(document: Document) -> str | None:
    """Return where the files of a table are; None for a view.

    Spark keeps the folder of a table that Hive cannot read (docs/metastore.md) in the serde's parameters.
    """
    storage = document.get("storage", {})
    place = storage.get("serde", {}).get("parameters", {}).get("path") or storage.get("location")
    return str(place) if place and table_format(document) != "view" else None


def data(document: Document) -> dict[str, str]:
    """Return which state of its files a table has, as far as the metastore itself knows."""
    found, parameters = table_format(document), document.get("parameters", {})
    if found == "view":
        return {}
    words = _VERSIONS.get(found, {})
    return {"format": found} | {
        word: str(parameters[key]) for key, word in words.items() if parameters.get(key) is not None
    }


def of_data(document: Document, key: str) -> bool:
    """Tell whether a parameter is told by the data version of its table."""
    words = _VERSIONS.get(str(document.get("data", {}).get("format")), {})
    return key in words or (bool(words) and key in _ABOUT)
