"""The metastore's port as clients see it: members, readers, outsiders, and who sends no user name."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

from suites.testbed.endpoints import Service
from suites.testbed.metastore import Connection

# The metastore aborts 5,000 transactions in about 30 s.
SECONDS = 60


def connected(host: str, port: int, user: str | None) -> Connection:
    """Return a connection as a user, or with no name where it is None; an abort of many may take a while."""
    return Connection(Service(host, host, port), user, seconds=SECONDS)


def iceberg_table(database: str, name: str, metadata: str) -> Table:
    """Return a table as Iceberg registers it, with its metadata file below its folder."""
    folder = f"/tmp/{database}/{name}"  # noqa: S108 -- in HDFS
    return Table(
        dbName=database, tableName=name, owner="kit", tableType="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE", "table_type": "ICEBERG", "metadata_location": f"{folder}/{metadata}"},
        partitionKeys=[],
        sd=StorageDescriptor(
            cols=[FieldSchema("id", "int", None)], location=folder,
            inputFormat="org.apache.hadoop.mapred.FileInputFormat",
            outputFormat="org.apache.hadoop.mapred.FileOutputFormat",
            serdeInfo=SerDeInfo(
                serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
            ),
            parameters={}, bucketCols=[], sortCols=[], numBuckets=-1,
        ),
    )  # fmt: skip


def metadata_of(client: Client, database: str, name: str) -> str:
    """Return the file name of a table's current metadata."""
    location: str = client.get_table(database, name).parameters["metadata_location"]
    return location.rsplit("/", 1)[1]


def commit(client: Client, database: str, name: str, metadata: str) -> None:
    """Commit as Iceberg does without a lock: read the table, then name what the new metadata replaces."""
    table = client.get_table(database, name)
    client.alter_table(database, name, next_version(table, metadata))


def next_version(table: Table, metadata: str) -> Table:
    """Change a table to the request of a commit that follows it."""
    current = table.parameters["metadata_location"]
    table.parameters["previous_metadata_location"] = current
    table.parameters["metadata_location"] = f"{current.rsplit('/', 1)[0]}/{metadata}"
    return table


@dataclass
class Proxy:
    """A TCP proxy to the metastore that can hold what a client sends, or cut what it is answered."""

    host: str
    port: int
    held: threading.Event = field(default_factory=threading.Event)
    _sockets: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Proxy:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = self._server.getsockname()
        self.requests_pass, self.replies_pass = threading.Event(), threading.Event()
        self.requests_pass.set()
        self.replies_pass.set()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.requests_pass.set()
        self.replies_pass.set()
        for one in (self._server, *self._sockets):
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                upstream = socket.create_connection((self.host, self.port))
                self._sockets += [client, upstream]
                threading.Thread(
                    target=self._pump, args=(client, upstream, self.requests_pass), daemon=True
                ).start()
                threading.Thread(
                    target=self._pump, args=(upstream, client, self.replies_pass), daemon=True
                ).start()

    def _pump(self, source: socket.socket, target: socket.socket, passes: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if not passes.is_set():
                    self.held.set()
                    passes.wait(SECONDS)
                target.sendall(data)

    def cut(self) -> None:
        """Drop every connection: what was held never arrives."""
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def in_thread(action: Callable[[], None]) -> tuple[threading.Thread, list[BaseException]]:
    """Start an action beside the test; return its thread and the list that its error is put into."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 -- the test looks at it
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors
