"""Where the blocks of tables lie, for the assertions and for the report (`build/report/tables.json`)."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from suites.testbed.namenode import File, NameNode
from suites.testbed.waiting import wait_for

# A write returns with the first replica; the others report to the NameNode within moments.
_REPORTED_SECONDS = 15


@dataclass(frozen=True)
class Placement:
    """Files and blocks of one table; `nodes` counts the replicas on each machine.

    `replicas_min` is the number of distinct machines that hold the block with the fewest of them; without a
    block it is what was expected.
    """

    table: str
    format: str
    files: int
    blocks: int
    bytes: int
    replicas_expected: int
    replicas_min: int
    nodes: dict[str, int]

    @property
    def complete(self) -> bool:
        """Tell whether the table has blocks, and every one as many replicas as expected."""
        return self.blocks > 0 and self.replicas_min >= self.replicas_expected


def place(
    table: str, fmt: str, files: Sequence[File], expected: int, name_of: Callable[[str], str]
) -> Placement:
    """Sum up the files of a table; `name_of` turns a DataNode's `address:port` into a machine's name."""
    holders = [{name_of(address) for address in block.datanodes} for file in files for block in file.blocks]
    return Placement(
        table=table,
        format=fmt,
        files=len(files),
        blocks=len(holders),
        bytes=sum(file.bytes for file in files),
        replicas_expected=expected,
        replicas_min=min(map(len, holders), default=expected),
        nodes=dict(sorted(Counter(node for nodes in holders for node in nodes).items())),
    )


class Ledger:
    """The placements of this run's tables."""

    def __init__(self, namenode: NameNode, expected: int, name_of: Callable[[str], str]) -> None:
        self._namenode = namenode
        self._expected = expected
        self._name_of = name_of
        self.placements: list[Placement] = []

    def measure(self, table: str, fmt: str, path: str) -> Placement | None:
        """Wait until all replicas of the blocks below `path` are reported; record and return the placement.

        After the timeout an incomplete placement is recorded as it is. Without a block it is None, and not
        recorded.
        """
        with contextlib.suppress(TimeoutError):
            wait_for(
                f"replicas of {table}",
                lambda: not (current := self._look(table, fmt, path)).blocks or current.complete,
                seconds=_REPORTED_SECONDS,
            )
        placement = self._look(table, fmt, path)
        if not placement.blocks:
            return None
        self.placements.append(placement)
        return placement

    def write(self, path: Path) -> None:
        """Write what was kept."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(placement) for placement in self.placements], indent=1) + "\n")

    def _look(self, table: str, fmt: str, path: str) -> Placement:
        return place(table, fmt, self._namenode.files(path), self._expected, self._name_of)
