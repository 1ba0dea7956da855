"""Refresh a value in the background for all browsers, one refresh at a time, and none without a browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Condition
from typing import Generic, NoReturn, TypeVar

from lakehouse.errors import LakehouseError

T = TypeVar("T")


@dataclass(frozen=True)
class Snapshot(Generic[T]):
    """The last value, its time, and the deadline of the next one (both of the monotonic clock).

    `trouble` is the error of the last refresh, or empty; `number` changes with each refresh.
    """

    value: T
    at: float
    due: float
    trouble: str = ""
    number: int = 0

    def stale(self, now: float) -> bool:
        """Return whether a newer value is overdue."""
        return bool(self.trouble) or now > self.due


class Watch(Generic[T]):
    """Refresh a value `every` so many seconds while browsers request it, and keep the last one.

    A refresh takes `limit` seconds at most. It is followed by a pause of at least `rest` times its duration.
    """

    def __init__(
        self, look: Callable[[], T], first: T, *, every: float, limit: float, rest: float = 0.0
    ) -> None:
        self._look = look
        self._every = every
        self._limit = limit
        self._rest = rest
        self._request = Condition()
        self._requested = False
        created = time.monotonic()
        self.snapshot = Snapshot(first, created, created + every + limit)

    def show(self) -> Snapshot[T]:
        """Return the last snapshot, and request the next refresh."""
        with self._request:
            self._requested = True
            self._request.notify()
        return self.snapshot

    def run(self) -> NoReturn:
        """Refresh forever. An error is kept as trouble, beside the last value."""
        while True:
            with self._request:
                self._request.wait_for(lambda: self._requested)
                self._requested = False
            time.sleep(self.once())

    def once(self) -> float:
        """Refresh once, and return the pause in seconds."""
        began, previous = time.monotonic(), self.snapshot
        try:
            snapshot = Snapshot(self._look(), time.monotonic(), 0.0)
        except (LakehouseError, OSError, ValueError, LookupError) as error:
            snapshot = replace(previous, trouble=" ".join(str(error).split()) or type(error).__name__)
        ended = time.monotonic()
        pause = max(began + self._every - ended, self._rest * (ended - began), 0.0)
        self.snapshot = replace(snapshot, due=ended + pause + self._limit, number=previous.number + 1)
        return pause
