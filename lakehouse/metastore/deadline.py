"""The moment at which a call ends, whatever it waits for."""

from __future__ import annotations

import threading
import time

from lakehouse.errors import UsageError
from lakehouse.metastore.errors import DeadlineError


class Deadline:
    """A number of seconds from now on; with 0 or less it is over at once.

    Raises UsageError for what is no number of seconds that the system can wait for.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds <= threading.TIMEOUT_MAX:
            raise UsageError(f"seconds={seconds} is no deadline; give a number of seconds, such as 20")
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
