"""Values of Hive tables in which two engines are known to differ: in reading, or in filters."""

from __future__ import annotations

from dataclasses import dataclass

from suites.matrix.cross.engines import FLINK, SPARK, SQL_ENGINES, TRINO
from suites.matrix.cross.limits import refused, wrong
from suites.testbed.formats import HIVE_ORC, HIVE_PARQUET, Format

LAST, BEFORE_1970, JULIAN = (
    "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999", "1000-01-01 12:00:00.000001",
)  # fmt: skip
JULIAN_DAY = "1000-01-01"


@dataclass(frozen=True)
class Difference:
    """Values of a column that are not kept, or not found, between some writers and readers."""

    column: str
    values: tuple[str | None, ...]
    formats: tuple[Format, ...] = (HIVE_PARQUET, HIVE_ORC)
    writers: tuple[str, ...] = SQL_ENGINES
    readers: tuple[str, ...] = SQL_ENGINES


DIFFERENCES = (
    # ORC keeps seconds and what is left of them apart, and its writers round the first towards 1970.
    Difference("moment", (BEFORE_1970,), formats=(HIVE_ORC,)),
    # Two calendars, and nothing in a file says which one it is.
    Difference("moment", (JULIAN,), formats=(HIVE_PARQUET,), writers=(FLINK,), readers=(SPARK, TRINO)),
    Difference("moment", (JULIAN,), formats=(HIVE_PARQUET,), writers=(SPARK, TRINO), readers=(FLINK,)),
    Difference("moment", (JULIAN,), formats=(HIVE_ORC,), writers=(TRINO,), readers=(SPARK, FLINK)),
    Difference("moment", (JULIAN,), formats=(HIVE_ORC,), writers=(SPARK, FLINK), readers=(TRINO,)),
    Difference("moment", (JULIAN,), formats=(HIVE_ORC,), writers=(SPARK, FLINK), readers=(FLINK,)),
    Difference("born", (JULIAN_DAY,), formats=(HIVE_PARQUET,), writers=(FLINK,)),
    Difference("born", (JULIAN_DAY,), formats=(HIVE_ORC,), writers=(TRINO,), readers=(SPARK,)),
    Difference("born", (JULIAN_DAY,), formats=(HIVE_ORC,), writers=(SPARK, FLINK), readers=(TRINO, FLINK)),
    # Hive has one folder for it and for null.
    Difference("p", ("",)),
    # Flink compares text of a fixed length with the blanks in the file, and the names of folders.
    Difference("code", ("ab", "", "a b c", "it's", "x"), (HIVE_PARQUET,), writers=(SPARK,), readers=(FLINK,)),
    Difference("p", ("it's", None), readers=(FLINK,)),
)
# Trino counts the days of each partition, and Flink cannot read the count of none.
NO_DAYS = refused(r"hmsHighDate\W+is null", "docs/across-engines.md#hive-tables")
LIMIT = wrong("some values are read otherwise, or not found", "docs/across-engines.md#hive-tables")


def different(fmt: Format, writer: str, reader: str) -> set[tuple[str, str | None]]:
    """Return the columns with the values in which two engines are known to differ."""
    return {
        (difference.column, value)
        for difference in DIFFERENCES
        if fmt in difference.formats and writer in difference.writers and reader in difference.readers
        for value in difference.values
    }
