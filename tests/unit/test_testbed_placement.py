from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from suites.testbed.namenode import Block, File, NameNode
from suites.testbed.placement import Ledger, place

NAMES = {"10.0.0.1:9866": "n1", "10.0.0.2:9866": "n2", "10.0.0.3:9866": "n3", "10.0.0.3:9867": "n3"}


def file(*blocks: tuple[str, ...]) -> File:
    return File("/t/f", 10, 3, tuple(Block(f"blk_{n}", 5, holders) for n, holders in enumerate(blocks)))


def test_the_worst_block_counts() -> None:
    good = ("10.0.0.1:9866", "10.0.0.2:9866", "10.0.0.3:9866")
    placement = place("d.t", "iceberg", [file(good), file(good, good[:2])], 3, NAMES.__getitem__)
    assert (placement.files, placement.blocks, placement.bytes) == (2, 3, 20)
    assert placement.replicas_min == 2
    assert placement.nodes == {"n1": 3, "n2": 3, "n3": 2}
    assert not placement.complete


def test_two_datanodes_of_one_machine_are_one_place() -> None:
    placement = place("d.t", "delta", [file(("10.0.0.3:9866", "10.0.0.3:9867"))], 2, NAMES.__getitem__)
    assert placement.replicas_min == 1


def test_a_table_without_blocks_is_not_complete() -> None:
    assert not place("d.t", "delta", [], 3, NAMES.__getitem__).complete


class Answers:
    """A NameNode that says another thing each time; the last one again and again."""

    def __init__(self, *answers: list[File]) -> None:
        self.answers = list(answers)

    def files(self, _: str) -> list[File]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_the_ledger_waits_for_late_reports(tmp_path: Path) -> None:
    early, late = [file(("10.0.0.1:9866",))], [file(("10.0.0.1:9866", "10.0.0.2:9866"))]
    ledger = Ledger(cast("NameNode", Answers(early, early, late)), 2, NAMES.__getitem__)
    placement = ledger.measure("d.t", "iceberg", "/t")
    assert placement is not None
    assert placement.complete

    ledger.write(tmp_path / "report" / "tables.json")
    assert json.loads((tmp_path / "report" / "tables.json").read_text()) == [
        {
            "table": "d.t",
            "format": "iceberg",
            "files": 1,
            "blocks": 1,
            "bytes": 10,
            "replicas_expected": 2,
            "replicas_min": 2,
            "nodes": {"n1": 1, "n2": 1},
        }
    ]


def test_the_ledger_leaves_out_what_has_no_block() -> None:
    ledger = Ledger(cast("NameNode", Answers([])), 3, NAMES.__getitem__)
    assert ledger.measure("d.t", "iceberg", "/t") is None
    assert ledger.placements == []
