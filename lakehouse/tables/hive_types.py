"""Names of types in the metastore, as the parser of Hive reads them; Trino 476 has it, and Flink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from unicodedata import category

from plugins.module_utils.lakehouse.counting import counted

# Of one type's name, and of types in each other: the metastore keeps any text.
MOST_CHARACTERS, MOST_DEPTH = 100_000, 100
_NESTED = {"array", "map", "struct", "uniontype"}
# The largest value of each parameter; None where the parser takes any list of names, and ignores it.
_PRIMITIVES: Mapping[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        (
            "binary", "string", "boolean", "int", "bigint", "float", "void", "double", "tinyint", "smallint",
            "date", "timestamp", "timestamp with local time zone", "interval_year_month", "interval_day_time",
            "variant",
        )
    ),
    "char": (255,),
    "varchar": (65535,),
    "decimal": (38, 38),
}  # fmt: skip
_SEPARATORS = {",", ";", ":"}
_DIGITS = re.compile(r"[0-9]{1,9}")
# Java compares halves of pairs, which are no letters.
_LAST_LETTER = "\uffff"


def unreadable(type_name: str) -> str:
    """Return why the parser rejects the name of a type, empty where it accepts it."""
    if len(type_name) > MOST_CHARACTERS:
        return f"it has {counted(len(type_name), 'character')}"
    try:
        _Parser(type_name).parse()
    except _RejectedError as error:
        return str(error)
    return ""


class _RejectedError(ValueError):
    """The parser would reject the name."""


class _Parser:
    """Go over the tokens of a name: words of letters, digits, `_.$` and blanks; single other characters."""

    def __init__(self, name: str) -> None:
        self._tokens = _tokens(name)
        self._index = 0

    def parse(self) -> None:
        """Read all types of the name, with whatever separates them; _RejectedError."""
        while self._index < len(self._tokens):
            self._type(0)
            if self._index < len(self._tokens):
                self._expect(*_SEPARATORS)

    def _next(self) -> str:
        if self._index >= len(self._tokens):
            raise _RejectedError("it ends too early")
        token = self._tokens[self._index]
        self._index += 1
        return token

    def _expect(self, *tokens: str) -> str:
        if (token := self._next()) not in tokens:
            raise _RejectedError(f"{' or '.join(sorted(tokens))} is expected before {token}")
        return token

    def _type(self, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise _RejectedError(f"it is nested deeper than {MOST_DEPTH}")
        kind = self._next()
        if kind in _PRIMITIVES:
            self._parameters(kind)
        elif kind == "array":
            self._expect("<")
            self._type(depth + 1)
            self._expect(">")
        elif kind == "map":
            self._expect("<")
            self._type(depth + 1)
            self._expect(",")
            self._type(depth + 1)
            self._expect(">")
        elif kind in _NESTED:
            self._members(kind, depth)
        else:
            raise _RejectedError(f"{kind} is no type")

    def _members(self, kind: str, depth: int) -> None:
        self._expect("<")
        while True:
            if kind == "struct":
                name = self._next()
                if name == ">":
                    return
                if not _is_word(name[0]):
                    raise _RejectedError(f"a field's name begins with {name}")
                self._expect(":")
            self._type(depth + 1)
            if self._expect(",", ">") == ">":
                return

    def _parameters(self, kind: str) -> None:
        values: list[str] = []
        if self._index < len(self._tokens) and self._tokens[self._index] == "(":
            self._next()
            while not values or self._expect(",", ")") == ",":
                if not _is_word((value := self._next())[0]):
                    raise _RejectedError(f"a parameter of {kind} is {value}")
                values.append(value)
        largest = _PRIMITIVES[kind]
        if largest is None or (kind == "decimal" and not values):
            return
        least = 0 if kind == "decimal" else 1
        numbers = [int(value) for value in values if _DIGITS.fullmatch(value)]
        valid_count = len(numbers) == len(values) and 0 < len(values) <= len(largest)
        if not valid_count or any(number > most for number, most in zip(numbers, largest, strict=False)):
            raise _RejectedError(f"{kind} has the parameters {', '.join(values) or 'of none'}")
        if numbers[0] < 1 or (least == 0 and len(numbers) > 1 and numbers[1] > numbers[0]):
            raise _RejectedError(f"{kind} has the parameters {', '.join(values)}")


def _tokens(name: str) -> list[str]:
    tokens: list[str] = []
    for letter in name:
        if tokens and _is_word(letter) and _is_word(tokens[-1][-1]):
            tokens[-1] += letter
        else:
            tokens.append(letter)
    return tokens


def _is_word(letter: str) -> bool:
    if letter in "_. $":
        return True
    return letter <= _LAST_LETTER and (category(letter)[0] == "L" or category(letter) == "Nd")
