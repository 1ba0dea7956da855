"""Growth of the tables, and when HDFS is full: a straight line through the sizes of earlier runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

_DAY_MS = 24 * 3600 * 1000
_MIB = 1 << 20
# A shorter time says little about a day.
LEAST_DAYS = 1.0


@dataclass(frozen=True)
class Size:
    """The number, files and bytes of all tables at a time, in milliseconds since 1970."""

    measured_at: int
    tables: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Forecast:
    """Bytes per day by least squares, and the days until HDFS is full; None where tables do not grow."""

    bytes_per_day: float
    full_in_days: float | None

    def __str__(self) -> str:
        """Return the sentence of the last line of a report."""
        end = "" if self.full_in_days is None else f", HDFS is full in {self.full_in_days:.0f} days"
        return f"{self.bytes_per_day / _MIB:+.1f} MiB a day{end}"


def forecast(sizes: Sequence[Size], free_bytes: int, replication: int) -> Forecast | None:
    """Return the forecast from sizes of at least LEAST_DAYS; None from fewer.

    `free_bytes` are those of all DataNodes: a byte of a table takes `replication` of them.
    """
    times = [size.measured_at / _DAY_MS for size in sizes]
    if not times or max(times) - min(times) < LEAST_DAYS:
        return None
    slope = linear_regression(times, [size.bytes for size in sizes]).slope
    return Forecast(slope, free_bytes / replication / slope if slope > 0 else None)
