"""The port at which a commit is a metastore: a thread for each client, Thrift's binary protocol."""

from __future__ import annotations

import logging
import socket
import socketserver
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lakehouse import listening
from lakehouse.catalog.served.handler import Handler

COMMAND, PORT = ".venv/bin/lakehouse catalog serve", 9084
# Of what a client may send: nothing that asks for metadata is longer.
_LONGEST, _MOST = 16 * 1024**2, 1_000_000
_BUFFER = 64 * 1024


class Server(socketserver.ThreadingTCPServer):
    """Listens from the start, and answers while it serves."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, address: str, port: int, handler: Callable[[], Handler]) -> None:
        """LakehouseError where nobody can listen there. `handler` is asked for what answers a new client."""
        # The processor tells every refusal with its traceback otherwise.
        logging.getLogger().addHandler(logging.NullHandler())
        self.handler = handler
        self.address_family, place = listening.place(address, port, COMMAND)
        try:
            super().__init__(place, _Client)
        except OSError as error:
            raise listening.refused(address, port, PORT, error, COMMAND) from error

    @property
    def place(self) -> str:
        """Where clients find it, as they write it."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        return f"thrift://[{host}]:{port}" if ":" in host else f"thrift://{host}:{port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that speaks something else, or went away."""


class _Client(socketserver.BaseRequestHandler):
    server: Server
    request: socket.socket

    def handle(self) -> None:
        """Answer one call after the other, until the client is gone."""
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain = TSocket()
        plain.setHandle(self.request)
        transport = TBufferedTransport(plain, _BUFFER)
        protocol = TBinaryProtocolAccelerated(
            transport, strictRead=True, string_length_limit=_LONGEST, container_length_limit=_MOST
        )
        processor = ThriftHiveMetastore.Processor(self.server.handler())
        with suppress(TException, OSError, EOFError):
            while True:
                processor.process(protocol, protocol)
