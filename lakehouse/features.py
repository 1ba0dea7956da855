"""What a table carries that another engine reads wrongly or not at all: pure functions over its metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WRONG = "wrong rows"
CUT = "cut values"
REFUSED = "refused"
LOST = "lost files"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Risk:
    """One feature of a table: what other engines make of it, and the upstream issue that explains it.

    `effect` is WRONG (no error, other rows), CUT (no error, less precise values), REFUSED (an error), LOST (a
    DROP removes another's files), or UNKNOWN (the table's metadata could not be read, so nobody can say).
    `newer` is one that an older library of the format may not know.
    """

    feature: str
    effect: str
    consequence: str
    link: str
    newer: bool = False


_TRINO = "https://github.com/trinodb/trino/issues/"
_DELTA_FEATURES = {
    "deletionVectors": Risk(
        "deletionVectors",
        WRONG,
        "deleted rows come back in Trino once the property is false; delta-rs' to_pyarrow_table refuses it",
        f"{_TRINO}30685",
    ),
}
_WIDENED = Risk(
    "typeWidening",
    WRONG,
    "Trino leaves a widened column out of the table without an error",
    "https://github.com/trinodb/trino/pull/22458",
)
_MAPPED = Risk(
    "columnMapping",
    WRONG,
    "delta-rs' to_pyarrow_table gives nothing but nulls for renamed columns",
    "https://github.com/delta-io/delta-rs/issues/930",
)
_MILLISECONDS = Risk(
    "timestamp",
    CUT,
    "Trino shows milliseconds of a Delta timestamp that has microseconds",
    f"{_TRINO}20359",
)
_FORMAT_V3 = Risk(
    "format-version 3",
    REFUSED,
    "Trino 476 cannot read the table",
    "https://github.com/trinodb/trino/pull/27786",
    newer=True,
)
_EQUALITY_DELETES = Risk(
    "equality deletes",
    REFUSED,
    "PyIceberg cannot read the table, nor DuckDB and Polars through it; optimize it in Trino",
    "https://github.com/apache/iceberg-python/issues/1210",
)
# What every engine of the kit reads as Spark does.
_DELTA_HARMLESS = frozenset({
    "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "domainMetadata",
    "generatedColumns", "identityColumns", "inCommitTimestamp", "invariants", "timestampNtz", "typeWidening",
    "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "rowTracking", "clustering",
})  # fmt: skip


def delta_risks(protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[Risk]:
    """Judge a Delta table by the last `protocol` and `metaData` action of its log.

    `metadata` holds `schemaString` (JSON already parsed, under `schema`) and `configuration`.
    """
    # A checkpoint is a table of columns: what a legacy protocol lacks is null there, not absent.
    readers, writers = protocol.get("readerFeatures") or (), protocol.get("writerFeatures") or ()
    features = {*readers, *writers}
    configuration = metadata.get("configuration") or {}
    fields = list(_fields(metadata.get("schema", {})))
    found = [risk for name, risk in _DELTA_FEATURES.items() if name in features]
    widened = [path for path, field in fields if field.get("metadata", {}).get("delta.typeChanges")]
    if widened or features & {"typeWidening", "typeWidening-preview"}:
        found.append(_named(_WIDENED, widened))
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        found.append(_MAPPED)
    if fine := [path for path, field in fields if field.get("type") == "timestamp"]:
        found.append(_named(_MILLISECONDS, fine))
    unknown = sorted(set(readers) - _DELTA_HARMLESS)
    return found + [
        Risk(name, REFUSED, "engines refuse a reader feature that they do not know",
             "https://github.com/delta-io/delta/blob/master/PROTOCOL.md#table-features", newer=True)
        for name in unknown
    ]  # fmt: skip


def iceberg_risks(metadata: Mapping[str, Any]) -> list[Risk]:
    """Judge an Iceberg table by its metadata file."""
    found = [_FORMAT_V3] if metadata.get("format-version", 1) > 2 else []  # noqa: PLR2004 -- what engines share
    current = metadata.get("current-snapshot-id")
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots", ())}
    summary = snapshots.get(current, {}).get("summary", {})
    return found + ([_EQUALITY_DELETES] if int(summary.get("total-equality-deletes", 0)) else [])


def _named(risk: Risk, columns: Sequence[str]) -> Risk:
    name = f"{risk.feature}: {', '.join(columns)}" if columns else risk.feature
    return Risk(name, risk.effect, risk.consequence, risk.link)


def _fields(kind: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every field of a Delta schema with its dotted path, those inside of other fields too."""
    if not isinstance(kind, Mapping):
        return
    for field in kind.get("fields", ()):
        here = f"{path}{field['name']}"
        yield here, field
        yield from _fields(field["type"], f"{here}.")
    for part in ("elementType", "keyType", "valueType"):
        inner = kind.get(part)
        if isinstance(inner, str):
            yield f"{path}{part}", {"type": inner}
        else:
            yield from _fields(inner, path)
