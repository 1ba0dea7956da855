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
from lakehouse.metastore.errors import MetastoreError, ReplyError, ReplySizeError, told
from lakehouse.metastore.options import Endpoint, Options
from plugins.module_utils.lakehouse.counting import counted

bindings.mend()

# The first word of a message is the version, and in its last byte the kind.
_WORD, _KIND, _VERSION = 0xFFFFFFFF, 0xFF, 0x80010000
_HIGHEST = 0x7FFFFFFF
_LONGEST_NAME = 1000
# Bytes that are received at once, and those that an entry of a list has in a reply of the most entries: its
# decoder makes room for all that a list claims to have.
_PIECE, _ENTRY = 64 * 1024, 16
_UNREADABLE = (TTransportException, TProtocolException)
# What a metastore, or the bindings, say of a reply that is none.
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
    """A socket as Thrift wants it: each read and write ends with the deadline of the call.

    A time for each packet alone would never end where a packet comes in time again and again. At most `most`
    bytes of a reply are read: ReplySizeError.
    """

    def __init__(self, plug: socket.socket, most: int) -> None:
        self._plug, self._most = plug, most
        self._unread, self._unsent = BytesIO(), bytearray()
        self._received = 0
        self._left: Callable[[], float] = lambda: 0.0
        self.sent = False

    def begin(self, left: Callable[[], float]) -> None:
        """Begin a call that has as many seconds as `left` returns."""
        self._left, self._received, self.sent = left, 0, False

    def isOpen(self) -> bool:  # noqa: N802 -- Thrift's name
        return self._plug.fileno() >= 0

    def close(self) -> None:
        self._plug.close()

    def write(self, data: bytes) -> None:
        self._unsent += data

    def flush(self) -> None:
        """Send what was written."""
        data, self._unsent = self._unsent, bytearray()
        self._plug.settimeout(self._left())
        self.sent = True
        self._plug.sendall(data)

    @property
    def unread(self) -> bool:
        """Tell whether bytes were received that no reply had a use for."""
        return self._unread.tell() < len(self._unread.getbuffer())

    def read(self, size: int) -> bytes:
        data = self._unread.read(size)
        if len(data) < size:
            data = self.cstringio_refill(data, size).read(size)
        return data

    readAll = read  # noqa: N815 -- Thrift's name

    def peek(self, size: int) -> bytes:
        """Return the next bytes, which stay to be read."""
        data = self.read(size)
        self._unread.seek(-size, SEEK_CUR)
        return data

    @property
    def cstringio_buf(self) -> BytesIO:
        """What the decoder in C reads from."""
        return self._unread

    def cstringio_refill(self, begun: bytes, size: int) -> BytesIO:
        """Return a buffer that has what was begun, and so many bytes in all at the least."""
        data = bytearray(begun)
        while len(data) < size:
            data += self._receive()
        self._unread = BytesIO(data)
        return self._unread

    def _receive(self) -> bytes:
        self._plug.settimeout(self._left())
        data = self._plug.recv(_PIECE)
        if not data:
            raise ConnectionError("the connection was ended")
        self._received += len(data)
        if self._received > self._most:
            raise ReplySizeError(f"the reply has more than {counted(self._most, 'byte')} (Options.reply)")
        return data


