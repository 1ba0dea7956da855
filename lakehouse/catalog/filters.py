"""Conditions on partition keys as a client writes them, such as `ds >= "2026-01-31" and hr = 7`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any

from lakehouse.catalog.partition_names import NOTHING
from lakehouse.catalog.patterns import with_gaps
from plugins.module_utils.lakehouse.counting import counted

# Tells whether the values of a partition, by key, are wanted.
Condition = Callable[[Mapping[str, str]], bool]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<date>(?:date\s+)?\d{4}-\d{2}-\d{2}|date\s*(?:'[\d-]+'|"[\d-]+"))
    | (?P<number>-?\d+)
    | (?P<sign><=|>=|<>|!=|=|<|>|\(|\)|,)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*|`[^`]+`)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_TEXTS = frozenset({"string", "varchar", "char"})
_DEEPEST = 200
# Each of them is compared with each partition; an engine names some thousand values.
_MOST_WORDS = 20_000


class NotUnderstoodError(ValueError):
    """A condition in other words than these."""


def parse(text: str, keys: Mapping[str, str]) -> Condition:
    """Return the condition, for a table whose keys are these, with their types.

    Raises NotUnderstoodError for what is none, or asks a key of a type that cannot be compared.
    """
    parser = _Parser(text, {key.lower(): kind.lower() for key, kind in keys.items()})
    found = parser.either(0)
    if parser.left:
        raise NotUnderstoodError(f"{parser.left[0][1]!r} is not expected there")
    return found


class _Parser:
    def __init__(self, text: str, keys: Mapping[str, str]) -> None:
        self.left: list[tuple[str, str]] = list(islice(_tokens(text), _MOST_WORDS + 1))
        if len(self.left) > _MOST_WORDS:
            raise NotUnderstoodError(f"more than {counted(_MOST_WORDS, 'word')}")
        self._keys = keys

    def either(self, depth: int) -> Condition:
        """Read conditions with `or` between them."""
        found = [self._both(depth)]
        while self._word("or"):
            found.append(self._both(depth))
        return found[0] if len(found) == 1 else lambda values: any(one(values) for one in found)

    def _both(self, depth: int) -> Condition:
        found = [self._one(depth)]
        while self._word("and"):
            found.append(self._one(depth))
        return found[0] if len(found) == 1 else lambda values: all(one(values) for one in found)

    def _one(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise NotUnderstoodError(f"more than {_DEEPEST} parentheses in each other")
        if self._word("not"):
            wanted = self._one(depth + 1)
            return lambda values: not wanted(values)
        if [token[1] for token in self.left[2:3]] == [")"] and self._word("("):
            # Spark writes `(ds) in (...)`.
            key = self._key(self._next())
            self._must(")")
            return self._of(key)
        if self._word("("):
            found = self.either(depth + 1)
            self._must(")")
            return found
        kind, first = self._next()
        if kind != "word":
            sign = self._next()[1]
            key = self._key(self._next())
            return self._compared(key, _TURNED.get(sign, sign), (kind, first))
        return self._of(self._key((kind, first)))

    def _of(self, key: str) -> Condition:
        negated = self._word("not")
        if self._word("like"):
            found = self._like(key, self._next())
        elif self._word("in"):
            found = self._among(key)
        elif self._word("between"):
            low = self._next()
            self._must("and")
            least, most = self._compared(key, ">=", low), self._compared(key, "<=", self._next())

            def found(values: Mapping[str, str]) -> bool:
                return least(values) and most(values)

        else:
            found = self._compared(key, self._next()[1], self._next())
        return (lambda values: not found(values)) if negated else found

    def _among(self, key: str) -> Condition:
        self._must("(")
        listed = [self._compared(key, "=", self._next())]
        while self._word(","):
            listed.append(self._compared(key, "=", self._next()))
        self._must(")")
        return lambda values: any(one(values) for one in listed)

    def _compared(self, key: str, sign: str, token: tuple[str, str]) -> Condition:
        if sign not in _COMPARE:
            raise NotUnderstoodError(f"{sign!r} compares nothing")
        compare, kind = _COMPARE[sign], self._keys[key]
        wanted = _typed(kind, _literal(token), key)

        def holds(values: Mapping[str, str]) -> bool:
            if values[key] == NOTHING:
                return kind.partition("(")[0] in _TEXTS and bool(compare(NOTHING, wanted))
            return bool(compare(_typed(kind, values[key], key), wanted))

        return holds

    def _like(self, key: str, token: tuple[str, str]) -> Condition:
        if self._keys[key].partition("(")[0] not in _TEXTS:
            raise NotUnderstoodError(f"like on {key}, which is no text")
        # Clients of a metastore write any letters as `.*`, and as SQL does.
        parts = re.split(r"\.\*|%", _literal(token))
        pattern = re.compile(with_gaps(list(map(re.escape, parts))), re.DOTALL)
        return lambda values: pattern.fullmatch(values[key]) is not None

    def _key(self, token: tuple[str, str]) -> str:
        key = token[1].strip("`").lower()
        if token[0] != "word" or key not in self._keys:
            raise NotUnderstoodError(f"{token[1]} is no partition key")
        return key

    def _next(self) -> tuple[str, str]:
        if not self.left:
            raise NotUnderstoodError("it ends too early")
        return self.left.pop(0)

    def _word(self, word: str) -> bool:
        if self.left and self.left[0][0] in {"word", "sign"} and self.left[0][1].lower() == word:
            self.left.pop(0)
            return True
        return False

    def _must(self, word: str) -> None:
        if not self._word(word):
            raise NotUnderstoodError(
                f"{word} is missing before {self.left[0][1] if self.left else 'its end'!r}"
            )


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place, end = 0, len(text.rstrip())
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None:
            raise NotUnderstoodError(f"{text[place : place + 20].strip()!r} is not understood")
        place = found.end()
        yield str(found.lastgroup), found[str(found.lastgroup)]


def _literal(token: tuple[str, str]) -> str:
    kind, text = token
    if kind == "text":
        # Hive's grammar (Filter.g) lets a backslash stand before a quote, and leaves it in the value.
        return text[1:-1]
    if kind == "date":
        return text[4:].strip(" \t\"'") if text[:1] in {"d", "D"} else text
    if kind == "number":
        return text
    raise NotUnderstoodError(f"{text!r} is no value")


def _typed(kind: str, text: str, key: str) -> Any:
    """Return a value as its key's type compares it."""
    plain = kind.partition("(")[0]
    try:
        if plain in _WHOLE:
            return int(text)
        if plain == "date":
            return date.fromisoformat(text)
    except ValueError:
        raise NotUnderstoodError(f"{text} is no {kind}, which {key} is") from None
    if plain in _TEXTS:
        return text
    raise NotUnderstoodError(f"{key} is a {kind}, which no condition compares here")


def wanted(condition: Condition, keys: Sequence[str], values: Sequence[str]) -> bool:
    """Tell whether a partition with these values of these keys is wanted."""
    return condition(dict(zip((key.lower() for key in keys), values, strict=True)))
