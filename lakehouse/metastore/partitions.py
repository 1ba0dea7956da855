"""Reads many partitions by their names: in chunks that halve where a metastore cannot answer so many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lakehouse.metastore.errors import DeadlineError, IncompleteError

# Asks for the partitions of some names.
Ask = Callable[[list[str]], Sequence[Any]]
# Gives the name of a partition.
Name = Callable[[Any], str]


def by_names(ask: Ask, name: Name, names: Sequence[str], chunk: int) -> Iterator[Any]:
    """Give the partitions in the order of their names.

    A chunk that cannot be had is asked for in halves, down to a single one. Raises IncompleteError with the
    first name that the metastore has left out, and what a single one is refused with.
    """
    for start in range(0, len(names), chunk):
        yield from _chunk(ask, name, names[start : start + chunk])


def _chunk(ask: Ask, name: Name, names: Sequence[str]) -> Iterator[Any]:
    try:
        found = {name(one): one for one in ask(list(names))}
    except DeadlineError:
        raise
    except Exception:
        if len(names) == 1:
            raise
        half = len(names) // 2
        yield from _chunk(ask, name, names[:half])
        yield from _chunk(ask, name, names[half:])
        return
    for one in names:
        if one not in found:
            raise IncompleteError(f"the metastore has left out partition {one} of {len(names)}")
        yield found[one]
