"""Run statements on Spark, on one of its hosts: a JSON list on stdin, lines of JSON on stdout.

It is sent as a text and run by the Python of Spark's driver, so it imports nothing of the kit.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession


def plain(value: Any) -> Any:
    """Return a value of a JSON type; other types, such as dates, become text."""
    if isinstance(value, Row):
        return {name: plain(item) for name, item in zip(value.__fields__, value, strict=True)}
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def say(**fields: Any) -> None:
    """Print a JSON line."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the statements in order, until one fails."""
    statements = json.load(sys.stdin)
    try:
        spark = SparkSession.builder.appName("lakehouse sql").enableHiveSupport().getOrCreate()
        for statement in statements:
            frame = spark.sql(statement)
            say(columns=frame.columns)
            for row in frame.toLocalIterator():
                say(row=[plain(value) for value in row])
    except PySparkException as error:
        say(error=error.getMessage() or str(error))
        return 1
    except Exception as error:  # noqa: BLE001 -- Java's errors have many types
        java = getattr(error, "java_exception", None)
        say(error=str(java.getMessage() if java else error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
