"""Features of tables that another engine reads wrongly or not at all: pure functions over metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

WRONG = "wrong rows"
FILTERED = "wrong filters"
CUT = "cut values"
LATER = "wrong later"
REFUSED = "refused"
SPREADS = "refused, and other tables with it"
LOST = "lost files"
UNKNOWN = "unknown"
# What a run of the check ends with 1 for.
SERIOUS = frozenset({WRONG, FILTERED, SPREADS, LOST, UNKNOWN})
SPARK, TRINO, FLINK, PYICEBERG, DELTA_RS, DUCKDB, POLARS = (
    "spark", "trino", "flink", "pyiceberg", "delta-rs", "duckdb", "polars",
)  # fmt: skip
# DuckDB and Polars read Iceberg tables through PyIceberg.
PYTHON = (PYICEBERG, DUCKDB, POLARS)
OF_ICEBERG = (SPARK, TRINO, FLINK, *PYTHON)
OF_DELTA = (SPARK, TRINO, DELTA_RS, DUCKDB, POLARS)
OF_HIVE = (SPARK, TRINO, FLINK)
# Of the names that a line shows: a schema may have thousands, each as long as its writer likes.
_SHOWN_NAMES, _SHOWN_LETTERS = 5, 60


@dataclass(frozen=True)
class Risk:
    """One feature of a table: what engines make of it, and the upstream issue or the command that helps.

    `effect` is WRONG (no error, other rows), FILTERED (no error, a filter misses rows), CUT (no error, less
    precise values), LATER (right until the table is changed), REFUSED (an error), SPREADS (an error, also for
    who lists the columns of other tables), LOST (a DROP removes another's files), or UNKNOWN (the table's
    metadata could not be read, so it is unknown).
    `newer` is one that an older library of the format may not know.
    `engines` are those of which a whole read of the table has this effect; none where it depends on the call.
    """

    feature: str
    effect: str
    consequence: str
    link: str
    newer: bool = False
    engines: tuple[str, ...] = ()

    def of(self, names: Sequence[str]) -> Risk:
        """Return the risk with the names of its columns or values, as many as fit a line."""
        if not names:
            return self
        labels = [name if len(name) <= _SHOWN_LETTERS else f"{name[:_SHOWN_LETTERS]}..." for name in names]
        remainder = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        return replace(self, feature=f"{self.feature}: {', '.join(labels[:_SHOWN_NAMES])}{remainder}")


def predicted(risks: Sequence[Risk], engine: str) -> set[str]:
    """Return the effects that a whole read of a table by an engine has; none if it reads it rightly."""
    return {risk.effect for risk in risks if engine in risk.engines}


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
    engines=(TRINO,),
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
    engines=(TRINO,),
)
_NEW_PROTOCOL = Risk(
    "protocol",
    REFUSED,
    "engines refuse a reader version above 3",
    "https://github.com/delta-io/delta/blob/master/PROTOCOL.md#table-features",
    newer=True,
    engines=OF_DELTA,
)
_READER_VERSION = 3
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
    # A checkpoint is a table of columns: fields that a legacy protocol lacks are null there, not absent.
    readers, writers = protocol.get("readerFeatures") or (), protocol.get("writerFeatures") or ()
    if int(protocol.get("minReaderVersion") or 1) > _READER_VERSION:
        return [_NEW_PROTOCOL]
    features = {*readers, *writers}
    configuration = metadata.get("configuration") or {}
    fields = list(_fields(metadata.get("schema", {})))
    risks = [risk for name, risk in _DELTA_FEATURES.items() if name in features]
    widened = [path for path, field in fields if field.get("metadata", {}).get("delta.typeChanges")]
    if widened or features & {"typeWidening", "typeWidening-preview"}:
        risks.append(_WIDENED.of(widened))
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        risks.append(_MAPPED)
    if fine := [path for path, field in fields if field.get("type") == "timestamp"]:
        risks.append(_MILLISECONDS.of(fine))
    unknown = sorted(set(readers) - _DELTA_HARMLESS)
    return risks + [
        Risk(name, REFUSED, "engines refuse a reader feature that they do not know",
             "https://github.com/delta-io/delta/blob/master/PROTOCOL.md#table-features", newer=True)
        for name in unknown
    ]  # fmt: skip


def _fields(kind: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every field of a Delta schema, nested ones included, with its dotted path."""
    if not isinstance(kind, Mapping):
        return
    for field in kind.get("fields", ()):
        field_path = f"{path}{field['name']}"
        yield field_path, field
        yield from _fields(field["type"], f"{field_path}.")
    for part in ("elementType", "keyType", "valueType"):
        inner = kind.get(part)
        if isinstance(inner, str):
            yield f"{path}{part}", {"type": inner}
        else:
            yield from _fields(inner, path)
