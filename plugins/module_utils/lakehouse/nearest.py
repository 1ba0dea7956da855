"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# How much two names are alike, of 1, that one may be a misspelling of the other.
ALIKE = 0.6


def nearest(name: str, names: Iterable[str], cutoff: float = ALIKE) -> str | None:
    """Return the most similar of the names, None if none is similar."""
    return next(iter(get_close_matches(name, list(names), n=1, cutoff=cutoff)), None)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `` (did you mean x?)`` for the end of an error message; empty if no name is similar."""
    suggestion = nearest(name, names)
    return f" (did you mean {suggestion}?)" if suggestion else ""