class _Protocol(TBinaryProtocolAccelerated):  # type: ignore[misc]  # the same
    """Thrift's binary protocol, with the checks of a reply that the bindings lack.

    Raises ReplyError unless a reply has the name and the number of the request, and a result that the method
    declares.
    """

    def __init__(self, stream: _Stream, most: int) -> None:
        super().__init__(stream, string_length_limit=most, container_length_limit=most // _ENTRY)
        self._number, self._asked = 0, ""
        # None where Thrift was installed without its decoder in C.
        self._decoder: Any = self._fast_decode
        self._fast_decode: Any = self._decode

    def writeMessageBegin(self, name: str, type: int, seqid: int) -> None:  # noqa: A002, ARG002, N802 -- Thrift's
        self._number, self._asked = (self._number + 1) & _HIGHEST, name
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
        if name != self._asked:
            raise ReplyError(f"the reply is to {name!r}, the request was {self._asked}")
        if number != self._number:
            raise ReplyError(f"the reply is to request {number}, this was request {self._number}")
        if kind not in {TMessageType.REPLY, TMessageType.EXCEPTION}:
            raise ReplyError(f"a message of type {kind} came as the reply")
        return name, kind, number

    def _decode(self, result: Any, _: Any, spec: Any) -> None:
        """Read the result of a call: one field of those that its method declares, or none.

        The decoders pass over any other one, so that an exception that these bindings do not know would look
        like success.
        """
        fields = {field[0]: field for field in result.thrift_spec if field}
        [kind] = unpack("!b", self.trans.peek(1))
        if kind != TType.STOP:
            [number] = unpack("!xh", self.trans.peek(3))
            if number not in fields or fields[number][1] != kind:
                raise ReplyError(f"{self._asked} has no result {number} of type {kind}")
        if self._decoder:
            self._decoder(result, self, spec)
        else:
            self._fast_decode = None
            try:
                result.read(self)
            finally:
                self._fast_decode = self._decode
        given = [field[2] for field in fields.values() if getattr(result, field[2]) is not None]
        if len(given) > 1:
            raise ReplyError(f"the reply has {' and '.join(given)}: one of them is too many")


class Connection:
    """A connection as a user. A caller that sees an error closes it: a late answer may be on the way."""

    def __init__(self, endpoint: Endpoint, options: Options, deadline: Deadline) -> None:
        """Connect within the deadline; OSError or DeadlineError where that fails."""
        self.made = time.monotonic()
        self._read = options.read
        self._plug = connected(endpoint, deadline, options.connect, options.tls)
        self._stream = _Stream(self._plug, options.reply)
        self._client = ThriftHiveMetastore.Client(_Protocol(self._stream, options.reply))
        if options.user:
            try:
                self.call("set_ugi", (options.user, list(options.groups)), deadline)
            except TApplicationException as error:
                # As the answer to a request it would be about that request.
                self.close()
                raise ReplyError(f"set_ugi: {told(error)}") from error
            except BaseException:
                self.close()
                raise

    @property
    def sent(self) -> bool:
        """Tell whether the last call has sent anything."""
        return self._stream.sent

    def call(self, method: str, arguments: tuple[Any, ...], deadline: Deadline) -> Any:
        """Call a method of the bindings, and return its answer.

        Raises what the metastore refuses it with: a declared exception, or TApplicationException. Where no
        whole reply comes, or another one: OSError, DeadlineError or ReplyError. Arguments that the bindings
        cannot write are Python's own errors, and nothing is `sent`.
        """
        until = Deadline(deadline.left(self._read))
        self._stream.begin(until.left)
        try:
            answer = getattr(self._client, method)(*arguments)
            bindings.require(answer)
        except (OSError, MetastoreError):
            raise
        except TApplicationException as error:
            if error.type in _MIXED_UP:
                raise ReplyError(told(error)) from error
            raise
        except Exception as error:
            refused = isinstance(error, TException) and not isinstance(error, _UNREADABLE)
            if refused or not self.sent:
                raise
            raise ReplyError(f"the reply cannot be read: {told(error)}") from error
        return answer

    def usable(self) -> bool:
        """Tell whether nothing waits to be read: the end of the connection, or an answer without a caller."""
        if self._stream.unread or (isinstance(self._plug, ssl.SSLSocket) and self._plug.pending()):
            return False
        # `select` refuses the sockets of a process that has many files open.
        waiting = select.poll()
        waiting.register(self._plug, select.POLLIN)
        return not waiting.poll(0)

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
        except (OSError, ValueError, OverflowError) as error:
            # Python refuses some names and ports before the system sees them.
            plug.close()
            last = error if isinstance(error, OSError) else OSError(str(error))
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
        except (OSError, ValueError, OverflowError) as error:
            found.set_exception(OSError(f"the name {endpoint.host} is not known: {error}"))

    threading.Thread(target=look_up, name="metastore-names", daemon=True).start()
    try:
        return found.result(seconds)
    except TooLate:
        raise TimeoutError(f"the name {endpoint.host} is not looked up in time") from None
