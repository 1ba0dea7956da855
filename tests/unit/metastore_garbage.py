"""Replies that are none, one of each kind: what a fake metastore makes of the right one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import pack, unpack

from thrift.Thrift import TMessageType, TType

Garble = Callable[[bytes], bytes]
VERSION = 0x80010000
NEGATIVE, HUGE = -7, 0x7FFFFFF0
# Of fields: a result is number 0, and the exceptions that a method declares are number 1 and on.
RESULT, DECLARED, UNDECLARED = 0, 1, 30
STOP = b"\0"


def parts(reply: bytes) -> tuple[int, bytes, int, bytes]:
    """Return the type, the name and the number of a reply, and what comes after them."""
    word, length = unpack("!Ii", reply[:8])
    name, rest = reply[8 : 8 + length], reply[8 + length :]
    return word & 0xFF, name, unpack("!i", rest[:4])[0], rest[4:]


def message(kind: int, name: bytes, number: int, body: bytes) -> bytes:
    return pack("!Ii", VERSION | kind, len(name)) + name + pack("!i", number) + body


def field(kind: int, number: int, value: bytes) -> bytes:
    return pack("!bh", kind, number) + value


def text(value: bytes) -> bytes:
    return pack("!i", len(value)) + value


def of_body(body: bytes) -> Garble:
    """Give every reply this body."""

    def garble(reply: bytes) -> bytes:
        kind, name, number, _ = parts(reply)
        return message(kind, name, number, body)

    return garble


def of_kind(kind: int) -> Garble:
    def garble(reply: bytes) -> bytes:
        _, name, number, body = parts(reply)
        return message(kind, name, number, body)

    return garble


def other_number(reply: bytes) -> bytes:
    kind, name, number, body = parts(reply)
    return message(kind, name, number + 1, body)


def other_name(reply: bytes) -> bytes:
    kind, _, number, body = parts(reply)
    return message(kind, b"get_fields", number, body)


def name_of_length(length: int) -> Garble:
    return lambda reply: reply[:4] + pack("!i", length) + reply[8:]


def without_version(reply: bytes) -> bytes:
    """Return it as the oldest servers wrote it."""
    kind, name, number, body = parts(reply)
    return text(name) + pack("!bi", kind, number) + body


# None of these is the right reply to any method.
GARBAGE: Mapping[str, Garble] = {
    "nothing": lambda _: b"",
    "zero bytes": lambda _: bytes(64),
    "all bits": lambda _: b"\xff" * 64,
    "HTTP": lambda _: b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    "its first half": lambda reply: reply[: len(reply) // 2],
    "all but its last byte": lambda reply: reply[:-1],
    "no version": without_version,
    "another version": lambda reply: b"\x80\x02" + reply[2:],
    "another number": other_number,
    "another method's name": other_name,
    "a call": of_kind(TMessageType.CALL),
    "a call without reply": of_kind(TMessageType.ONEWAY),
    "a message of no type": of_kind(0),
    "a name of no length": name_of_length(0),
    "a name of negative length": name_of_length(NEGATIVE),
    "a name of huge length": name_of_length(HUGE),
    "a result of another type": of_body(field(TType.DOUBLE, RESULT, bytes(8)) + STOP),
    "a declared exception of another type": of_body(field(TType.STRING, DECLARED, text(b"no")) + STOP),
    "an exception that is not declared": of_body(field(TType.STRUCT, UNDECLARED, STOP) + STOP),
    "a field of no type": of_body(field(99, DECLARED, bytes(8)) + STOP),
    "an exception with a text of negative length": of_body(
        field(TType.STRUCT, DECLARED, field(TType.STRING, 1, pack("!i", NEGATIVE)) + STOP) + STOP
    ),
    "an exception with a text of huge length": of_body(
        field(TType.STRUCT, DECLARED, field(TType.STRING, 1, pack("!i", HUGE)) + STOP) + STOP
    ),
}
# Nor are these to one that declares two exceptions.
EXCEPTIONS: Mapping[str, Garble] = {
    "two exceptions": of_body(
        field(TType.STRUCT, DECLARED, STOP) + field(TType.STRUCT, DECLARED + 1, STOP) + STOP
    ),
}
# Nor are these to one that returns a list of texts.
LISTS: Mapping[str, Garble] = {
    "no result": of_body(STOP),
    "a list of negative length": of_body(
        field(TType.LIST, RESULT, pack("!bi", TType.STRING, NEGATIVE)) + STOP
    ),
    "a list of huge length": of_body(field(TType.LIST, RESULT, pack("!bi", TType.STRING, HUGE)) + STOP),
    "a list of numbers": of_body(field(TType.LIST, RESULT, pack("!bii", TType.I32, 1, 7)) + STOP),
    "a text of negative length": of_body(
        field(TType.LIST, RESULT, pack("!bii", TType.STRING, 1, NEGATIVE)) + STOP
    ),
    "a text of huge length": of_body(field(TType.LIST, RESULT, pack("!bii", TType.STRING, 1, HUGE)) + STOP),
    "a result and an exception": of_body(
        field(TType.LIST, RESULT, pack("!bi", TType.STRING, 0)) + field(TType.STRUCT, DECLARED, STOP) + STOP
    ),
}
