"""A program for spark-submit: answer the queries of a file one after the other, a line of JSON for each.

Arguments: a JSON file of pairs (name, statement), and the database.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

LONGEST_MESSAGE = 2000


def main() -> None:
    """Entry point."""
    queries, database = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), sys.argv[2]
    spark = SparkSession.builder.appName("tpch-bench").getOrCreate()
    spark.sql(f"USE {database}")
    for name, statement in queries:
        started = time.monotonic()
        answer = {"query": name}
        try:
            answer["rows"] = len(spark.sql(statement).collect())
            answer["seconds"] = round(time.monotonic() - started, 3)
        except Exception as error:  # noqa: BLE001 -- what failed is part of the answer, and the others follow
            answer["error"] = str(error)[:LONGEST_MESSAGE]
        print(json.dumps(answer), flush=True)  # noqa: T201 -- the program's answer
    spark.stop()


if __name__ == "__main__":
    main()
