"""A local folder as HDFS, and what tests of the census read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakehouse.census.contents import TableName
from lakehouse.census.files import MOST_BYTES, DamagedError, Entry, MissingError, UnavailableError
from lakehouse.census.metastore import HivePartition, Table
from plugins.module_utils.lakehouse.webhdfs import path_of


@dataclass
class FolderFiles:
    """The files below a folder; `hdfs://lake/t` is its folder `t`."""

    root: Path
    reads: list[str] = field(default_factory=list)
    down: bool = False
    refused: str = ""
    # The content of files of this name ends early, by the 12 bytes of an action `txn`.
    cut: str = ""

    def entries(self, uri: str) -> list[Entry] | None:
        folder = self._local(uri)
        if not folder.is_dir():
            return None
        return [
            Entry(
                f"/{path.relative_to(self.root)}",
                0 if path.is_dir() else path.stat().st_size,
                path.stat().st_mtime_ns // 1_000_000,
                path.is_dir(),
                path.stat().st_ino,
            )
            for path in sorted(folder.iterdir())
        ]

    def read(self, uri: str, most: int = MOST_BYTES) -> bytes:
        content = self._content(uri)
        if len(content) > most:
            raise DamagedError(f"{uri} has more than {most} bytes")
        return content

    def part(self, uri: str, offset: int, length: int) -> bytes:
        return self._content(uri)[offset : offset + length]

    def _content(self, uri: str) -> bytes:
        self.reads.append(uri)
        if self.refused and uri.endswith(self.refused):
            raise DamagedError(f"OPEN {uri}: Connection refused")
        try:
            content = self._local(uri).read_bytes()
        except FileNotFoundError:
            raise MissingError(f"{uri} is not there") from None
        return content[:-12] if self.cut and uri.endswith(self.cut) else content

    def _local(self, uri: str) -> Path:
        if self.down:
            raise UnavailableError("the NameNode does not answer")
        if (path := path_of(uri)) is None:
            raise DamagedError(f"{uri} is not in HDFS")
        return self.root / path.lstrip("/")


def table(kind: str, name: str = "t", **values: Any) -> Table:
    """Return a table `x.<name>` at hdfs://lake/<name>."""
    return Table(TableName(kind, "x", name), kind, owner="ann", location=f"hdfs://lake/{name}", **values)


def hive_table(partitions: list[tuple[str, ...]], keys: tuple[str, ...] = (), **values: Any) -> Table:
    """Return a Hive table of Parquet files with partitions in their usual folders."""
    listed = tuple(
        HivePartition(row, "/".join(["hdfs://lake/t", *(f"{k}={v}" for k, v in zip(keys, row, strict=True))]))
        for row in partitions
    )
    columns = tuple((key, "string") for key in keys)
    return table(
        "hive", partitions=listed, partition_keys=columns, columns=(("a", "bigint"),),
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat", **values,
    )  # fmt: skip
