"""Recorded sequences of operations go as the model has it, for every engine that reads the tables."""

from __future__ import annotations

from contextlib import closing

import pytest

from suites.matrix.cross.engines import Engines
from suites.matrix.model import limits, recorded
from suites.matrix.model.recorded import Example
from suites.matrix.model.replay import replay
from suites.matrix.model.world import ClusterWorld
from suites.testbed.databases import Databases


@pytest.mark.operation("sequence: {example}", engine="all")
@pytest.mark.parametrize("example", recorded.load(), ids=str)
def test_a_recorded_sequence_goes_as_the_model_has_it(
    example: Example, engines: Engines, matrix_databases: Databases
) -> None:
    with closing(ClusterWorld(engines, matrix_databases)) as world:
        divergence = replay(example.sequence, world, limits.load())
    assert divergence is None, f"{divergence}\n{recorded.dump([example])}"
