"""File systems in memory, for what asks which files of a table are there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lakehouse.catalog import readable


@dataclass
class Files:
    """Files by URI, and folders by their names."""

    contents: Mapping[str, bytes] = field(default_factory=dict)
    folders: Mapping[str, list[str]] = field(default_factory=dict)

    # Of which the NameNode names no DataNode that answers.
    unreadable: Collection[str] = ()

    def holds(self, uri: str) -> bool:
        return uri.startswith("hdfs://")

    def size(self, uri: str) -> int | None:
        return len(self.contents[uri]) if uri in self.contents else 0 if uri in self.folders else None

    def exists(self, uri: str) -> bool:
        return uri in self.contents or uri in self.folders

    def read(self, uri: str) -> bytes:
        if uri in self.unreadable:
            raise readable.UnreadableError(f"OPEN {uri}: no DataNode has it", "lakehouse status")
        return self.contents[uri]

    def names(self, uri: str) -> list[str]:
        return self.folders.get(uri, [])


@dataclass
class Complete:
    """Every file and folder is there but those that are named; a file says nothing in JSON.

    `listed` are the names in every folder.
    """

    missing: Collection[str] = ()
    listed: Collection[str] = tuple(f"ds={number}" for number in (*range(1_000), "x"))
    asked: list[str] = field(default_factory=list)

    def holds(self, uri: str) -> bool:
        return bool(uri)

    def size(self, uri: str) -> int | None:
        self.asked.append(uri)
        return None if uri in self.missing else 2

    def exists(self, uri: str) -> bool:
        return self.size(uri) is not None

    def read(self, uri: str) -> bytes:
        self.asked.append(uri)
        return b"{}"

    def names(self, uri: str) -> list[str]:
        self.asked.append(uri)
        return [one for one in self.listed if f"{uri}/{one}" not in self.missing]
