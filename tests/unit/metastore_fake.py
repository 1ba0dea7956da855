"""A metastore for the failures that a real one cannot be made to show, on the bindings' own server side."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Self

from hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TMemoryBuffer, TTransportException


class Catalog:
    """What the fake answers: any table, and partitions `n=0` to `n=<count>` of it."""

    def __init__(self, *, count: int = 0, most: int = 0, missing: frozenset[str] = frozenset()) -> None:
        self.count, self.most, self.missing = count, most, missing
        self.comment = ""
        # The table that there is no more, besides the one that there never was.
        self.gone = ""
        self.refuses = False
        # The notification log, its last number, and who writes it.
        self.events: list[ttypes.NotificationEvent] = []
        self.newest = 0
        self.listeners = "org.example.DbNotificationListener"
        # What happens once between the moment a table is read and its answer.
        self.after_reading: Callable[[], object] = lambda: None
        # The names of each question for partitions.
        self.asked: list[list[str]] = []
        # Seconds that the next answers take, one after the other.
        self.slow: list[float] = []

    def get_table(self, dbname: str, tbl_name: str) -> ttypes.Table:
        if self.slow:
            time.sleep(self.slow.pop(0))
        if tbl_name in {"nobody", self.gone}:
            raise ttypes.NoSuchObjectException(message=tbl_name)
        parameters = {"comment": self.comment}
        meanwhile, self.after_reading = self.after_reading, lambda: None
        meanwhile()
        return ttypes.Table(dbName=dbname, tableName=tbl_name, parameters=parameters, partitionKeys=[])

    def get_table_req(self, req: ttypes.GetTableRequest) -> ttypes.GetTableResult:
        return ttypes.GetTableResult(table=self.get_table(req.dbName, req.tblName))

    def get_all_databases(self) -> list[str]:
        return ["d", "e"]

    def get_database(self, name: str) -> ttypes.Database:
        return ttypes.Database(name=name, description=self.comment, locationUri="hdfs://lake/w")

    def getVersion(self) -> str:  # noqa: N802 -- Thrift's name
        return "4.1"

    def get_all_tables(self, db_name: str) -> list[str]:
        return [f"{db_name}_{number}" for number in range(3)]

    def alter_table(self, dbname: str, tbl_name: str, new_tbl: ttypes.Table) -> None:  # noqa: ARG002
        if self.refuses:
            raise ttypes.InvalidOperationException(message="not now")
        self.comment = new_tbl.parameters["comment"]

    def drop_table(self, dbname: str, name: str, deleteData: bool) -> None:  # noqa: ARG002, N803 -- Thrift's
        self.gone = name

    def unlock(self, rqst: ttypes.UnlockRequest) -> None:
        pass

    def get_partition_names(self, db_name: str, tbl_name: str, max_parts: int) -> list[str]:  # noqa: ARG002
        names = [f"n={number}" for number in range(self.count)]
        return names if max_parts < 0 else names[:max_parts]

    def get_partitions_by_names(
        self,
        db_name: str,  # noqa: ARG002
        tbl_name: str,  # noqa: ARG002
        names: list[str],
    ) -> list[ttypes.Partition]:
        self.asked.append(names)
        if self.most and len(names) > self.most:
            raise ttypes.MetaException(message=f"{len(names)} are too many")
        found = [name for name in names if name not in self.missing]
        # Hive answers in an order of its own.
        return [ttypes.Partition(values=[name.partition("=")[2]]) for name in reversed(found)]

    def get_config_value(self, name: str, defaultValue: str) -> str:  # noqa: N803 -- Thrift's name
        return self.listeners if "transactional" in name else defaultValue

    def get_current_notificationEventId(self) -> ttypes.CurrentNotificationEventId:  # noqa: N802 -- the same
        return ttypes.CurrentNotificationEventId(eventId=self.newest)

    def get_next_notification(
        self, rqst: ttypes.NotificationEventRequest
    ) -> ttypes.NotificationEventResponse:
        newer = [one for one in self.events if one.eventId > rqst.lastEvent]
        return ttypes.NotificationEventResponse(events=newer[: rqst.maxEvents])

    def happens(self, kind: str, database: str | None = "d", table: str | None = "t", **more: str) -> None:
        """Write an event, as a change of another client does."""
        self.newest += 1
        self.events.append(
            ttypes.NotificationEvent(
                eventId=self.newest, eventTime=0, eventType=kind, dbName=database, tableName=table,
                **{"message": "", **more},
            )
        )  # fmt: skip

    def set_ugi(self, user_name: str, group_names: list[str]) -> list[str]:  # noqa: ARG002
        return group_names


class Fake:
    """A server on a port of its own. It lacks the methods `without`, and ends `cut` after they are done.

    What it replies to the methods of `garble` goes through their functions; with `hangs_up` it is the last.
    """

    def __init__(  # noqa: PLR0913 -- each is a failure
        self,
        catalog: Catalog | None = None,
        *,
        without: frozenset[str] | set[str] = frozenset(),
        cut: Iterable[str] = (),
        garble: Mapping[str, Callable[[bytes], bytes]] | None = None,
        silent: bool = False,
        trickle: bool = False,
    ) -> None:
        self.catalog = catalog or Catalog()
        self.seen: Counter[str] = Counter()
        self.connections = self.most_at_once = 0
        self._cut, self._silent, self._trickle = frozenset(cut), silent, trickle
        self.garble = dict(garble or {})
        self.hangs_up = True
        # With what its connections are encrypted, if they are.
        self.tls: ssl.SSLContext | None = None
        self._processor = ThriftHiveMetastore.Processor(self.catalog)
        methods = self._processor._processMap
        for name in [name for name in methods if name in without or not hasattr(self.catalog, name)]:
            del methods[name]
        self._processor.on_message_begin(self._note)
        self._called = threading.local()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.uri = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it with all its connections, as a kill does."""
        # A thread that waits in accept keeps the port until it wakes.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for plug in self._open:
                with suppress(OSError):
                    plug.shutdown(socket.SHUT_RDWR)

    def _note(self, name: str, *_: object) -> None:
        self._called.name = name
        with self._lock:
            self.seen[name] += 1

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                plug, _ = self._listener.accept()
                with self._lock:
                    self._open.add(plug)
                    self.connections += 1
                    self.most_at_once = max(self.most_at_once, len(self._open))
                threading.Thread(target=self._serve, args=(plug,), daemon=True).start()

    def _serve(self, plug: socket.socket) -> None:
        try:
            with suppress(OSError, TTransportException):
                wire = self.tls.wrap_socket(plug, server_side=True) if self.tls else plug
                while self._answer(wire):
                    pass
        finally:
            with self._lock:
                self._open.discard(plug)
            plug.close()

    def _answer(self, plug: socket.socket) -> bool:
        """Answer one request; tell whether the connection goes on."""
        if self._silent:
            return bool(plug.recv(4096))
        wire = TSocket()
        wire.setHandle(plug)
        out = TMemoryBuffer()
        self._processor.process(TBinaryProtocol(_Once(wire)), TBinaryProtocol(out))
        if self._called.name in self._cut:
            return False
        answer: bytes = out.getvalue()
        if garbled := self.garble.get(self._called.name):
            plug.sendall(garbled(answer))
            return not self.hangs_up
        if self._trickle:
            for byte in answer:
                plug.sendall(bytes([byte]))
                time.sleep(0.05)
        plug.sendall(answer)
        return True


class _Once(TBufferedTransport):  # type: ignore[misc]  # no types
    """Reads no more than one request, since each has a transport of its own."""

    def __init__(self, wire: Any) -> None:
        super().__init__(wire, rbuf_size=1)


def dead() -> str:
    """Return an address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"thrift://127.0.0.1:{free.getsockname()[1]}"
