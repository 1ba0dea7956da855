"""Reads many partitions by their names: in chunks that halve where a metastore cannot answer so many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hive_metastore.ttypes import NoSuchObjectException
from thrift.Thrift import TException

from lakehouse.catalog import partition_names
from lakehouse.metastore.errors import (
    BusyError,
    DeadlineError,
    MetastoreError,
    UnavailableError,
    UnsupportedError,
)

# Asks for the partitions of some names.
Ask = Callable[[list[str]], Sequence[Any]]


def by_names(ask: Ask, names: Sequence[str], chunk: int) -> dict[str, Any]:
    """Return the partitions that there are, by their names, in the order of the names.

    A chunk that cannot be had is asked for in halves, down to a single one; raises what that is refused
    with, and at once what fewer names would not change.
    """
    # Hive answers with values, in an order of its own.
    values = {name: tuple(partition_names.values(name)) for name in names}
    distinct = list(values)
    partitions = {
        tuple(partition.values or ()): partition
        for start in range(0, len(distinct), chunk)
        for partition in _chunk(ask, distinct[start : start + chunk])
    }
    return {name: partitions[key] for name, key in values.items() if key in partitions}


def _chunk(ask: Ask, names: list[str]) -> Iterator[Any]:
    try:
        found = ask(names)
    except (MetastoreError, TException) as error:
        if len(names) == 1 or not _is_about_the_number(error):
            raise
        half = len(names) // 2
        yield from _chunk(ask, names[:half])
        yield from _chunk(ask, names[half:])
    else:
        yield from found


def _is_about_the_number(error: Exception) -> bool:
    """Tell whether fewer names may be answered: no call has to wait again for what was not answered."""
    if isinstance(error, UnavailableError):
        return error.sent
    return not isinstance(error, BusyError | DeadlineError | UnsupportedError | NoSuchObjectException)
