"""Run actions of upkeep on one table as if days had passed: the program of test_tables_maintain.py.

The test puts `REQUEST` in front of it. Its last line is an object of JSON.
"""

import json
import sys
import time
from typing import Any

from pyspark.sql import SparkSession

from lakehouse.census.files import HdfsFiles
from lakehouse.upkeep import __main__ as program
from lakehouse.upkeep import executor
from lakehouse.upkeep.executor import SparkEngine
from lakehouse.upkeep.plan import Action, Cost, Table
from lakehouse.upkeep.policies import Policy

_DAY_MS = 24 * 3600 * 1000
REQUEST = globals().get("REQUEST", {})


def main() -> None:
    """Repeat the actions until the time is over, once at least; print what became of them."""
    arguments = program._parser().parse_args()
    spark = SparkSession.builder.appName("upkeep of a test").getOrCreate()
    database, name = REQUEST["table"].split(".")
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED iceberg.{database}.{name}").collect()
    location = next(row[1] for row in rows if row[0] == "Location")
    table = Table("iceberg", database, name, location)
    policy = Policy(file_mb=64, snapshots=1, age_days=1, orphan_days=3)
    files = HdfsFiles(arguments.webhdfs, arguments.user)
    pins = program._pins(files, arguments, int(time.time() * 1000))
    documents: list[dict[str, Any]] = []
    until = time.monotonic() + REQUEST["seconds"]
    while not documents or time.monotonic() < until:
        for action, days in REQUEST["actions"]:
            engine = SparkEngine(spark, files, pins, int(time.time() * 1000) + days * _DAY_MS)
            listed = [Action(action, table, policy, "test", Cost(0, 0, 0.0))]
            documents += [result.document() for result in executor.run(listed, engine, seconds=3600)]
    spark.stop()
    sys.stdout.write(f"{json.dumps({'actions': documents, 'pins': pins.unknown})}\n")


main()
