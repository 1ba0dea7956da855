"""Replicas of the tables' blocks, as the NameNode reported to the smoke suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.report import record
from lakehouse.report.record import Record
from plugins.module_utils.lakehouse.counting import counted


@dataclass(frozen=True)
class Table:
    """The files of one table: their blocks, their size, and how many replicas lie on each node.

    `replicas_min` is that of the block with the fewest replicas on distinct nodes.
    """

    name: str
    format: str
    files: int
    blocks: int
    bytes: int
    replicas_expected: int
    replicas_min: int
    nodes: Mapping[str, int]

    @property
    def shortage(self) -> str:
        """What the worst block lacks; empty if it lacks nothing, or if there is no block."""
        if not self.blocks or self.replicas_min >= self.replicas_expected:
            return ""
        return f"a block has {self.replicas_min} of {counted(self.replicas_expected, 'replica')}"


def read(path: Path) -> tuple[Table, ...]:
    """Read `tables.json`; LakehouseError names what is missing or wrong."""
    return tuple(_table(entry) for entry in record.load(path, "make smoke").entries())


def nodes(tables: Iterable[Table], hosts: Iterable[str]) -> list[str]:
    """Return nodes with a replica: those of the inventory in its order, then any others."""
    holders = {node: None for table in tables for node in table.nodes}
    inventory_nodes = [host for host in hosts if host in holders]
    return inventory_nodes + [node for node in holders if node not in inventory_nodes]


def _table(entry: Record) -> Table:
    return Table(
        name=entry.text("table"),
        format=entry.text("format"),
        files=entry.count("files"),
        blocks=entry.count("blocks"),
        bytes=entry.count("bytes"),
        replicas_expected=entry.count("replicas_expected"),
        replicas_min=entry.count("replicas_min"),
        nodes={node: replicas.count() for node, replicas in entry["nodes"].items()},
    )
