"""Manifests and lists of manifests of Iceberg tables, as PyIceberg writes them."""

from __future__ import annotations

import io
from typing import Any

from pyiceberg.io import InputFile, OutputFile, OutputStream
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

SCHEMA = Schema(
    NestedField(1, "a", IntegerType(), required=False), NestedField(2, "ä", StringType(), required=False)
)
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "ä"))
DATA, POSITIONS, EQUALITY = DataFileContent
COUNTS: dict[str, Any] = dict.fromkeys(
    (f"{state}_{what}_count" for state in ("added", "existing", "deleted") for what in ("files", "rows")), 0
)


class Output(OutputFile):
    """A file in memory, as PyIceberg writes it."""

    content = b""

    def __len__(self) -> int:
        return len(self.content)

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> InputFile:
        raise NotImplementedError

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002 -- PyIceberg's signature
        stream = io.BytesIO()
        close = stream.close

        def closed() -> None:
            self.content = stream.getvalue()
            close()

        stream.close = closed  # type: ignore[method-assign]
        return stream


def manifest(
    *files: tuple[str, DataFileContent], codec: Any = "deflate", status: Any = ManifestEntryStatus.ADDED
) -> bytes:
    """An Avro file that names these files."""
    out = Output("hdfs://c/m")
    with write_manifest(2, SPEC, SCHEMA, out, 7, codec) as writer:
        for number, (path, content) in enumerate(files):
            file = DataFile.from_args(
                content=content,
                file_path=path,
                file_format=FileFormat.PARQUET,
                partition=Record("\u00e4" * number),
                record_count=2**40 + number,
                file_size_in_bytes=300,
                column_sizes={1: 10, 2: 20},
                value_counts={1: 10},
                null_value_counts={},
                nan_value_counts=None,
                lower_bounds={1: b"\x00\x01", 2: b""},
                upper_bounds={2: b"z"},
                split_offsets=[4, 5],
                equality_ids=[1] if content == EQUALITY else None,
                sort_order_id=None,
            )
            writer._writer.write_block(
                [
                    writer.prepare_entry(
                        ManifestEntry.from_args(
                            status=status, snapshot_id=7, sequence_number=1, data_file=file
                        )
                    )
                ]
            )
            writer._added_files += 1
    return out.content


def manifest_list(*paths: str) -> bytes:
    """An Avro file that names these manifests: of data the first one, of deletes the others."""
    out = Output("hdfs://c/list")
    with write_manifest_list(2, out, 7, None, 1, "deflate") as writer:
        writer.add_manifests(
            [
                ManifestFile.from_args(
                    manifest_path=path,
                    manifest_length=number,
                    partition_spec_id=3,
                    content=ManifestContent.DELETES if number else ManifestContent.DATA,
                    sequence_number=1,
                    min_sequence_number=1,
                    added_snapshot_id=7,
                    **COUNTS,
                )
                for number, path in enumerate(paths)
            ]
        )
    return out.content
