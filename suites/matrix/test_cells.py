"""Every cell of the matrix is executed, and goes as declared in cells.yml."""

from __future__ import annotations

import pytest

from suites.matrix import cells, switches
from suites.matrix.cells import Cell, Expected
from suites.matrix.proofs import unchanged
from suites.matrix.workers import Workers
from suites.testbed import evidence
from suites.testbed.namenode import NameNode
from suites.testbed.placement import Ledger

# A cell waits for those before it in its engine.
_SECONDS = 600


@pytest.mark.parametrize("cell", cells.load(), ids=str)
def test_cell(cell: Cell, request: pytest.FixtureRequest) -> None:
    """A cell works or is refused as declared: the engine and Spark read back what it has done."""
    note = request.node.user_properties
    note.extend(cell.properties())
    if cell.expected is Expected.ABSENT:
        pytest.skip(cell.reason)
    workers: Workers = request.getfixturevalue("workers")
    outcome = workers.outcome(cell, _SECONDS)
    request.node.stash[evidence.SECONDS] = outcome.seconds
    note.extend(("statement", text) for text in outcome.statements)
    if outcome.message:
        note.append(("message", outcome.said(cell)))
    if switch := cell.behind and switches.of(cell.engine, cell.format):
        note.append(("behind", f"without {switch.setting}: {outcome.behind or 'not measured here'}"))
    assert not outcome.failure, f"{cell}: {outcome.failure}"


@pytest.mark.closing
@pytest.mark.operation("refusals change nothing", engine="all")
def test_tables_that_nobody_was_to_change(workers: Workers) -> None:
    for worker in workers.finished():
        for start, table in worker.stage.shared():
            unchanged(worker.stage.spark, start, table)


@pytest.mark.closing
@pytest.mark.operation("replication", engine="all")
def test_tables_of_every_engine_are_replicated(workers: Workers, ledger: Ledger, namenode: NameNode) -> None:
    for worker in workers.finished():
        for table in worker.stage.written:
            folder = worker.stage.databases.found(table).path
            ledger.measure(table.short, table.format.family, folder)
    short = [placement for placement in ledger.placements if not placement.complete]
    assert not short, "\n".join(map(str, short))
    assert namenode.state()["MissingReplicatedBlocks"] == 0
