"""A pool of connections to one endpoint."""

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
        # How often the pool was closed: a connection of an earlier generation is closed when it is returned.
        self._generation = 0

    @property
    def used(self) -> int:
        """The number of connections in use."""
        return self._used

    @contextmanager
    def connection(self, deadline: Deadline) -> Iterator[Connection]:
        """Give a connection; after an error in the block it is closed, otherwise it returns to the pool.

        Raises BusyError if none becomes free in time, OSError if none can be opened.
        """
        if not self._free.acquire(timeout=deadline.remaining(self._options.borrow)):
            used = counted(self._options.connections, "connection is", "connections are")
            raise BusyError(
                f"{self._endpoint}: none is free, and {used} in use for {self._options.borrow:g} s"
            )
        connection = None
        try:
            with self._lock:
                self._used += 1
                generation = self._generation
            connection = self._idle_connection() or Connection(self._endpoint, self._options, deadline)
            yield connection
        except BaseException:
            if connection:
                connection.close()
            raise
        else:
            with self._lock:
                if current := generation == self._generation:
                    self._idle.append(connection)
            if not current:
                connection.close()
        finally:
            with self._lock:
                self._used -= 1
            self._free.release()

    def _idle_connection(self) -> Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            age = time.monotonic() - connection.opened_at
            if age < self._options.lifetime and connection.usable():
                return connection
            connection.close()

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are returned."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._generation += 1
        for connection in idle:
            connection.close()
