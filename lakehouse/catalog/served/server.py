"""The port at which a commit is a metastore: a thread for each client, Thrift's binary protocol."""

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
    """What clients may take of the server: they are strangers, and each one holds a thread and memory."""

    clients: int = 100
    # Between two calls. Engines connect anew where a connection has ended.
    idle_seconds: float = 600
    # In which a call that has begun arrives, and in which some of an answer is taken.
    call_seconds: float = 60
    # Of one call, whatever it says of its own length, and of one list or map in it: a call for the metadata
    # of 100,000 partitions is shorter.
    bytes: int = 8 * 1024**2
    elements: int = 100_000


class Server(socketserver.ThreadingTCPServer):
    """Listens from the start, and answers while it serves."""

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
        """LakehouseError where it cannot listen there. `handler` is asked for what answers a new client.

        `report` gets a line when more clients come than ``limits`` allow: their connections are closed.
        """
        # The processor tells every refusal with its traceback otherwise.
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
        """Where clients find it, as they write it."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        return f"thrift://[{host}]:{port}" if ":" in host else f"thrift://{host}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the client's thread; close the connection where there are as many as may be."""
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
        """Serve the client in its thread, and make room for the next one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that speaks something else, or went away."""


class _Client(socketserver.BaseRequestHandler):
    server: Server
    request: socket.socket

    def handle(self) -> None:
        """Answer one call after the other, until the client is gone, silent or beyond a limit."""
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
    """A client's socket, which gives no more bytes of a call, and waits for them no longer, than it may.

    Memory is taken for what has arrived, and never for what a length announces.
    """

    def __init__(self, connection: socket.socket, limits: Limits) -> None:
        self._connection, self._limits = connection, limits
        self.await_call()

    def await_call(self) -> None:
        """Begin to count: the next byte is the first of a call."""
        self._arrived, self._until = 0, 0.0

    def isOpen(self) -> bool:
        return True

    def open(self) -> None:
        """It was opened by the client."""

    def close(self) -> None:
        """It is closed by the server."""

    def read(self, size: int) -> bytes:
        """Return at most so many bytes; TTransportException beyond a limit, and at the end."""
        left = self._until - time.monotonic() if self._arrived else self._limits.idle_seconds
        if left <= 0:
            raise TTransportException(TTransportException.TIMED_OUT, "the call does not arrive")
        self._connection.settimeout(left)
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
        """Send it all; TimeoutError where the client takes none of it for long."""
        self._connection.settimeout(self._limits.call_seconds)
        for start in range(0, len(answer), _BUFFER):
            self._connection.sendall(answer[start : start + _BUFFER])

    def flush(self) -> None:
        """Nothing is kept back."""
