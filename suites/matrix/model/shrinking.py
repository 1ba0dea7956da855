"""Shrink a sequence that diverges: remove steps and rows while it still diverges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from suites.matrix.model.steps import Sequence, is_possible


def shrink(sequence: Sequence, diverges: Callable[[Sequence], bool], attempts: int) -> Sequence:
    """Return a sequence of fewer steps and rows for which `diverges` is true, in at most `attempts` calls."""
    remaining = attempts
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(sequence):
            if not remaining:
                return sequence
            remaining -= 1
            if diverges(candidate):
                sequence, smaller = candidate, True
                break
    return sequence


def _smaller(sequence: Sequence) -> Iterator[Sequence]:
    """Yield the possible sequences without some steps, the shortest first, then those without one row."""
    size = len(sequence) // 2
    while size:
        for start in range(len(sequence) - size, -1, -size):
            candidate = sequence[:start] + sequence[start + size :]
            if candidate and is_possible(candidate):
                yield candidate
        size //= 2
    for place, step in enumerate(sequence):
        for row in step.rows if len(step.rows) > 1 else ():
            fewer = replace(
                step, rows=tuple(candidate_row for candidate_row in step.rows if candidate_row != row)
            )
            candidate = (*sequence[:place], fewer, *sequence[place + 1 :])
            if is_possible(candidate):
                yield candidate
