"""When HDFS is full: a straight line through its free bytes at earlier censuses. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

_MIB = 1 << 20
_DAY_MS = 24 * 3600 * 1000
# A shorter time says little about a day, and a later day little about anything.
LEAST_DAYS, MOST_DAYS = 1.0, 3650.0


@dataclass(frozen=True)
class Size:
    """The tables, files and bytes of a census, in milliseconds since 1970; free bytes of HDFS, if known."""

    measured_at: int
    table_count: int
    files: int
    size_bytes: int
    free_bytes: int | None


@dataclass(frozen=True)
class Forecast:
    """Bytes of HDFS that are filled in a day, and the days until none is free; None beyond MOST_DAYS."""

    bytes_per_day: float
    full_in_days: float | None

    def __str__(self) -> str:
        """Return the sentence of the last line of a report."""
        end = "" if self.full_in_days is None else f", full in {self.full_in_days:.0f} days"
        return f"HDFS {self.bytes_per_day / _MIB:+.1f} MiB a day{end}"


def forecast(sizes: Sequence[Size]) -> Forecast | None:
    """Return the forecast from censuses of at least LEAST_DAYS, the oldest first; None from fewer."""
    free = [(size.measured_at / _DAY_MS, size.free_bytes) for size in sizes if size.free_bytes is not None]
    if not free or free[-1][0] - free[0][0] < LEAST_DAYS:
        return None
    bytes_per_day = -linear_regression([day for day, _ in free], [free_bytes for _, free_bytes in free]).slope
    days = free[-1][1] / bytes_per_day if bytes_per_day > 0 else MOST_DAYS
    return Forecast(bytes_per_day, days if days < MOST_DAYS else None)
