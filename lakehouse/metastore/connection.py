"""One connection to a metastore, with a deadline and a size limit for each step."""

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
from io import SEEK_CUR, BytesIO
from struct import unpack
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TTransport import CReadableTransport, TTransportBase, TTransportException

from lakehouse.metastore import bindings
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.errors import MetastoreError, ReplyError, ReplySizeError, summary
from lakehouse.metastore.options import Endpoint, Options
from plugins.module_utils.lakehouse.counting import counted

bindings.fix_skewed_info()

# The first word of a message has the version, and in its last byte the type of message.
_WORD, _KIND, _VERSION = 0xFFFFFFFF, 0xFF, 0x80010000
_HIGHEST = 0x7FFFFFFF
_LONGEST_NAME = 1000
# Bytes per receive, and the assumed bytes of a list entry: the decoder allocates as many entries as a list
# announces, so their number is bounded by the size of the reply.
_PIECE, _ENTRY = 64 * 1024, 16
_UNREADABLE = (TTransportException, TProtocolException)
# Errors of a metastore, or of the bindings, about an invalid reply.
_MIXED_UP = frozenset(
    {
        TApplicationException.INVALID_MESSAGE_TYPE,
        TApplicationException.WRONG_METHOD_NAME,
        TApplicationException.BAD_SEQUENCE_ID,
        TApplicationException.MISSING_RESULT,
        TApplicationException.PROTOCOL_ERROR,
    }
)


