"""Every cell of the matrix is executed, and goes as declared in cells.yml."""

from __future__ import annotations

import pytest

from smoke.matrix import cells
from smoke.matrix.cells import Cell, Expected
from smoke.matrix.workers import Workers

# A cell waits for those before it in its engine.
_SECONDS = 600


@pytest.mark.parametrize("cell", cells.load(), ids=str)
def test_cell(cell: Cell, request: pytest.FixtureRequest) -> None:
    if cell.expected is Expected.ABSENT:
        pytest.skip(cell.reason)
    workers: Workers = request.getfixturevalue("workers")
    outcome = workers.outcome(cell, _SECONDS)
    request.node.user_properties.extend(("statement", text) for text in outcome.statements)
    if outcome.message:
        request.node.user_properties.append(("message", outcome.message))
    assert not outcome.failure, f"{cell}: {outcome.failure}"
