"""What a commit says of objects, and how much is read for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakehouse.catalog import snapshot_reader
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Overlay
from tests.unit.catalog_states import days, table, tree

TABLE = Name("hive", "d", "t")


class Counting:
    """`json` that counts what it parses."""

    def __init__(self) -> None:
        self.bytes = 0

    def loads(self, text: bytes | str) -> Any:
        self.bytes += len(text)
        return json.loads(text)


def parsed(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the bytes that are parsed to read each of many partitions, which all have other columns."""
    overlay, counting = Overlay(None), Counting()
    partitions = {
        name: said | {"storage": {"columns": [{"name": f"c{name}", "type": "int"}]}}
        for name, said in days(*(f"{one:05}" for one in range(count))).items()
    }
    commit = snapshot_reader.SnapshotReader(
        overlay, tree(overlay, {"d": {"t": table(partitions=partitions)}})
    )
    monkeypatch.setattr(snapshot_reader, "json", counting)
    for name in commit.partitions(TABLE):
        said = commit.partition(Name("hive", "d", "t", name)) or {}
        assert said["storage"]["columns"][0]["name"] == f"c{name}"
    return counting.bytes


def test_twice_the_partitions_are_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (parsed(count, monkeypatch) for count in (200, 400))
    assert many < 2.2 * few
