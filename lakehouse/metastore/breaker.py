"""A circuit breaker: an endpoint that fails repeatedly gets no calls for a while, then one probe."""

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
        self._threshold, self._rest, self._clock = failures, rest, clock
        self._lock = threading.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._probing = False

    @property
    def state(self) -> State:
        """The state; reading it starts no probe."""
        with self._lock:
            if self._failures < self._threshold:
                return State.CLOSED
            return State.PROBING if self._probing or self._clock() >= self._retry_at else State.OPEN

    @property
    def resting(self) -> bool:
        """Whether the breaker is open or half-open."""
        return self.state is not State.CLOSED

    def allows(self) -> bool:
        """Return whether a call may use the endpoint; an allowed call reports its result."""
        with self._lock:
            if self._failures < self._threshold:
                return True
            if self._probing or self._clock() < self._retry_at:
                return False
            self._probing = True
            return True

    def record_success(self) -> None:
        """Close the breaker: the endpoint has answered."""
        with self._lock:
            self._failures, self._probing = 0, False

    def record_failure(self) -> None:
        """Count a failure; the breaker stays open for `rest` seconds from now on."""
        with self._lock:
            self._failures += 1
            self._probing = False
            self._retry_at = self._clock() + self._rest

    def release_probe(self) -> None:
        """Let another call probe: the allowed one has not used the endpoint."""
        with self._lock:
            self._probing = False
