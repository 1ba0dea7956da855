"""Hive's names of partitions: build them from keys and values, and parse them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# The name of a folder for null or an empty value.
NOTHING = "__HIVE_DEFAULT_PARTITION__"
_SPECIAL = re.compile(r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def name(keys: Iterable[str], values: Iterable[str]) -> str:
    """Return the name of a partition, such as `ds=2026-01-31/hr=a%3Db`."""
    pairs = zip(keys, values, strict=True)
    return "/".join(f"{escaped(key.lower())}={escaped(value) or NOTHING}" for key, value in pairs)


def values(text: str) -> list[str]:
    """Return the values in a partition's name."""
    return [_plain(word.partition("=")[2]) for word in text.split("/")]


def spec(text: str) -> dict[str, str]:
    """Return the values in a partition's name by their keys."""
    pairs = (word.partition("=") for word in text.split("/"))
    return {_plain(key): _plain(value) for key, _, value in pairs}


def matches(values: Sequence[str], prefix: Sequence[str]) -> bool:
    """Return whether values begin with a prefix, in which an empty text matches any value."""
    return all(not expected or expected == value for expected, value in zip(prefix, values, strict=False))


def escaped(word: str) -> str:
    """Return a key or a value as the names of folders have it."""
    return _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", word)


def _plain(word: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), word)
