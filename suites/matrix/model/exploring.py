"""Replay random sequences until a deadline, and shrink those that diverge."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

import hypothesis
from hypothesis import HealthCheck, Phase, settings

from suites.matrix.model.limits import Limits
from suites.matrix.model.replay import Divergence, World, replay
from suites.matrix.model.sequences import sequences
from suites.matrix.model.shrinking import shrink
from suites.matrix.model.steps import Sequence

# To make a sequence short: each attempt carries out a whole one.
_ATTEMPTS = 15
# More than fit into any time.
_MOST = 1_000_000


class _OverError(Exception):
    """The time is over, or enough was found."""


@dataclass
class Exploration:
    """A short sequence for each kind of divergence, and how many sequences were carried out."""

    found: list[tuple[Divergence, Sequence]] = field(default_factory=list)
    carried_out: int = 0


def explore(  # noqa: PLR0913 -- each is of another kind
    world: Callable[[], AbstractContextManager[World]],
    limits: Limits,
    *,
    seed: int,
    seconds: float,
    enough: int = _MOST,
    attempts: int = _ATTEMPTS,
) -> Exploration:
    """Draw sequences by a seed, each replayed in a new world, until `enough` kinds have diverged.

    No sequence begins after `seconds`; a running one ends. A divergence is shrunk in at most `attempts`.
    """
    exploration = Exploration()
    end = time.monotonic() + seconds

    def diverging(sequence: Sequence) -> Divergence | None:
        with world() as replay_world:
            exploration.carried_out += 1
            return replay(sequence, replay_world, limits)

    @hypothesis.seed(seed)
    @settings(
        max_examples=_MOST, phases=[Phase.generate], deadline=None, database=None, derandomize=False,
        report_multiple_bugs=False, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(sequences())
    def carry_out(sequence: Sequence) -> None:
        if time.monotonic() > end or len(exploration.found) >= enough:
            raise _OverError
        divergence = diverging(sequence)
        kinds = [_kind(earlier) for earlier, _ in exploration.found]
        if divergence is None or _kind(divergence) in kinds:
            return
        last = [divergence]

        def diverges_alike(shorter: Sequence) -> bool:
            shorter_divergence = diverging(shorter)
            if shorter_divergence is None or _kind(shorter_divergence) != _kind(divergence):
                return False
            last[0] = shorter_divergence
            return True

        short = shrink(sequence[: divergence.place], diverges_alike, attempts)
        exploration.found.append((last[0], short))

    with suppress(_OverError):
        carry_out()
    return exploration


def _kind(divergence: Divergence) -> tuple[str, str, str, str]:
    """Return what two divergences of one cause share."""
    step = divergence.step
    return step.action, step.engine, divergence.engine, divergence.kind
