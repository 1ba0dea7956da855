"""A plain Thrift client of the Hive Metastore: no engine, no JVM."""

from __future__ import annotations

from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from suites.testbed.endpoints import Service

# Of a call that no test has asked to do more than a client does.
_SECONDS = 20.0


class Connection:
    """A connection as `user`, in whose name the metastore acts in HDFS; anonymous where it is None.

    No call waits longer than `seconds` for an answer.

    A class rather than a generator: the errors of these bindings are immutable, and one cannot be thrown into
    a generator, which would write the traceback into it.
    """

    def __init__(
        self, service: Service, user: str | None, groups: tuple[str, ...] = (), seconds: float = _SECONDS
    ) -> None:
        self._user = user
        self._groups = groups
        socket = TSocket(service.address, service.port)
        socket.setTimeout(seconds * 1000)
        self._transport = TBufferedTransport(socket)

    def __enter__(self) -> Any:
        self._transport.open()
        client = ThriftHiveMetastore.Client(TBinaryProtocol(self._transport))
        if self._user is not None:
            client.set_ugi(self._user, list(self._groups))
        return client

    def __exit__(self, *_: object) -> None:
        self._transport.close()
