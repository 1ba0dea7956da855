"""Read many objects by their names, in chunks that are halved when a metastore cannot answer them."""

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

# Requests the objects with these names.
Ask = Callable[[list[str]], Sequence[Any]]


def by_names(ask: Ask, names: Sequence[str], chunk: int) -> dict[str, Any]:
    """Return the partitions that exist, by their names, in the order of the names.

    A chunk that fails is requested in halves, down to a single name. Raises the error of that, and at once
    an error that does not depend on the number of names.
    """
    # Hive returns partitions with their values, in an order of its own.
    values = {name: tuple(partition_names.values(name)) for name in names}
    distinct = list(values)
    partitions = {tuple(partition.values or ()): partition for partition in requested(ask, distinct, chunk)}
    return {name: partitions[key] for name, key in values.items() if key in partitions}


def requested(ask: Ask, names: Sequence[str], chunk: int) -> Iterator[Any]:
    """Give the objects that are answered to the names, with at most `chunk` names in a request."""
    for start in range(0, len(names), chunk):
        yield from _chunk(ask, list(names[start : start + chunk]))


def _chunk(ask: Ask, names: list[str]) -> Iterator[Any]:
    try:
        partitions = ask(names)
    except (MetastoreError, TException) as error:
        if len(names) == 1 or not _depends_on_number(error):
            raise
        half = len(names) // 2
        yield from _chunk(ask, names[:half])
        yield from _chunk(ask, names[half:])
    else:
        yield from partitions


def _depends_on_number(error: Exception) -> bool:
    """Return whether fewer names may succeed; not for errors that were a wait, as no call waits twice."""
    if isinstance(error, UnavailableError):
        return error.sent
    return not isinstance(error, BusyError | DeadlineError | UnsupportedError | NoSuchObjectException)
