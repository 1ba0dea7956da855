"""The job for spark-submit: load everything in one application; each table's result is one line of JSON."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from pyspark.sql import SparkSession

from pipeline import load_flights, sample_tables


def main(arguments: list[str] | None = None) -> int:
    """Load the flights and the sample tables; return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--landing", required=True, help="URI of the folder with the CSV files")
    parser.add_argument("--warehouse", required=True, help="URI below which the databases are made")
    options = parser.parse_args(arguments)
    spark = SparkSession.builder.appName("load").getOrCreate()
    try:
        for results in (
            load_flights.load(spark, options.landing.rstrip("/"), options.warehouse.rstrip("/")),
            sample_tables.load(spark, options.warehouse.rstrip("/")),
        ):
            for loaded in results:
                sys.stdout.write(json.dumps(asdict(loaded)) + "\n")
                sys.stdout.flush()
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
