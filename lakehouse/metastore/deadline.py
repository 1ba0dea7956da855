"""The deadline of a call."""

from __future__ import annotations

import threading
import time

from lakehouse.errors import UsageError
from lakehouse.metastore.errors import DeadlineError


class Deadline:
    """A number of seconds from now on; with 0 or less it has passed at once.

    Raises UsageError for a number of seconds that the system cannot wait for.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds <= threading.TIMEOUT_MAX:
            raise UsageError(f"seconds={seconds} is no deadline; give a number of seconds, such as 20")
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._until

    def remaining(self, limit: float | None = None) -> float:
        """Return the seconds until the deadline, at most `limit`; DeadlineError when it has passed."""
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise DeadlineError(f"no answer within {self.seconds:g} s")
        return seconds if limit is None else min(seconds, limit)
