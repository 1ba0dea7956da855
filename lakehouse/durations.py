"""Durations with a unit, and times."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_SPAN = re.compile(r"(\d+)(s|m|min|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def seconds(text: str) -> int | None:
    """Parse a duration such as 30m, 2h or 1d; None for an invalid one."""
    match = _SPAN.fullmatch(text)
    return int(match[1]) * _SECONDS[match[2]] if match else None


def moment(text: str) -> datetime | None:
    """Parse a time such as 2026-01-31T10:00, in UTC without an offset; None for an invalid one."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
