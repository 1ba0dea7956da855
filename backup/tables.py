"""The tables of a catalog as rows of a manifest, each with the metadata that readers need."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from backup.tree import Entry
from plugins.module_utils.lakehouse import table_format
from plugins.module_utils.lakehouse.webhdfs import path_of

_COMMIT = re.compile(r"_delta_log/(\d{20})(\.checkpoint\b.*\.parquet|\.json)$")


@dataclass(frozen=True)
class Table:
    """A table at T0. `metadata` is a path in HDFS; `state` is the same as long as the table's content is.

    `version` is Iceberg's snapshot or Delta's version. `rows` and `checksum` are None where they were not
    counted, with the reason in `unknown`; `columns` are those of the checksum, each with the kind of its
    values.
    """

    database: str
    name: str
    format: str
    location: str
    metadata: str
    version: int | None = None
    state: str = ""
    rows: int | None = None
    checksum: int | None = None
    columns: tuple[tuple[str, str], ...] = ()
    unknown: str = ""

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"

    def json(self) -> dict[str, Any]:
        """A row of the manifest."""
        return asdict(self)


@dataclass
class Inside:
    """The contents of a copy of HDFS, and the problems of tables in it."""

    root: str
    folder: Path
    entries: Mapping[str, Entry]
    problems: list[str] = field(default_factory=list)

    def relative(self, uri: str) -> str | None:
        """Return the path of a URI of HDFS below the root; None if it is elsewhere."""
        path = path_of(uri)
        if path == self.root:
            return ""
        return path.removeprefix(f"{self.root}/") if path and path.startswith(f"{self.root}/") else None

    def below(self, folder: str) -> Iterator[Entry]:
        """Give the files below a folder."""
        return (
            entry
            for path, entry in self.entries.items()
            if path.startswith(f"{folder}/") and not entry.directory
        )


def read(row: Mapping[str, Any]) -> Table:
    """Return the table of a row of a manifest."""
    return Table(**{**row, "columns": tuple(tuple(column) for column in row["columns"])})


def describe(row: Mapping[str, Any], inside: Inside) -> Table:
    """Return a table of a row of `backup/catalog.py`; metadata outside the copy is a problem."""
    parameters = row["parameters"] or {}
    name: dict[str, Any] = {"database": row["database"], "name": row["name"]}
    kind = table_format.of(row["type"], parameters)
    if kind == "view":
        return Table(**name, format="view", location="", metadata="", unknown="a view has no rows of its own")
    storage = row["storage"] or {}
    serde = storage.get("serde") or {"parameters": {}}
    location = str(serde["parameters"].get("path") or storage.get("location") or "")
    if kind == "iceberg":
        return _iceberg(name, location, str(parameters.get("metadata_location", "")), inside)
    if kind == "delta":
        return _delta(name, location, inside)
    return _hive(name, location, inside)


def _missing(name: Mapping[str, str], path: str, inside: Inside) -> None:
    inside.problems.append(f"{name['database']}.{name['name']}: {path} is not in the backup")


def _iceberg(name: dict[str, Any], location: str, metadata: str, inside: Inside) -> Table:
    path, version = inside.relative(metadata), None
    if path is None or path not in inside.entries:
        _missing(name, metadata or "its metadata", inside)
    else:
        content = (inside.folder / path).read_bytes()
        document = json.loads(gzip.decompress(content) if ".gz.metadata" in path else content)
        version = document.get("current-snapshot-id")
        # -1, or no snapshot, is a table without any write.
        version = None if version in (None, -1) else int(version)
    return Table(
        **name, format="iceberg", location=location, metadata=metadata, version=version, state=metadata
    )


def _delta(name: dict[str, Any], location: str, inside: Inside) -> Table:
    path = inside.relative(location)
    log = list(inside.below(f"{path}/_delta_log")) if path is not None else []
    versions = [int(commit[1]) for entry in log if (commit := _COMMIT.search(entry.path))]
    if not versions:
        _missing(name, f"{location}/_delta_log", inside)
    return Table(
        **name, format="delta", location=location, metadata=f"{location}/_delta_log",
        version=max(versions, default=None), state=_state(log),
    )  # fmt: skip


def _hive(name: dict[str, Any], location: str, inside: Inside) -> Table:
    path = inside.relative(location)
    if path is None or path not in inside.entries:
        _missing(name, location or "its folder", inside)
    files = list(inside.below(path)) if path else []
    return Table(**name, format="hive", location=location, metadata=location, state=_state(files))


def _state(files: list[Entry]) -> str:
    lines = sorted(f"{entry.path} {entry.sha256}" for entry in files)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
