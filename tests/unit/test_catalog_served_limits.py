"""A client takes no more of the server of a commit than its limits: connections, time and memory."""

from __future__ import annotations

import socket
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from lakehouse.bind_address import LOOPBACK
from lakehouse.catalog.served.server import Limits, Server
from suites.testbed.waiting import wait_for
from tests.unit import patience

# By itself it lets no client go in the time that a test waits.
PATIENT = Limits(
    clients=3,
    idle_seconds=patience.LONGER,
    call_seconds=patience.LONGER,
    bytes=64 * 1024,
    elements=1000,
)
CALL, STRING, LIST, STRUCT = 1, 11, 15, 12
LONG = 5_000_000


class Answers:
    """A handler that knows two calls."""

    def get_all_databases(self) -> list[str]:
        return ["sales"]

    def getMetaConf(self, key: str) -> str:  # noqa: N802 -- Hive's name
        return key * (LONG if key == "x" else 1)


@contextmanager
def serving(limits: Limits) -> Iterator[tuple[int, list[str]]]:
    """Yield the port of a server, and what it has reported."""
    reports: list[str] = []
    answers: Any = Answers()
    with Server(LOOPBACK, 0, lambda: answers, limits, reports.append) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield int(server.server_address[1]), reports
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def client(port: int) -> Iterator[Any]:
    """Yield a client of the metastore's interface."""
    wire = TSocket(LOOPBACK, port)
    wire.setTimeout(20_000)
    transport = TBufferedTransport(wire)
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    finally:
        transport.close()


def call(name: bytes, arguments: bytes = b"\0") -> bytes:
    """Return the frame of a call."""
    return struct.pack(">HHi", 0x8001, CALL, len(name)) + name + struct.pack(">i", 7) + arguments


def field(kind: int, value: bytes, number: int = 1) -> bytes:
    """Return a field of the call's arguments, without their end."""
    return struct.pack(">bh", kind, number) + value


def remainder(port: int, sent: bytes) -> bytes:
    """Send bytes, keep the connection open, and return what comes until the server closes it."""
    with socket.create_connection((LOOPBACK, port), timeout=patience.SECONDS) as stranger:
        stranger.sendall(sent)
        return stranger.recv(100)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    # What Thrift skips is read as far as it comes, whatever its length says.
    with serving(replace(PATIENT, call_seconds=1)) as (port, _):
        yield port


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"\xff" * 64,
        # The length of the call's name.
        struct.pack(">HHi", 0x8001, CALL, -1),
        struct.pack(">HHi", 0x8001, CALL, 2**31 - 1),
        # Of a string and a list in it, known to the call and unknown.
        *(
            call(b"getMetaConf", field(kind, value, number))
            for kind, head in ((STRING, b""), (LIST, b"\x0b"))
            for length in (-1, -(2**31), 2**31 - 1, PATIENT.bytes + 1)
            for value in [head + struct.pack(">i", length)]
            for number in (1, 99)
        ),
        # A list whose elements take no byte of it each, and structs within structs.
        call(b"getMetaConf", field(LIST, b"\x0c" + struct.pack(">i", PATIENT.elements + 1), 99)),
        call(b"getMetaConf", field(STRUCT, b"", 99) * 10_000),
        # No length is too long, and all of them are.
        call(b"getMetaConf", field(STRING, struct.pack(">i", 30_000) + b"x" * 30_000, 99) * 3),
    ],
    ids=lambda sent: sent[:40].hex(),
)
def test_a_frame_that_is_none_or_too_long_ends_the_connection(port: int, sent: bytes) -> None:
    # One that is closed before all of it was read is reset.
    with suppress(ConnectionResetError):
        assert remainder(port, sent) == b""
    with client(port) as other:
        assert other.get_all_databases() == ["sales"]


def test_a_length_takes_no_memory_before_its_bytes_are_there() -> None:
    announced = Limits().bytes
    with serving(replace(Limits(), call_seconds=1)) as (port, _), ExitStack() as stack:
        tracemalloc.start()
        try:
            strangers = [
                stack.enter_context(socket.create_connection((LOOPBACK, port), timeout=patience.SECONDS))
                for _ in range(30)
            ]
            for stranger in strangers:
                stranger.sendall(call(b"getMetaConf", field(STRING, struct.pack(">i", announced))))
            assert [stranger.recv(1) for stranger in strangers] == [b""] * len(strangers)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < announced


def test_a_client_that_stops_within_a_call_is_let_go() -> None:
    with serving(replace(PATIENT, call_seconds=0.3)) as (port, _):
        assert remainder(port, call(b"get_all_databases")[:-3]) == b""


def test_a_client_that_trickles_is_let_go() -> None:
    with (
        serving(replace(PATIENT, call_seconds=0.3)) as (port, _),
        socket.create_connection((LOOPBACK, port), timeout=patience.SECONDS) as stranger,
    ):
        stranger.sendall(call(b"getMetaConf", field(STRING, struct.pack(">i", 60_000))))

        def closed() -> bool:
            try:
                stranger.send(b"x")
                stranger.setblocking(False)
                return stranger.recv(1) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True

        assert wait_for("the connection is closed", closed, seconds=patience.SECONDS, pause=0.01)


def test_a_client_that_is_silent_is_let_go() -> None:
    with serving(replace(PATIENT, idle_seconds=2)) as (port, _):
        assert remainder(port, b"") == b""
        with client(port) as other:
            assert other.get_all_databases() == other.get_all_databases() == ["sales"]
            other._iprot.trans._TBufferedTransport__trans.handle.recv(1)  # until it is closed
            with pytest.raises((TTransportException, OSError)):
                other.get_all_databases()


def test_a_client_that_takes_no_answer_is_let_go() -> None:
    with serving(replace(PATIENT, clients=1, call_seconds=0.3)) as (port, _):
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.settimeout(patience.SECONDS)
            deaf.connect((LOOPBACK, port))
            deaf.sendall(call(b"getMetaConf", field(STRING, struct.pack(">i", 1) + b"x") + b"\0"))
            received = 0
            # It is taken only as far as the sockets hold it, until there is room for another client.
            assert served_again(port)
            while chunk := deaf.recv(1024**2):
                received += len(chunk)
        assert received < LONG


def served_again(port: int) -> bool:
    """Try until a client is let in."""

    def let_in() -> bool:
        try:
            with client(port) as other:
                return bool(other.get_all_databases())
        except (TTransportException, OSError):
            return False

    return bool(wait_for("a client is let in", let_in, seconds=patience.SECONDS))


def test_a_long_answer_arrives_whole(port: int) -> None:
    with client(port) as other:
        assert len(other.getMetaConf("x")) == LONG


def test_more_clients_than_may_be_are_told_by_a_closed_connection_until_one_leaves() -> None:
    with serving(PATIENT) as (port, reports):
        with ExitStack() as stack:
            inside = [stack.enter_context(client(port)) for _ in range(PATIENT.clients)]
            assert [one.get_all_databases() for one in inside] == [["sales"]] * PATIENT.clients
            assert [remainder(port, b"") for _ in range(20)] == [b""] * 20
            assert [one.get_all_databases() for one in inside] == [["sales"]] * PATIENT.clients
            assert reports == ["3 clients are connected: further connections are closed"]
        assert served_again(port)
