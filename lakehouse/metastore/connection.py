"""One connection to a metastore, bounded in each of its steps."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TBufferedTransport, TTransportBase, TTransportException

from lakehouse.metastore import bindings
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.options import Endpoint, Options

bindings.mend()


class _Stream(TTransportBase):  # type: ignore[misc]  # the bindings have no types
    """A socket as Thrift wants it. Each read and write ends with the deadline of the call.

    A time for each packet alone would never end where a packet comes in time again and again.
    """

    def __init__(self, plug: socket.socket) -> None:
        self._plug = plug
        self.left: Callable[[], float] = lambda: 0.0
        self.sent = False

    def isOpen(self) -> bool:  # noqa: N802 -- Thrift's name
        return self._plug.fileno() >= 0

    def close(self) -> None:
        self._plug.close()

    def read(self, size: int) -> bytes:
        self._plug.settimeout(self.left())
        data = self._plug.recv(size)
        if not data:
            raise TTransportException(TTransportException.END_OF_FILE, "the connection was ended")
        return data

    def write(self, data: bytes) -> None:
        self._plug.settimeout(self.left())
        self.sent = True
        self._plug.sendall(data)

    def flush(self) -> None:
        """Nothing is kept back."""


class Connection:
    """A connection as a user. Whoever sees an error on it closes it: a late answer may be on the way."""

    def __init__(self, endpoint: Endpoint, options: Options, deadline: Deadline) -> None:
        """Connect within the deadline; OSError or DeadlineError where that fails."""
        self.made = time.monotonic()
        self._read = options.read
        self._plug = connected(endpoint, deadline, options.connect, options.tls)
        self._stream = _Stream(self._plug)
        protocol = TBinaryProtocolAccelerated(TBufferedTransport(self._stream))
        self._client = ThriftHiveMetastore.Client(protocol)
        if options.user:
            try:
                self.call("set_ugi", (options.user, list(options.groups)), deadline)
            except BaseException:
                self.close()
                raise

    @property
    def sent(self) -> bool:
        """Tell whether the last call has sent anything."""
        return self._stream.sent

    def call(self, method: str, arguments: tuple[Any, ...], deadline: Deadline) -> Any:
        """Call a method of the bindings; whatever they or the socket raise, and DeadlineError."""
        until = Deadline(deadline.left(self._read))
        self._stream.left, self._stream.sent = until.left, False
        return getattr(self._client, method)(*arguments)

    def usable(self) -> bool:
        """Tell whether nothing waits to be read: the end of the connection, or an answer nobody waits for."""
        decrypted = isinstance(self._plug, ssl.SSLSocket) and self._plug.pending()
        return not decrypted and not select.select([self._plug], [], [], 0)[0]

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._plug.close()


def connected(
    endpoint: Endpoint, deadline: Deadline, most: float, tls: ssl.SSLContext | None = None
) -> socket.socket:
    """Return a socket to an endpoint, made in `most` seconds of the deadline; OSError where none can be."""
    until = Deadline(deadline.left(most))
    places = _places(endpoint, until.left())
    last: OSError = OSError(f"{endpoint.host} has no address")
    for family, kind, protocol, _, place in places:
        plug = socket.socket(family, kind, protocol)
        try:
            plug.settimeout(until.left())
            plug.connect(place)
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                plug.settimeout(until.left())
                plug = tls.wrap_socket(plug, server_hostname=endpoint.host)
        except OSError as error:
            plug.close()
            last = error
        except BaseException:
            plug.close()
            raise
        else:
            return plug
    raise last


def _places(endpoint: Endpoint, seconds: float) -> list[Any]:
    """Look an endpoint's name up. The system takes no deadline for that: it is waited for no longer.

    By a thread of its own, since one that hangs must keep no other name from being looked up.
    """
    found: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.set_exception(OSError(f"the name {endpoint.host} is not known: {error}"))

    threading.Thread(target=look_up, name="metastore-names", daemon=True).start()
    try:
        return found.result(seconds)
    except TooLate:
        raise TimeoutError(f"the name {endpoint.host} is not looked up in time") from None
