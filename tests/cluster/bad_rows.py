"""A program for spark-submit: loads a file five times, into databases of the program's own.

Its argument is the URI of a folder that it makes and removes. It prints a line of JSON: what each load gave.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline import load
from pipeline.sources import AIRLINES

DATABASE = "kit_bad_rows"
GOOD = ["AA,American", "BB,Bee"]
TARGETS = tuple(
    replace(target, database=f"{DATABASE}_{target.format}", folder=target.format) for target in load.TARGETS
)


def write(spark: SparkSession, path: str, lines: list[str]) -> None:
    """Write a file into HDFS, in the place of an older one."""
    jvm = spark.sparkContext._jvm
    location = jvm.org.apache.hadoop.fs.Path(path)
    stream = location.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).create(location)
    stream.write(bytearray("\n".join([*lines, ""]).encode()))
    stream.close()


def outcome(spark: SparkSession, folder: str, lines: list[str]) -> dict[str, Any]:
    """Load the file with these lines; return the results, whether it was refused, and the rows."""
    write(spark, f"{folder}/{AIRLINES.name}.csv", lines)
    try:
        written, refused = list(load.load(spark, folder, folder)), False
    except (PySparkException, Py4JJavaError):
        written, refused = [], True
    return {
        "refused": refused,
        "results": list(load.count(spark, written)) if written else [],
        "rows": {
            target.format: sorted(map(list, spark.table(target.table(AIRLINES)).collect()))
            for target in TARGETS
        },
    }


@contextmanager
def scratch(spark: SparkSession, folder: str) -> Iterator[None]:
    """Point the load at one source and at databases of its own; nothing of them is left."""
    try:
        with mock.patch.multiple(load, SOURCES=(AIRLINES,), TARGETS=TARGETS):
            yield
    finally:
        for target in TARGETS:
            spark.sql(f"DROP TABLE IF EXISTS {target.table(AIRLINES)}")
            spark.sql(f"DROP DATABASE IF EXISTS {target.catalog}.{target.database}")
        location = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(folder)
        location.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).delete(location, True)


def main(folder: str) -> None:
    """Load good rows, the same again, a bad row, a file with another header, and a longer one."""
    spark = SparkSession.builder.appName("bad-rows").getOrCreate()
    files = {
        "first": [AIRLINES.header, *GOOD],
        "second": [AIRLINES.header, *GOOD],
        "bad": [AIRLINES.header, *GOOD, "CC,See,extra"],
        "swapped": ["name,carrier", *GOOD],
        "longer": [AIRLINES.header, *GOOD, "ZZ,Zed"],
    }
    with scratch(spark, folder):
        loads = {name: outcome(spark, folder, lines) for name, lines in files.items()}
    spark.stop()
    sys.stdout.write(json.dumps(loads) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
