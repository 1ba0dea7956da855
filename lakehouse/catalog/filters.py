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

# Returns whether the values of a partition, by key, match.
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
# Each literal is compared with each partition; engines send some thousand.
_MOST_WORDS = 20_000


class NotUnderstoodError(ValueError):
    """The condition has an unsupported syntax."""


def parse(text: str, keys: Mapping[str, str]) -> Condition:
    """Parse a condition on partition keys, which are given with their types.

    Raises NotUnderstoodError for invalid syntax, and for a key of a type that cannot be compared.
    """
    parser = _Parser(text, {key.lower(): kind.lower() for key, kind in keys.items()})
    condition = parser.either(0)
    if parser.tokens:
        raise NotUnderstoodError(f"{parser.tokens[0][1]!r} is not expected there")
    return condition


class _Parser:
    def __init__(self, text: str, keys: Mapping[str, str]) -> None:
        self.tokens: list[tuple[str, str]] = list(islice(_tokens(text), _MOST_WORDS + 1))
        if len(self.tokens) > _MOST_WORDS:
            raise NotUnderstoodError(f"more than {counted(_MOST_WORDS, 'word')}")
        self._keys = keys

    def either(self, depth: int) -> Condition:
        """Read conditions with `or` between them."""
        conditions = [self._both(depth)]
        while self._word("or"):
            conditions.append(self._both(depth))
        return (
            conditions[0]
            if len(conditions) == 1
            else lambda values: any(condition(values) for condition in conditions)
        )

    def _both(self, depth: int) -> Condition:
        conditions = [self._factor(depth)]
        while self._word("and"):
            conditions.append(self._factor(depth))
        return (
            conditions[0]
            if len(conditions) == 1
            else lambda values: all(condition(values) for condition in conditions)
        )

    def _factor(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise NotUnderstoodError(f"more than {_DEEPEST} parentheses in each other")
        if self._word("not"):
            negated = self._factor(depth + 1)
            return lambda values: not negated(values)
        if [token[1] for token in self.tokens[2:3]] == [")"] and self._word("("):
            # Spark writes `(ds) in (...)`.
            key = self._key(self._next())
            self._must(")")
            return self._comparison(key)
        if self._word("("):
            condition = self.either(depth + 1)
            self._must(")")
            return condition
        kind, first = self._next()
        if kind != "word":
            sign = self._next()[1]
            key = self._key(self._next())
            return self._compared(key, _TURNED.get(sign, sign), (kind, first))
        return self._comparison(self._key((kind, first)))

    def _comparison(self, key: str) -> Condition:
        negated = self._word("not")
        if self._word("like"):
            condition = self._like(key, self._next())
        elif self._word("in"):
            condition = self._among(key)
        elif self._word("between"):
            low = self._next()
            self._must("and")
            least, most = self._compared(key, ">=", low), self._compared(key, "<=", self._next())

            def condition(values: Mapping[str, str]) -> bool:
                return least(values) and most(values)

        else:
            condition = self._compared(key, self._next()[1], self._next())
        return (lambda values: not condition(values)) if negated else condition

    def _among(self, key: str) -> Condition:
        self._must("(")
        conditions = [self._compared(key, "=", self._next())]
        while self._word(","):
            conditions.append(self._compared(key, "=", self._next()))
        self._must(")")
        return lambda values: any(condition(values) for condition in conditions)

    def _compared(self, key: str, sign: str, token: tuple[str, str]) -> Condition:
        if sign not in _COMPARE:
            raise NotUnderstoodError(f"{sign!r} compares nothing")
        compare, kind = _COMPARE[sign], self._keys[key]
        operand = _typed(kind, _literal(token), key)

        def holds(values: Mapping[str, str]) -> bool:
            if values[key] == NOTHING:
                return kind.partition("(")[0] in _TEXTS and bool(compare(NOTHING, operand))
            return bool(compare(_typed(kind, values[key], key), operand))

        return holds

    def _like(self, key: str, token: tuple[str, str]) -> Condition:
        if self._keys[key].partition("(")[0] not in _TEXTS:
            raise NotUnderstoodError(f"like on {key}, which is no text")
        # Clients of a metastore use both `.*` and SQL's `%` as the wildcard.
        parts = re.split(r"\.\*|%", _literal(token))
        pattern = re.compile(with_gaps(list(map(re.escape, parts))), re.DOTALL)
        return lambda values: pattern.fullmatch(values[key]) is not None

    def _key(self, token: tuple[str, str]) -> str:
        key = token[1].strip("`").lower()
        if token[0] != "word" or key not in self._keys:
            raise NotUnderstoodError(f"{token[1]} is no partition key")
        return key

    def _next(self) -> tuple[str, str]:
        if not self.tokens:
            raise NotUnderstoodError("it ends too early")
        return self.tokens.pop(0)

    def _word(self, word: str) -> bool:
        if self.tokens and self.tokens[0][0] in {"word", "sign"} and self.tokens[0][1].lower() == word:
            self.tokens.pop(0)
            return True
        return False

    def _must(self, word: str) -> None:
        if not self._word(word):
            raise NotUnderstoodError(
                f"{word} is missing before {self.tokens[0][1] if self.tokens else 'its end'!r}"
            )


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise NotUnderstoodError(f"{text[place : place + 20].strip()!r} is not understood")
        place = match.end()
        yield str(match.lastgroup), match[str(match.lastgroup)]


def _literal(token: tuple[str, str]) -> str:
    kind, text = token
    if kind == "text":
        # Hive's grammar (Filter.g) allows a backslash before a quote, and keeps it in the value.
        return text[1:-1]
    if kind == "date":
        return text[4:].strip(" \t\"'") if text[:1] in {"d", "D"} else text
    if kind == "number":
        return text
    raise NotUnderstoodError(f"{text!r} is no value")


def _typed(kind: str, text: str, key: str) -> Any:
    """Convert a value to the type in which its key is compared."""
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


def matches(condition: Condition, keys: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether a partition with these values of these keys matches a condition."""
    return condition(dict(zip((key.lower() for key in keys), values, strict=True)))
