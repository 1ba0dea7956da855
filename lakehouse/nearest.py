"""The name that a person probably meant who typed one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# How much two names are alike, of 1, that one may be a misspelling of the other.
ALIKE = 0.6


def nearest(name: str, known: Iterable[str], alike: float = ALIKE) -> str | None:
    """Return the known name that this one resembles most, None where it resembles none."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=alike)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean x?)``, to follow a wrong name in a message; empty where it resembles none."""
    near = nearest(name, known)
    return f" (did you mean {near}?)" if near else ""
