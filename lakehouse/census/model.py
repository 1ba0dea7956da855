"""Metadata units: one row per table, segment, file, row group and partition.

The columns, their order and their scopes are those of Apache Drill's TableMetadataUnit
(metastore/metastore-api, org.apache.drill.metastore.components.tables), in snake case: Flink distinguishes
letters by case, Trino does not. Drill's storage plugin is a catalog here, its workspace a database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote_plus


class MetadataType(StrEnum):
    """What a unit describes; ALL and NONE are for requests alone."""

    ALL = "ALL"
    TABLE = "TABLE"
    SEGMENT = "SEGMENT"
    FILE = "FILE"
    ROW_GROUP = "ROW_GROUP"
    PARTITION = "PARTITION"
    NONE = "NONE"


TABLE, SEGMENT, FILE, ROW_GROUP, PARTITION = (
    MetadataType.TABLE,
    MetadataType.SEGMENT,
    MetadataType.FILE,
    MetadataType.ROW_GROUP,
    MetadataType.PARTITION,
)
UNIT_TYPES = frozenset({TABLE, SEGMENT, FILE, ROW_GROUP, PARTITION})
# The key of a table's own unit, and of what is in no partition.
GENERAL_INFO, DEFAULT_SEGMENT = "GENERAL_INFO", "DEFAULT_SEGMENT"
# A key is part of the name of a folder in HDFS, encoded, of at most 255 bytes
# (dfs.namenode.fs-limits.max-component-length).
MOST_KEY_BYTES = 200
_DIGEST_LETTERS = 16
# Of 64 bits, with a sign.
_NUMBERS = 1 << 63


class UnitError(ValueError):
    """A unit has a value in a column outside of its type's scope, or lacks one that it needs."""


class Key(NamedTuple):
    """The partition of the units' table in which a unit is."""

    storage_plugin: str
    workspace: str
    table_name: str
    metadata_key: str


KEYS = Key._fields


@dataclass(frozen=True, kw_only=True)
class MetadataUnit:
    """One row; UnitError for a value in a column outside of its type's scope."""

    storage_plugin: str
    workspace: str
    table_name: str
    owner: str | None = None
    table_type: str | None = None
    metadata_type: MetadataType
    metadata_key: str
    location: str | None = None
    interesting_columns: Sequence[str] | None = None
    schema: str | None = None
    columns_statistics: Mapping[str, str] | None = None
    metadata_statistics: Sequence[str] | None = None
    last_modified_time: int | None = None
    partition_keys: Mapping[str, str] | None = None
    additional_metadata: str | None = None
    metadata_identifier: str | None = None
    column: str | None = None
    locations: Sequence[str] | None = None
    partition_values: Sequence[str] | None = None
    path: str | None = None
    row_group_index: int | None = None
    host_affinity: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Check the type, the keys and the scopes."""
        if self.metadata_type not in UNIT_TYPES:
            raise UnitError(f"{self.metadata_type} is no type of a unit: {', '.join(sorted(UNIT_TYPES))}")
        for name in KEYS:
            if not getattr(self, name):
                raise UnitError(f"a unit of type {self.metadata_type} has no {name}")
        if (self.metadata_type == TABLE) != (self.metadata_key == GENERAL_INFO):
            raise UnitError(f"the key {self.metadata_key} does not fit the type {self.metadata_type}")
        if not -_NUMBERS <= (self.last_modified_time or 0) < _NUMBERS:
            raise UnitError(f"the time {self.last_modified_time} does not fit 64 bits")
        for name in _OUT_OF_SCOPE[self.metadata_type]:
            if getattr(self, name) is not None:
                scope = ", ".join(sorted(SCOPES[name]))
                raise UnitError(f"{name} is a column of {scope}; the unit has the type {self.metadata_type}")

    @property
    def key(self) -> Key:
        """The partition of the units' table."""
        return Key(self.storage_plugin, self.workspace, self.table_name, self.metadata_key)

    def row(self) -> tuple[Any, ...]:
        """Return the values in the order of COLUMNS, in the types that Spark stores."""
        return tuple(_plain(getattr(self, name)) for name in COLUMNS)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> MetadataUnit:
        """Return the unit of a row that has all columns; UnitError."""
        values = {name: row[name] for name in COLUMNS}
        return cls(**{**values, "metadata_type": metadata_type(values["metadata_type"])})


COLUMNS = tuple(field.name for field in fields(MetadataUnit))
_OF_ONE_SCOPE: Mapping[str, frozenset[MetadataType]] = {
    **dict.fromkeys(("owner", "table_type", "interesting_columns", "partition_keys"), frozenset({TABLE})),
    "location": frozenset({TABLE, SEGMENT, FILE, ROW_GROUP}),
    "metadata_identifier": frozenset({SEGMENT, FILE, ROW_GROUP, PARTITION}),
    **dict.fromkeys(("column", "locations", "partition_values"), frozenset({SEGMENT, PARTITION})),
    "path": frozenset({SEGMENT, FILE, ROW_GROUP}),
    **dict.fromkeys(("row_group_index", "host_affinity"), frozenset({ROW_GROUP})),
}
# Column -> types of units that may have a value there.
SCOPES: Mapping[str, frozenset[MetadataType]] = MappingProxyType({
    name: _OF_ONE_SCOPE.get(name, UNIT_TYPES) for name in COLUMNS
})  # fmt: skip
_OUT_OF_SCOPE = {kind: [name for name in COLUMNS if kind not in SCOPES[name]] for kind in UNIT_TYPES}


def metadata_type(name: str) -> MetadataType:
    """Return a type by its name; UnitError for an unknown one."""
    try:
        return MetadataType(name)
    except ValueError:
        raise UnitError(f"{name} is no metadata type: {', '.join(MetadataType)}") from None


def partition_key(name: str) -> str:
    """Return the key of a top-level partition, such as `ds=2026-01-31`.

    A name that is too long for a folder, or equals another key, ends with a digest.
    """
    if name not in {GENERAL_INFO, DEFAULT_SEGMENT, ""} and fits(name):
        return name
    prefix = name
    while not fits(f"{prefix}~{'0' * _DIGEST_LETTERS}"):
        prefix = prefix[: len(prefix) * 3 // 4]
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{prefix}~{digest[:_DIGEST_LETTERS]}"


def fits(name: str) -> bool:
    """Return whether a name can be that of a folder of the units' table, which Java's URLEncoder encodes."""
    encoded = quote_plus(name, safe="*", errors="replace").replace("~", "%7E")
    return len(encoded) <= MOST_KEY_BYTES


def _plain(value: Any) -> Any:
    if isinstance(value, MetadataType):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    return value if value is None or isinstance(value, str | int) else list(value)
