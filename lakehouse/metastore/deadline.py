"""The moment at which a call ends, whatever it waits for."""

from __future__ import annotations

import time

from lakehouse.metastore.errors import DeadlineError


class Deadline:
    """A number of seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        """Tell whether no time is left."""
        return time.monotonic() >= self._until

    def left(self, most: float | None = None) -> float:
        """Return the seconds that are left, `most` at the most; DeadlineError where there are none."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise DeadlineError(f"no answer within {self.seconds:g} s")
        return left if most is None else min(left, most)
