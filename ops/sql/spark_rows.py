"""Runs statements on Spark, on a host of it: a list in JSON on stdin, lines of JSON on stdout.

Sent there as a text: it knows nothing of the kit, and is started by the Python of Spark's own driver.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession


def plain(value: Any) -> Any:
    """Return a value as JSON knows it; what has no word there, such as a date, as its text."""
    if isinstance(value, Row):
        return {name: plain(one) for name, one in zip(value.__fields__, value, strict=True)}
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def say(**what: Any) -> None:
    """Print one thing, in its own line."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run them in order, until one fails."""
    statements = json.load(sys.stdin)
    try:
        spark = SparkSession.builder.appName("lakehouse sql").enableHiveSupport().getOrCreate()
        for statement in statements:
            found = spark.sql(statement)
            say(columns=found.columns)
            for row in found.toLocalIterator():
                say(row=[plain(value) for value in row])
    except PySparkException as error:
        say(error=error.getMessage() or str(error))
        return 1
    except Exception as error:  # noqa: BLE001 -- Java's errors, and those of starting it, are of many kinds
        java = getattr(error, "java_exception", None)
        say(error=str(java.getMessage() if java else error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
