"""One look after another for all who want to see: never two at once, and none while no browser is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Condition
from typing import Generic, NoReturn, TypeVar

from lakehouse.errors import LakehouseError

T = TypeVar("T")


@dataclass(frozen=True)
class Seen(Generic[T]):
    """What was seen last, and when, and when the next is there at the latest (both of the monotonic clock).

    `trouble` is why the last look brought nothing, empty if it did; `number` changes with every look.
    """

    value: T
    at: float
    due: float
    trouble: str = ""
    number: int = 0

    def stale(self, now: float) -> bool:
        """Tell whether there should be something newer."""
        return bool(self.trouble) or now > self.due


class Watch(Generic[T]):
    """Looks `every` so many seconds while a user wants to see, and keeps what it saw.

    A look takes `limit` seconds at most. After it, it rests `rest` times as long as it took.
    """

    def __init__(
        self, look: Callable[[], T], first: T, *, every: float, limit: float, rest: float = 0.0
    ) -> None:
        self._look = look
        self._every = every
        self._limit = limit
        self._rest = rest
        self._wanted = Condition()
        self._somebody = False
        now = time.monotonic()
        self.seen = Seen(first, now, now + every + limit)

    def show(self) -> Seen[T]:
        """Return what was seen last; the next look is wanted."""
        with self._wanted:
            self._somebody = True
            self._wanted.notify()
        return self.seen

    def run(self) -> NoReturn:
        """Look for ever. What cannot be asked is the trouble, and what was seen before is kept."""
        while True:
            with self._wanted:
                self._wanted.wait_for(lambda: self._somebody)
                self._somebody = False
            time.sleep(self.once())

    def once(self) -> float:
        """Look, and return for how many seconds to rest."""
        began, before = time.monotonic(), self.seen
        try:
            seen = Seen(self._look(), time.monotonic(), 0.0)
        except (LakehouseError, OSError, ValueError, LookupError) as error:
            seen = replace(before, trouble=" ".join(str(error).split()) or type(error).__name__)
        ended = time.monotonic()
        pause = max(began + self._every - ended, self._rest * (ended - began), 0.0)
        self.seen = replace(seen, due=ended + pause + self._limit, number=before.number + 1)
        return pause
