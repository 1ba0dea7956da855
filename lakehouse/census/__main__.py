"""The program of the census, which spark-submit runs on a client host: one line of JSON is its result.

Exit code: 1 if a table cannot be described, 2 if the metastore or HDFS does not answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse.census import contents, job, model
from lakehouse.census.files import HdfsFiles, UnavailableError
from lakehouse.census.metastore import MetastoreError
from lakehouse.census.spark_metastore import SparkMetastore, java_reason
from lakehouse.census.store import DATABASE, Store

_FAILED, _UNAVAILABLE = 1, 2


def main(argv: list[str] | None = None) -> int:
    """Run the census; print its result, or `error` with the reason."""
    arguments = _parser().parse_args(argv)
    spark = SparkSession.builder.appName("lakehouse census").getOrCreate()
    try:
        counts = _run(spark, arguments)
    except (UnavailableError, MetastoreError, PySparkException, Py4JError) as error:
        _print(json.dumps({"error": _reason(error)}))
        return _UNAVAILABLE
    finally:
        spark.stop()
    _print(counts.json())
    return _FAILED if counts.failed else 0


def _run(spark: SparkSession, arguments: argparse.Namespace) -> job.Counts:
    tables = SparkMetastore(spark).tables(without=[DATABASE])
    store = Store(spark, arguments.catalog)
    open_files = partial(HdfsFiles, arguments.webhdfs, arguments.user)
    counts = job.run(spark, store, tables, open_files, model.metadata_type(arguments.level))
    if counts.written:
        job.expire(spark, store.name)
    return counts


def _reason(error: Exception) -> str:
    if isinstance(error, Py4JJavaError):
        return java_reason(error)
    return " ".join(str(error).partition("\n")[0].split())


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="census", description="Write metadata units of all tables.")
    parser.add_argument("--webhdfs", required=True, metavar="URL", help="address of the NameNode")
    parser.add_argument("--user", required=True, help="user of HDFS")
    parser.add_argument("--catalog", default="iceberg", help="catalog of Iceberg tables in Spark")
    parser.add_argument(
        "--level", default=str(model.ROW_GROUP), choices=[str(level) for level in contents.LEVELS]
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
