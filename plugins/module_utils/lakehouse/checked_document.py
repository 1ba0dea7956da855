"""JSON that another machine wrote, checked field by field before any of it is used.

To every reader it is the text of a stranger: a name becomes a path, a word of a shell or of SQL only after
it has passed here. A kind is a pattern of a text, a function of a value, a list of one kind, or a mapping of
several by key. Standard library only: this runs on the nodes and on the control machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

# Of a document; a catalog, or the list of a million files, takes a third of it.
MOST_BYTES = 1 << 30
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SHOWN = 60
# As far as a year has four digits.
_LAST_SECOND = 253402300800
Kind = Any


class DocumentError(ValueError):
    """A field that is not what it has to be, in one line."""


def parse(text: str | bytes, subject: str) -> Any:
    """Return a parsed JSON document; DocumentError for a text that is too long, too deep or no JSON."""
    if len(text) > MOST_BYTES:
        raise DocumentError(f"{subject} is longer than {MOST_BYTES >> 20} MiB")
    try:
        return json.loads(text)
    except RecursionError:
        raise DocumentError(f"{subject} is nested too deeply") from None
    except ValueError as error:
        raise DocumentError(f"{subject} is no JSON: {printable(str(error))}") from None


def printable(text: str) -> str:
    """Return a text that moves no cursor: control characters are replaced."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def shown(value: Any) -> str:
    """Return the beginning of a value on one line, for an error message."""
    text = repr(value) if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def checked(value: Any, kind: Kind, where: str) -> Any:
    """Return a value of a kind; DocumentError with where it is for any other."""
    if isinstance(kind, re.Pattern):
        if not isinstance(value, str) or not kind.fullmatch(value):
            raise DocumentError(f"{where}: {shown(value)} is not allowed there")
        return value
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise DocumentError(f"{where}: {shown(value)} is no list")
        return [checked(item, kind[0], f"{where}: {number}") for number, item in enumerate(value)]
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            raise DocumentError(f"{where}: {shown(value)} is no object")
        missing = [key for key in kind if key not in value and not isinstance(kind[key], Optional)]
        if missing:
            raise DocumentError(f"{where}: {missing[0]} is missing")
        fields = {key: checked(value[key], kind[key], f"{where}: {key}") for key in kind if key in value}
        return {**value, **fields}
    return kind(value, where)


# -- Kinds --


class Optional:
    """A field that may be missing or null."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def __call__(self, value: Any, where: str) -> Any:
        """Return the value, None for null."""
        return None if value is None else checked(value, self.kind, where)


def any_of(*patterns: re.Pattern[str]) -> Callable[[Any, str], str]:
    """Return the kind of a text that one of some patterns matches."""

    def check(value: Any, where: str) -> str:
        if not isinstance(value, str) or not any(pattern.fullmatch(value) for pattern in patterns):
            raise DocumentError(f"{where}: {shown(value)} is not allowed there")
        return value

    return check


def mapping(keys: Kind, values: Kind) -> Callable[[Any, str], dict[str, Any]]:
    """Return the kind of an object with any number of keys and values of a kind each."""

    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise DocumentError(f"{where}: {shown(value)} is no object")
        return {
            str(checked(key, keys, where)): checked(item, values, f"{where}: {key}")
            for key, item in value.items()
        }

    return check


def count(value: Any, where: str) -> int:
    """Return a whole number of at least 0."""
    if type(value) is not int or value < 0:
        raise DocumentError(f"{where}: {shown(value)} is no whole number of at least 0")
    return value


def number(value: Any, where: str) -> int:
    """Return a whole number."""
    if type(value) is not int:
        raise DocumentError(f"{where}: {shown(value)} is no whole number")
    return value


def time(value: Any, where: str) -> float:
    """Return seconds since the epoch."""
    if type(value) not in {int, float} or not 0 <= value < _LAST_SECOND:
        raise DocumentError(f"{where}: {shown(value)} is no time")
    return float(value)


def flag(value: Any, where: str) -> bool:
    """Return true or false."""
    if type(value) is not bool:
        raise DocumentError(f"{where}: {shown(value)} is neither true nor false")
    return value


def string(value: Any, where: str) -> str:
    """Return a text of any characters but NUL."""
    if not isinstance(value, str) or "\0" in value:
        raise DocumentError(f"{where}: {shown(value)} is no text")
    return value


def text(value: Any, where: str) -> str:
    """Return a text for a person, its control characters replaced."""
    return printable(string(value, where))


def line(value: Any, where: str) -> str:
    """Return a name or a place: an engine lets its users choose most of it, but no control characters."""
    if _CONTROL.search(string(value, where)):
        raise DocumentError(f"{where}: {shown(value)} has control characters")
    return str(value)


def relative(value: Any, where: str) -> str:
    """Return a path below the root of a copy, empty for the root; DocumentError for one that leads out."""
    path = string(value, where)
    if path and any(part in {"", ".", ".."} for part in path.split("/")):
        raise DocumentError(f"{where}: {shown(value)} is no path below the root")
    return path


def unchecked(value: Any, where: str) -> dict[str, Any]:
    """Return an object whose fields may be anything."""
    return dict(checked(value, {}, where))
