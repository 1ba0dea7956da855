"""What tests of the timeline share: a database, a local folder as HDFS, and writers of tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakehouse.catalog.psql import Ask
from lakehouse.census.files import MOST_BYTES, DamagedError, MissingError, UnavailableError
from lakehouse.timeline.source import Table
from lakehouse.timeline.tree import Entry
from tests.unit.metastore_database import Database

NOW = 2_000_000_000_000


def ask(database: Database) -> Ask:
    """Run scripts in a database."""

    @contextmanager
    def asked(script: str) -> Iterator[Iterator[bytes]]:
        with closing(database.lines(script)) as lines:
            yield lines

    return asked


@dataclass
class FolderTree:
    """Local files, by their paths or as files of HDFS."""

    down: bool = False
    reads: list[str] = field(default_factory=list)

    def read(self, uri: str, most: int = MOST_BYTES) -> bytes:
        self.reads.append(uri)
        try:
            content = self._local(uri).read_bytes()
        except FileNotFoundError:
            raise MissingError(f"{uri} is not there") from None
        if len(content) > most:
            raise DamagedError(f"{uri} has more than {most} bytes")
        return content

    def status(self, uri: str) -> Entry | None:
        path = self._local(uri)
        return _entry(path) if path.exists() else None

    def names(self, uri: str) -> list[Entry]:
        folder = self._local(uri)
        return [_entry(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []

    def owner(self, uri: str) -> str:
        return "ann" if uri and self._local(uri).exists() else ""

    def _local(self, uri: str) -> Path:
        if self.down:
            raise UnavailableError("the NameNode does not answer")
        return Path("/" + uri.removeprefix("file:").removeprefix("hdfs://lake").lstrip("/"))


def _entry(path: Path) -> Entry:
    modified = path.stat().st_mtime_ns // 1_000_000
    return Entry(path.name, "ann", path.stat().st_size, modified, path.is_dir())


def table(kind: str, location: object = "", **values: Any) -> Table:
    """Return a table `x.t`, the first of the metastore unless `source` is another one."""
    arguments = {"source": 1, "created": 1, "database": "x", "name": "t", "owner": "bob", **values}
    return Table(format=kind, location=str(location), **arguments)
