"""A plain Thrift client of the Hive Metastore: no engine, no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from smoke.settings import Service

_MILLISECONDS = 20_000


@contextmanager
def connected(service: Service, user: str, groups: tuple[str, ...] = ()) -> Iterator[Any]:
    """Open a connection as `user` (what the metastore does in HDFS, it does in that name) and close it."""
    socket = TSocket(service.address, service.port)
    socket.setTimeout(_MILLISECONDS)
    transport = TBufferedTransport(socket)
    transport.open()
    try:
        client = ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        client.set_ugi(user, list(groups))
        yield client
    finally:
        transport.close()
