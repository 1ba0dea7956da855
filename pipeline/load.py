"""The job for spark-submit: load everything in one application; each table's result is one line of JSON."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from pyspark.sql import SparkSession

from pipeline import load_flights, results, sample_tables


def main(arguments: list[str] | None = None) -> int:
    """Load the flights and the sample tables; return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--landing", required=True, help="URI of the folder with the CSV files")
    parser.add_argument("--warehouse", required=True, help="URI below which the databases are made")
    options = parser.parse_args(arguments)
    landing, warehouse = options.landing.rstrip("/"), options.warehouse.rstrip("/")
    spark = SparkSession.builder.appName("load").getOrCreate()
    try:
        tables = [*load_flights.load(spark, landing, warehouse), *sample_tables.load(spark, warehouse)]
        for result in results.count(spark, tables):
            sys.stdout.write(json.dumps(asdict(result)) + "\n")
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
