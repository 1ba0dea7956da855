"""Iceberg tables in memory: metadata as engines write it, and the manifests of one snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, NestedField, StringType

from lakehouse.tables.table_files import Files
from tests.unit.iceberg_files import COUNTS, Output

PLACE, LIST, MANIFEST = "hdfs://lake/t/metadata/1.metadata.json", "/t/metadata/list", "/t/metadata/manifest"
SCHEMA = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "p", StringType()))
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"), spec_id=1)


class Memory(Files):
    """HDFS without a cluster: files by path, whatever the name of the file system."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.contents = dict(contents)

    def size(self, uri: str) -> int | None:
        found = self.contents.get(_path(uri))
        return None if found is None else len(found)

    def names(self, uri: str) -> list[str]:
        return [path.rpartition("/")[2] for path in self.contents if path.startswith(f"{_path(uri)}/")]

    def read(self, uri: str) -> bytes:
        return self.contents[_path(uri)]

    def part(self, uri: str, offset: int, length: int) -> bytes:
        return self.contents[_path(uri)][offset : offset + length]


def _path(uri: str) -> str:
    return uri.removeprefix("hdfs://lake")


@dataclass
class Written:
    """A table with files of rows (path and value of `p`), of a manifest with partition spec 1."""

    schema: Sequence[Mapping[str, Any]] = ({"id": 1, "name": "id", "required": False, "type": "int"},)
    data: Sequence[tuple[str, str]] = (("hdfs://lake/t/data/1.parquet", "a"),)
    properties: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    status: ManifestEntryStatus = ManifestEntryStatus.ADDED
    live_files: int = 1

    def metadata(self) -> dict[str, Any]:
        """The content of the metadata file."""
        return {
            "format-version": 2,
            "location": "hdfs://lake/t",
            "current-schema-id": 0,
            "schemas": [{"schema-id": 0, "type": "struct", "fields": list(self.schema)}],
            "partition-specs": [
                {"spec-id": 0, "fields": []},
                {"spec-id": 1, "fields": [
                    {"name": "p", "transform": "identity", "source-id": 2, "field-id": 1000}]},
            ],
            "properties": dict(self.properties),
            "current-snapshot-id": 7,
            "snapshots": [{"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": f"hdfs://lake{LIST}"}],
            **self.changes,
        }  # fmt: skip

    def files(self, **more: bytes) -> Memory:
        """The file system with the table, and with more files by path."""
        return Memory({
            _path(PLACE): json.dumps(self.metadata()).encode(),
            LIST: self._list(),
            MANIFEST: self._manifest(),
            **more,
        })  # fmt: skip

    def _manifest(self) -> bytes:
        out = Output(MANIFEST)
        with write_manifest(2, SPEC, SCHEMA, out, 7, "deflate") as writer:
            for path, value in self.data:
                one = DataFile.from_args(
                    content=DataFileContent.DATA, file_path=path, file_format=FileFormat.PARQUET,
                    partition=Record(value), record_count=1, file_size_in_bytes=1, column_sizes={},
                    value_counts={}, null_value_counts={}, nan_value_counts={}, lower_bounds={},
                    upper_bounds={},
                )  # fmt: skip
                writer.add_entry(ManifestEntry.from_args(status=self.status, snapshot_id=7, data_file=one))
        return out.content

    def _list(self) -> bytes:
        out = Output(LIST)
        counts = {**COUNTS, "added_files_count": self.live_files, "existing_files_count": 0}
        with write_manifest_list(2, out, 7, None, 1, "deflate") as writer:
            writer.add_manifests([
                ManifestFile.from_args(
                    manifest_path=f"hdfs://lake{MANIFEST}", manifest_length=1, partition_spec_id=1,
                    content=ManifestContent.DATA, sequence_number=1, min_sequence_number=1,
                    added_snapshot_id=7, **counts,
                )
            ])  # fmt: skip
        return out.content
