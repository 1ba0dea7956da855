"""The Thrift server of a commit: a thread for each client, binary protocol."""

from __future__ import annotations

import logging
import socket
import socketserver
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TException
from thrift.transport.TTransport import TBufferedTransport, TTransportBase, TTransportException

from lakehouse import bind_address
from lakehouse.catalog.served.handler import Handler
from plugins.module_utils.lakehouse.counting import counted

COMMAND, PORT = ".venv/bin/lakehouse catalog serve", 9084
_BUFFER = 64 * 1024


@dataclass(frozen=True)
class Limits:
    """The limits of clients, which are not trusted: each one holds a thread and memory."""

    clients: int = 100
    # The timeout between two calls. Engines reconnect after a closed connection.
    idle_seconds: float = 600
    # The timeout in which a call arrives completely, and in which a part of an answer is received.
    call_seconds: float = 60
    # The size of one call, whatever length it announces, and of one list or map in it: a call for the
    # metadata of 100,000 partitions is shorter.
    bytes: int = 8 * 1024**2
    elements: int = 100_000


class Server(socketserver.ThreadingTCPServer):
    """Listens once created, and answers in `serve_forever`."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self,
        address: str,
        port: int,
        handler: Callable[[], Handler],
        limits: Limits = Limits(),
        report: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Raise LakehouseError if it cannot listen there. `handler` returns the handler for a new client.

        `report` gets a line if more clients connect than `limits` allows: their connections are closed.
        """
        # Otherwise the processor logs every refusal with its traceback.
        logging.getLogger().addHandler(logging.NullHandler())
        self.handler, self.limits = handler, limits
        self._report = report
        self._free, self._is_full = BoundedSemaphore(limits.clients), False
        self.address_family, place = bind_address.place(address, port, COMMAND)
        try:
            super().__init__(place, _Client)
        except OSError as error:
            raise bind_address.refused(address, port, PORT, error, COMMAND) from error

    @property
    def place(self) -> str:
        """The address for clients."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        return f"thrift://[{host}]:{port}" if ":" in host else f"thrift://{host}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the client's thread; close the connection beyond the limit of clients."""
        if not self._free.acquire(blocking=False):
            if not self._is_full:
                clients = counted(self.limits.clients, "client is", "clients are")
                self._report(f"{clients} connected: further connections are closed")
            self._is_full = True
            self.shutdown_request(request)
            return
        self._is_full = False
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the client in its thread, and release its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that use another protocol, or that have disconnected."""


class _Client(socketserver.BaseRequestHandler):
    server: Server
    request: socket.socket

    def handle(self) -> None:
        """Answer calls until the client disconnects, is idle for too long, or exceeds a limit."""
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        limits = self.server.limits
        wire = _Wire(self.request, limits)
        protocol = TBinaryProtocolAccelerated(
            TBufferedTransport(wire, _BUFFER),
            strictRead=True,
            string_length_limit=limits.bytes,
            container_length_limit=limits.elements,
        )
        processor = ThriftHiveMetastore.Processor(self.server.handler())
        with suppress(TException, OSError, EOFError):
            while True:
                wire.await_call()
                processor.process(protocol, protocol)


class _Wire(TTransportBase):  # type: ignore[misc] # Thrift is not typed
    """A client's socket with the limits of size and time of a call.

    Memory is allocated for received bytes only, never for an announced length.
    """

    def __init__(self, connection: socket.socket, limits: Limits) -> None:
        self._connection, self._limits = connection, limits
        self.await_call()

    def await_call(self) -> None:
        """Reset the limits: the next byte is the first of a call."""
        self._arrived, self._until = 0, 0.0

    def isOpen(self) -> bool:
        return True

    def open(self) -> None:
        """Do nothing: the client has connected."""

    def close(self) -> None:
        """Do nothing: the server closes the socket."""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; TTransportException beyond a limit, and at the end."""
        timeout = self._until - time.monotonic() if self._arrived else self._limits.idle_seconds
        if timeout <= 0:
            raise TTransportException(TTransportException.TIMED_OUT, "the call does not arrive")
        self._connection.settimeout(timeout)
        received = self._connection.recv(min(size, _BUFFER))
        if not received:
            raise TTransportException(TTransportException.END_OF_FILE, "the client is gone")
        if not self._arrived:
            self._until = time.monotonic() + self._limits.call_seconds
        self._arrived += len(received)
        if self._arrived > self._limits.bytes:
            raise TTransportException(TTransportException.SIZE_LIMIT, "the call is too long")
        return received

    def write(self, answer: bytes) -> None:
        """Send all data; TimeoutError if the client does not receive it."""
        self._connection.settimeout(self._limits.call_seconds)
        for start in range(0, len(answer), _BUFFER):
            self._connection.sendall(answer[start : start + _BUFFER])

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""