class _Stream(TTransportBase, CReadableTransport):  # type: ignore[misc]  # the bindings have no types
    """A socket as a Thrift transport: each read and write ends with the deadline of the call.

    A timeout per packet alone would never end a call whose packets arrive slowly. A reply of more than
    `limit` bytes raises ReplySizeError.
    """

    def __init__(self, sock: socket.socket, limit: int) -> None:
        self._socket, self._limit = sock, limit
        self._unread, self._unsent = BytesIO(), bytearray()
        self._received = 0
        self._timeout: Callable[[], float] = lambda: 0.0
        self.sent = False

    def begin(self, timeout: Callable[[], float]) -> None:
        """Begin a call; `timeout` returns the seconds that remain for it."""
        self._timeout, self._received, self.sent = timeout, 0, False

    def isOpen(self) -> bool:  # noqa: N802 -- Thrift's name
        return self._socket.fileno() >= 0

    def close(self) -> None:
        self._socket.close()

    def write(self, data: bytes) -> None:
        self._unsent += data

    def flush(self) -> None:
        """Send the buffer of written data."""
        data, self._unsent = self._unsent, bytearray()
        self._socket.settimeout(self._timeout())
        self.sent = True
        self._socket.sendall(data)

    @property
    def unread(self) -> bool:
        """Whether more bytes were received than the reply has."""
        return self._unread.tell() < len(self._unread.getbuffer())

    def read(self, size: int) -> bytes:
        data = self._unread.read(size)
        if len(data) < size:
            data = self.cstringio_refill(data, size).read(size)
        return data

    readAll = read  # noqa: N815 -- Thrift's name

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them."""
        data = self.read(size)
        self._unread.seek(-size, SEEK_CUR)
        return data

    @property
    def cstringio_buf(self) -> BytesIO:
        """The buffer that the decoder in C reads."""
        return self._unread

    def cstringio_refill(self, partial: bytes, size: int) -> BytesIO:
        """Return a buffer of at least `size` bytes that starts with the `partial` data of the decoder."""
        data = bytearray(partial)
        while len(data) < size:
            data += self._receive()
        self._unread = BytesIO(data)
        return self._unread

    def _receive(self) -> bytes:
        self._socket.settimeout(self._timeout())
        data = self._socket.recv(_PIECE)
        if not data:
            raise ConnectionError("the connection was ended")
        self._received += len(data)
        if self._received > self._limit:
            raise ReplySizeError(f"the reply has more than {counted(self._limit, 'byte')} (Options.reply)")
        return data


class _Protocol(TBinaryProtocolAccelerated):  # type: ignore[misc]  # the same
    """Thrift's binary protocol, with the checks of a reply that the bindings lack.

    Raises ReplyError unless a reply has the name and the number of the request, and a result that the method
    declares.
    """

    def __init__(self, stream: _Stream, limit: int) -> None:
        super().__init__(stream, string_length_limit=limit, container_length_limit=limit // _ENTRY)
        self._number, self._method = 0, ""
        # None if Thrift was installed without its decoder in C.
        self._decoder: Any = self._fast_decode
        self._fast_decode: Any = self._decode

    def writeMessageBegin(self, name: str, type: int, seqid: int) -> None:  # noqa: A002, ARG002, N802 -- Thrift's
        self._number, self._method = (self._number + 1) & _HIGHEST, name
        super().writeMessageBegin(name, type, self._number)

    def readMessageBegin(self) -> tuple[str, int, int]:  # noqa: N802 -- the same
        word = self.readI32() & _WORD
        kind = word & _KIND
        if word - kind != _VERSION:
            raise ReplyError(f"the reply is not of Thrift's binary protocol: it begins with {word:#010x}")
        length = self.readI32()
        if not 0 < length <= _LONGEST_NAME:
            raise ReplyError(f"the reply names a method with {counted(length, 'letter')}")
        name = self.trans.readAll(length).decode("utf-8", "replace")
        number = self.readI32()
        if name != self._method:
            raise ReplyError(f"the reply is to {name!r}, the request was {self._method}")
        if number != self._number:
            raise ReplyError(f"the reply is to request {number}, this was request {self._number}")
        if kind not in {TMessageType.REPLY, TMessageType.EXCEPTION}:
            raise ReplyError(f"a message of type {kind} came as the reply")
        return name, kind, number

    def _decode(self, result: Any, _: Any, spec: Any) -> None:
        """Read the result of a call: at most one of the fields that its method declares.

        The decoders skip any other field, so an exception that these bindings do not declare would look like
        success.
        """
        fields = {field[0]: field for field in result.thrift_spec if field}
        [kind] = unpack("!b", self.trans.peek(1))
        if kind != TType.STOP:
            [number] = unpack("!xh", self.trans.peek(3))
            if number not in fields or fields[number][1] != kind:
                raise ReplyError(f"{self._method} has no result {number} of type {kind}")
        if self._decoder:
            self._decoder(result, self, spec)
        else:
            self._fast_decode = None
            try:
                result.read(self)
            finally:
                self._fast_decode = self._decode
        results = [field[2] for field in fields.values() if getattr(result, field[2]) is not None]
        if len(results) > 1:
            raise ReplyError(f"the reply has {' and '.join(results)}: one of them is too many")


class Connection:
    """A connection as a user. The caller closes it after an error, since a late reply may follow."""

    def __init__(self, endpoint: Endpoint, options: Options, deadline: Deadline) -> None:
        """Connect within the deadline; OSError or DeadlineError where that fails."""
        self.opened_at = time.monotonic()
        self._read_seconds = options.read
        self._socket = open_socket(endpoint, deadline, options.connect, options.tls)
        self._stream = _Stream(self._socket, options.reply)
        self._client = ThriftHiveMetastore.Client(_Protocol(self._stream, options.reply))
        if options.user:
            try:
                self.call("set_ugi", (options.user, list(options.groups)), deadline)
            except TApplicationException as error:
                # Raised unchanged, it would look like the answer to the caller's request.
                self.close()
                raise ReplyError(f"set_ugi: {summary(error)}") from error
            except BaseException:
                self.close()
                raise

    @property
    def sent(self) -> bool:
        """Whether the last call has sent anything."""
        return self._stream.sent

    def call(self, method: str, arguments: tuple[Any, ...], deadline: Deadline) -> Any:
        """Call a method of the bindings, and return its answer.

        Raises the error that the metastore returns: a declared exception, or TApplicationException. Raises
        OSError, DeadlineError or ReplyError without a complete reply, or with that to another request.
        Arguments that the bindings cannot serialize raise Python's own errors, and nothing is `sent`.
        """
        until = Deadline(deadline.remaining(self._read_seconds))
        self._stream.begin(until.remaining)
        try:
            answer = getattr(self._client, method)(*arguments)
            bindings.check_required_fields(answer)
        except (OSError, MetastoreError):
            raise
        except TApplicationException as error:
            if error.type in _MIXED_UP:
                raise ReplyError(summary(error)) from error
            raise
        except Exception as error:
            is_refusal = isinstance(error, TException) and not isinstance(error, _UNREADABLE)
            if is_refusal or not self.sent:
                raise
            raise ReplyError(f"the reply cannot be read: {summary(error)}") from error
        return answer

    def usable(self) -> bool:
        """Return whether nothing is left to read: neither an end of the connection nor a late reply."""
        if self._stream.unread or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()):
            return False
        # `select` fails for the sockets of a process with many open files.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Close the socket."""
        with suppress(OSError):
            self._socket.close()


def open_socket(
    endpoint: Endpoint, deadline: Deadline, seconds: float, tls: ssl.SSLContext | None = None
) -> socket.socket:
    """Return a socket to an endpoint, connected within `seconds` of the deadline; OSError."""
    until = Deadline(deadline.remaining(seconds))
    addresses = _addresses(endpoint, until.remaining())
    last_error: OSError = OSError(f"{endpoint.host} has no address")
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(until.remaining())
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                sock.settimeout(until.remaining())
                sock = tls.wrap_socket(sock, server_hostname=endpoint.host)
        except (OSError, ValueError, OverflowError) as error:
            # Python refuses some names and ports before the system sees them.
            sock.close()
            last_error = error if isinstance(error, OSError) else OSError(str(error))
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise last_error


def _addresses(endpoint: Endpoint, seconds: float) -> list[Any]:
    """Resolve an endpoint's name within `seconds`; the system has no deadline for that.

    Each lookup has a thread of its own, so that one that hangs delays no other.
    """
    addresses: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            addresses.set_result(socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM))
        except (OSError, ValueError, OverflowError) as error:
            addresses.set_exception(OSError(f"the name {endpoint.host} is not known: {error}"))

    threading.Thread(target=look_up, name="metastore-names", daemon=True).start()
    try:
        return addresses.result(seconds)
    except TooLate:
        raise TimeoutError(f"the name {endpoint.host} is not looked up in time") from None
