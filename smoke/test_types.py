"""Every type comes back as it went in: at its limits, nested, empty, null and in any script."""

from __future__ import annotations

import pytest

from suites.testbed.engines.spark import Spark
from suites.testbed.tables import Tables

# Column type, SQL of a value, and the same value as text (what Spark's CAST to STRING makes of it).
VALUES = {
    "flag BOOLEAN": ("true", "true"),
    "small INT": ("-2147483648", "-2147483648"),
    "big BIGINT": ("9223372036854775807L", "9223372036854775807"),
    "single FLOAT": ("CAST(1.5 AS FLOAT)", "1.5"),
    "double DOUBLE": ("2.2250738585072014E-308D", "2.2250738585072014E-308"),
    "price DECIMAL(10, 2)": ("-12345678.90BD", "-12345678.90"),
    "wide DECIMAL(38, 18)": (
        "12345678901234567890.123456789012345678BD",
        "12345678901234567890.123456789012345678",
    ),
    "day DATE": ("DATE '1969-12-31'", "1969-12-31"),
    "moment TIMESTAMP": (
        "TIMESTAMP '2024-02-29 05:45:00.000001 Asia/Kathmandu'",
        "2024-02-29 00:00:00.000001",
    ),
    "local_time TIMESTAMP_NTZ": ("TIMESTAMP_NTZ '2024-03-31 02:30:00'", "2024-03-31 02:30:00"),
    "text STRING": ("'žluť ''𝄞'' 日本語\\n'", "žluť '𝄞' 日本語\n"),
    "empty STRING": ("''", ""),
    "raw BINARY": ("X'00ff10'", "AP8Q"),
    "list ARRAY<INT>": ("array(1, NULL, 3)", "[1, null, 3]"),
    "dictionary MAP<STRING, DECIMAL(5, 1)>": ("map('a', 1.5BD)", "{a -> 1.5}"),
    "nested STRUCT<id: INT, parts: ARRAY<STRUCT<name: STRING, tags: MAP<STRING, STRING>>>>": (
        "named_struct('id', 7, 'parts', array(named_struct('name', 'p', 'tags', map('k', 'ü'))))",
        "{7, [{p, {k -> ü}}]}",
    ),
}


@pytest.mark.operation("types")
def test_every_type(spark: Spark, tables: Tables) -> None:
    table = tables.name()
    spark.sql(f"CREATE TABLE {table} ({', '.join(VALUES)}) USING {table.format}")
    values = ", ".join(sql for sql, _ in VALUES.values())
    nothing = ", ".join(["NULL"] * len(VALUES))
    spark.sql(f"INSERT INTO {table} VALUES ({values}), ({nothing})")

    names = [column.partition(" ")[0] for column in VALUES]
    as_text = ", ".join(f"base64({name})" if name == "raw" else f"CAST({name} AS STRING)" for name in names)
    spark.expect(
        f"SELECT {as_text} FROM {table} ORDER BY flag NULLS LAST",
        [tuple(text for _, text in VALUES.values()), (None,) * len(VALUES)],
    )
    types = {name: kind for name, kind, *_ in spark.sql(f"DESCRIBE {table}") if name in names}
    assert types == {column.partition(" ")[0]: _spelt(column.partition(" ")[2]) for column in VALUES}


def _spelt(declared: str) -> str:
    """Return a type as DESCRIBE spells it."""
    return declared.lower().replace(", ", ",").replace(": ", ":")
