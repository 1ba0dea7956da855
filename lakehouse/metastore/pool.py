"""Connections to one endpoint that are used again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.metastore.connection import Connection
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.errors import BusyError
from lakehouse.metastore.options import Endpoint, Options
from plugins.module_utils.lakehouse.counting import counted


class Pool:
    """At most `options.connections` to one endpoint at a time."""

    def __init__(self, endpoint: Endpoint, options: Options) -> None:
        self._endpoint, self._options = endpoint, options
        self._free = threading.BoundedSemaphore(options.connections)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._used = 0
        # How often it was closed: what was lent before is closed when it comes back.
        self._closed = 0

    @property
    def used(self) -> int:
        """How many are in use now."""
        return self._used

    @contextmanager
    def borrowed(self, deadline: Deadline) -> Iterator[Connection]:
        """Lend a connection, which is not used again where an error comes out of it.

        Raises BusyError where none becomes free in time, OSError where none can be made.
        """
        if not self._free.acquire(timeout=deadline.left(self._options.borrow)):
            used = counted(self._options.connections, "connection is", "connections are")
            raise BusyError(
                f"{self._endpoint}: none is free, and {used} in use for {self._options.borrow:g} s"
            )
        connection = None
        try:
            with self._lock:
                self._used += 1
                closed = self._closed
            connection = self._idling() or Connection(self._endpoint, self._options, deadline)
            yield connection
        except BaseException:
            if connection:
                connection.close()
            raise
        else:
            with self._lock:
                if current := closed == self._closed:
                    self._idle.append(connection)
            if not current:
                connection.close()
        finally:
            with self._lock:
                self._used -= 1
            self._free.release()

    def _idling(self) -> Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                found = self._idle.pop()
            if time.monotonic() - found.made < self._options.lifetime and found.usable():
                return found
            found.close()

    def close(self) -> None:
        """Close those that are unused now, and the others as soon as they are."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._closed += 1
        for one in idle:
            one.close()
