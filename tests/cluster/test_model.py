"""Sequences of operations go as the model has it, drawn for half an hour; without a fix they diverge."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import lakehouse_clients
import pytest

from lakehouse import run
from suites.matrix.cross.engines import Engines
from suites.matrix.model import limits, recorded
from suites.matrix.model.exploring import explore
from suites.matrix.model.fixes import FIXES, Fix
from suites.matrix.model.recorded import Example
from suites.matrix.model.replay import replay
from suites.matrix.model.world import ClusterWorld
from suites.testbed import connect_server, endpoints, sessions, tables
from suites.testbed.databases import Databases
from suites.testbed.endpoints import DEFAULT_PATH
from suites.testbed.formats import ONE_OF_EACH_FAMILY
from suites.testbed.namenode import NameNode
from suites.testbed.transport import reach

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

SECONDS = 30 * 60
# Its seed shows a fault of simulated engines in at most ten sequences.
SECONDS_OF_A_FIX = 10 * 60
# What draws the sequences of an earlier run again.
SEED = "LAKEHOUSE_MODEL_SEED"
FOUND = run.BUILD / "model"
EXAMPLES = recorded.load()


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    known = endpoints.load(run.ROOT / DEFAULT_PATH)
    with reach(known) as nodes, connect_server.running(known, nodes):
        namenode = NameNode(known.namenode.http, known.users["hdfs"])
        made = Databases("model", tables.suffix(), ONE_OF_EACH_FAMILY, known, namenode)
        made.create(sessions.spark(known))
        yield made
        made.drop()


@pytest.fixture(scope="module")
def engines(databases: Databases) -> Engines:
    known = databases.endpoints
    clients = lakehouse_clients.connect(known.path)
    return Engines(sessions.spark(known), sessions.trino(known), sessions.flink(known), clients)


@pytest.mark.parametrize(
    ("example", "fix"),
    [
        pytest.param(example, FIXES[name], id=f"{example}, {name}")
        for example in EXAMPLES
        for name in example.without
    ],
)
def test_a_recorded_sequence_diverges_without_the_fix_and_not_with_it(
    example: Example,
    fix: Fix,
    engines: Engines,
    databases: Databases,
    record_property: Callable[[str, object], None],
) -> None:
    with fix.taken_out(engines, databases, predictions=False) as without, closing(without()) as world:
        divergence = replay(example.sequence, world, limits.load())
    assert divergence, f"without {fix} all readers return what they must"
    record_property("note", f"{divergence.engine}, step {divergence.place}, {divergence.kind}")
    with closing(ClusterWorld(engines, databases)) as world:
        assert replay(example.sequence, world, limits.load()) is None


@pytest.mark.parametrize("fix", [fix for fix in FIXES.values() if fix.seed is not None], ids=str)
def test_without_a_fix_its_fault_is_found_from_nothing(
    fix: Fix, engines: Engines, databases: Databases, record_property: Callable[[str, object], None]
) -> None:
    assert fix.seed is not None
    with fix.taken_out(engines, databases) as without:
        exploration = explore(
            lambda: closing(without()),
            limits.load(),
            seed=fix.seed,
            seconds=SECONDS_OF_A_FIX,
            enough=1,
            attempts=0,
        )
    assert exploration.found, f"{exploration.carried_out} sequences of seed {fix.seed} go well without {fix}"
    [(divergence, sequence)] = exploration.found
    with closing(ClusterWorld(engines, databases)) as world:
        assert replay(sequence, world, limits.load()) is None
    record_property(
        "note",
        f"sequence {exploration.carried_out} of seed {fix.seed}: {divergence.engine}, {divergence.kind}",
    )


def test_half_an_hour_of_sequences_goes_as_the_model_has_it(
    engines: Engines, databases: Databases, record_property: Callable[[str, object], None]
) -> None:
    seed = int(os.environ.get(SEED) or secrets.randbits(32))
    print(f"{SEED}={seed}")  # noqa: T201 -- with it the same sequences are drawn again
    exploration = explore(
        lambda: closing(ClusterWorld(engines, databases)), limits.load(), seed=seed, seconds=SECONDS
    )
    record_property("note", f"{exploration.carried_out} sequences, seed {seed}")
    examples = [
        Example(f"{place} of seed {seed}", sequence, seed)
        for place, (_, sequence) in enumerate(exploration.found, 1)
    ]
    if examples:
        written = _write(FOUND / f"{seed}.yml", recorded.dump(examples))
        told = "\n".join(str(divergence) for divergence, _ in exploration.found)
        pytest.fail(f"seed {seed}\n{told}\n{recorded.dump(examples)}next: less {written}")


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
