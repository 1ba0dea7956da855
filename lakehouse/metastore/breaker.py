"""Leaves an endpoint alone that has failed again and again, and lets one call find out whether it is back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import StrEnum


class State(StrEnum):
    """Whether calls reach an endpoint."""

    CLOSED = "closed"
    OPEN = "open"
    PROBING = "half-open"


class Breaker:
    """Of one endpoint: closed until `failures` in a row, then open for `rest` seconds, then one probe."""

    def __init__(self, failures: int, rest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._rest, self._clock = failures, rest, clock
        self._lock = threading.Lock()
        self._failed = 0
        self._again = 0.0
        self._probing = False

    @property
    def state(self) -> State:
        """Tell the state without asking for a call."""
        with self._lock:
            if self._failed < self._most:
                return State.CLOSED
            return State.PROBING if self._probing or self._clock() >= self._again else State.OPEN

    @property
    def resting(self) -> bool:
        """Tell whether calls are kept from the endpoint."""
        return self.state is not State.CLOSED

    def allows(self) -> bool:
        """Tell whether a call may try; who was allowed reports how it went."""
        with self._lock:
            if self._failed < self._most:
                return True
            if self._probing or self._clock() < self._again:
                return False
            self._probing = True
            return True

    def worked(self) -> None:
        """Note that the endpoint has answered."""
        with self._lock:
            self._failed, self._probing = 0, False

    def failed(self) -> None:
        """Note that it has not."""
        with self._lock:
            self._failed += 1
            self._probing = False
            self._again = self._clock() + self._rest

    def unused(self) -> None:
        """Note that a call that was allowed has not tried after all."""
        with self._lock:
            self._probing = False
