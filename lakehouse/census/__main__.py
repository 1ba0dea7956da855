"""The program of the census, which spark-submit runs on a client host: the last line of JSON is its result.

`collect` writes the units and what is derived from them, `report` reads them.
Exit code: 1 if a table cannot be described or the findings cannot be written, 2 if the metastore or HDFS
does not answer or another run writes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse.census import contents, job, model, report
from lakehouse.census.derived import Derived
from lakehouse.census.files import HdfsFiles, UnavailableError, free_bytes
from lakehouse.census.java_errors import Py4JError, reason
from lakehouse.census.metastore import MetastoreError
from lakehouse.census.model import KEYS
from lakehouse.census.spark_metastore import SparkMetastore
from lakehouse.census.store import DATABASE, ConflictError, Store, UnknownCommitError

_FAILED, _UNAVAILABLE = 1, 2
_VIEW = "census_units"
_REPORTED = [*KEYS, "metadata_type", "metadata_identifier", "owner", "additional_metadata"]


def main(argv: list[str] | None = None) -> int:
    """Run the census; print its result, or `error` with the reason."""
    arguments = _parser().parse_args(argv)
    spark = SparkSession.builder.appName("lakehouse census").getOrCreate()
    store = Store(spark, arguments.catalog)
    try:
        if arguments.verb == "report":
            _print(_report(spark, store, arguments))
            return 0
        return _collect(spark, store, arguments)
    except ConflictError as error:
        _print({"error": str(error), "conflict": True})
        return _UNAVAILABLE
    except (UnavailableError, MetastoreError, UnknownCommitError, PySparkException, Py4JError) as error:
        _print({"error": reason(error)})
        return _UNAVAILABLE
    finally:
        spark.stop()


def _collect(spark: SparkSession, store: Store, arguments: argparse.Namespace) -> int:
    tables = SparkMetastore(spark).tables(without=[DATABASE])
    open_files = partial(HdfsFiles, arguments.webhdfs, arguments.user)
    counts = job.run(spark, store, tables, open_files, model.metadata_type(arguments.level))
    # Right after the commit: a later failure does not undo it.
    _print(counts.document())
    try:
        if counts.written:
            job.expire(spark, store.name)
        _derive(spark, store, arguments)
    except (PySparkException, Py4JError) as error:
        fault = f"findings or sizes were not written, or snapshots not expired: {reason(error)}"
        _print({**counts.document(), "warning": fault})
        return _FAILED
    return _FAILED if counts.failed else 0


def _derive(spark: SparkSession, store: Store, arguments: argparse.Namespace) -> None:
    """Write the findings, unless they are those of this version of the units, and the sizes of this run."""
    derived, version, time_ms = Derived(spark, arguments.catalog), store.version(), _time_ms()
    is_new = derived.version() != version
    if is_new:
        _create_view(store)
        derived.write_findings(report.findings(derived.rows, _VIEW, report.Limits(), time_ms))
    derived.add_sizes(store.name, time_ms, version, free_bytes(arguments.webhdfs))
    if is_new:
        for name in (derived.findings, derived.sizes):
            job.expire(spark, name)


def _report(spark: SparkSession, store: Store, arguments: argparse.Namespace) -> dict[str, Any]:
    derived = Derived(spark, arguments.catalog)
    _create_view(store)
    limits = report.Limits(idle_days=arguments.idle_days)
    return {
        "findings": [vars(row) for row in report.findings(derived.rows, _VIEW, limits, _time_ms())],
        **{name: derived.rows(report.sizes(_VIEW, column)) for name, column in report.GROUPS.items()},
        "history": [vars(size) for size in derived.history()],
        "version": store.version(),
    }


def _create_view(store: Store) -> None:
    # One small scan for all queries.
    store.frame({model.TABLE, model.SEGMENT, model.PARTITION}, _REPORTED).cache().createTempView(_VIEW)


def _time_ms() -> int:
    return int(time.time() * 1000)


def _print(document: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(document)}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="census", description="Write metadata units of all tables.")
    parser.add_argument("verb", choices=["collect", "report"])
    parser.add_argument("--webhdfs", default="", metavar="URL", help="address of the NameNode")
    parser.add_argument("--user", default="", help="user of HDFS")
    parser.add_argument(
        "--idle-days", type=int, default=report.Limits.idle_days, help="days without a commit"
    )
    parser.add_argument("--catalog", default="iceberg", help="catalog of Iceberg tables in Spark")
    parser.add_argument(
        "--level", default=str(model.ROW_GROUP), choices=[str(level) for level in contents.LEVELS]
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
