"""Compiled classes of Java and Scala, and the strings in them: chapter 4 of the JVM's book."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Of an entry in a class file's constant pool: how many bytes follow its tag.
_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
_TEXT, _STRING, _WIDE = 1, 8, (5, 6)
# `aload_0`, which is `this`, and a string right behind it: the first argument of one of its methods.
_FIRST_ARGUMENT = re.compile(rb"\x2a(?:\x12(.)|\x13(..))", re.DOTALL)
# A string right before `invokestatic`: the last argument of a function, mostly the only one.
_STATIC_ARGUMENT = re.compile(rb"(?:\x12(.)|\x13(..))\xb8", re.DOTALL)
# A string right before `aastore`: a member of an array.
_MEMBER = re.compile(rb"(?:\x12(.)|\x13(..))\x53", re.DOTALL)


class Reader:
    """Numbers from the bytes of a class file, in their order."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, size: int) -> int:
        """Return the next number, of so many bytes."""
        value = int.from_bytes(self.data[self.at : self.at + size], "big")
        self.at += size
        return value

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        value = self.data[self.at : self.at + size]
        self.at += size
        return value


def constant_texts(reader: Reader) -> tuple[dict[int, bytes], dict[int, int]]:
    """Read the constant pool: the texts by index, and which text each string constant is."""
    texts, strings = {}, {}
    count, index = reader.number(2), 1
    while index < count:
        tag = reader.number(1)
        if tag == _TEXT:
            texts[index] = reader.take(reader.number(2))
        elif tag == _STRING:
            strings[index] = reader.number(2)
        else:
            reader.take(_SIZES[tag])
        index += 2 if tag in _WIDE else 1
    return texts, strings


def strings(data: bytes) -> set[str]:
    """All strings that the code of a class names."""
    return set(_strings(Reader(data[8:])).values())


def first_arguments(data: bytes) -> set[str]:
    """The strings that a class gives to its own methods first, as in `buildConf("a.key")`."""
    return set(_named_by(_FIRST_ARGUMENT, data))


def static_arguments(data: bytes) -> set[str]:
    """The strings that a class gives to static functions last, as in `ConfigOptions.key("a.key")`."""
    return set(_named_by(_STATIC_ARGUMENT, data))


def members_of_arrays(data: bytes) -> set[str]:
    """The strings that a class puts into arrays."""
    return set(_named_by(_MEMBER, data))


def _strings(reader: Reader) -> dict[int, str]:
    texts, strings = constant_texts(reader)
    return {index: texts[text].decode(errors="replace") for index, text in strings.items()}


def _named_by(instructions: re.Pattern[bytes], data: bytes) -> Iterator[str]:
    reader = Reader(data[8:])
    constants = _strings(reader)
    for match in instructions.finditer(reader.data, reader.at):
        index = int.from_bytes(match[1] or match[2], "big")
        if index in constants:
            yield constants[index]
