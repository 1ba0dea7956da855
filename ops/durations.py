"""Spans of time as people write them."""

from __future__ import annotations

import re

_SPAN = re.compile(r"(\d+)(s|m|min|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def seconds(text: str) -> int | None:
    """Read a span such as 30m, 2h or 1d; None where it is none."""
    found = _SPAN.fullmatch(text)
    return int(found[1]) * _SECONDS[found[2]] if found else None
