"""A program for spark-submit: has the pipeline load a file four times, into databases of the program's own.

Its argument is the URI of a folder that it makes and removes. It prints a line of JSON: what each load gave.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession

from pipeline import load_flights, results
from pipeline.sources import AIRLINES

DATABASE = "kit_bad_rows"
REJECTED = f"iceberg.{DATABASE}_iceberg.rejected_rows"
GOOD = ["AA,American", "BB,Bee"]
BAD = ["ZZ", ",Nobody", "CC,See,extra"]
TARGETS = tuple(
    replace(target, database=f"{DATABASE}_{target.format}", folder=target.format)
    for target in load_flights.TARGETS
)


def write(spark: SparkSession, path: str, lines: list[str]) -> None:
    """Write a file into HDFS, in the place of an older one."""
    jvm = spark.sparkContext._jvm
    location = jvm.org.apache.hadoop.fs.Path(path)
    stream = location.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).create(location)
    stream.write(bytearray("\n".join([*lines, ""]).encode()))
    stream.close()


def load(spark: SparkSession, folder: str, lines: list[str]) -> dict[str, Any]:
    """Load the file with these lines; return what the pipeline said, and what is in the tables."""
    write(spark, f"{folder}/{AIRLINES.name}.csv", lines)
    try:
        written, refusal = list(load_flights.load(spark, folder, folder)), None
    except load_flights.HeaderError as error:
        written, refusal = [], str(error)
    return {
        "refusal": refusal,
        "results": [asdict(result) for result in results.count(spark, written)] if written else [],
        "rows": {
            target.format: sorted(map(list, spark.table(target.table(AIRLINES)).collect()))
            for target in TARGETS
        },
        "aside": sorted(map(list, spark.table(REJECTED).collect())),
    }


@contextmanager
def scratch(spark: SparkSession, folder: str) -> Iterator[None]:
    """Point the pipeline at one source and at databases of its own; nothing of them is left."""
    try:
        with (
            mock.patch.multiple(load_flights, SOURCES=(AIRLINES,), TARGETS=TARGETS, REJECTED=REJECTED),
            mock.patch.object(results, "REJECTED", REJECTED),
        ):
            yield
    finally:
        for table in (REJECTED, *(target.table(AIRLINES) for target in TARGETS)):
            spark.sql(f"DROP TABLE IF EXISTS {table}")
        for target in TARGETS:
            spark.sql(f"DROP DATABASE IF EXISTS {target.catalog}.{target.database}")
        location = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(folder)
        location.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).delete(location, True)


def main(folder: str) -> None:
    """Load bad rows, the same again, a file with another header, and a mended one."""
    spark = SparkSession.builder.appName("bad-rows").getOrCreate()
    with scratch(spark, folder):
        loads = {
            "first": load(spark, folder, [AIRLINES.header, *GOOD, "", *BAD]),
            "second": load(spark, folder, [AIRLINES.header, *GOOD, "", *BAD]),
            "swapped": load(spark, folder, ["name,carrier", *GOOD]),
            "mended": load(spark, folder, [AIRLINES.header, *GOOD, BAD[0] + ",Zed"]),
        }
    spark.stop()
    sys.stdout.write(json.dumps(loads) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
