"""The program of upkeep, which spark-submit runs on a client host: the last line of JSON is its result.

Exit code: 1 if an action failed or was refused, 2 if the metastore or HDFS does not answer, no census was
written, a policy is invalid or another run is at work.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse import locks
from lakehouse.catalog import pins
from lakehouse.catalog.pins import Pins
from lakehouse.census import job, model, report
from lakehouse.census.derived import Derived
from lakehouse.census.files import DamagedError, HdfsFiles, UnavailableError
from lakehouse.census.java_errors import Py4JError, reason
from lakehouse.census.metastore import MetastoreError
from lakehouse.census.model import KEYS
from lakehouse.census.spark_metastore import SparkMetastore
from lakehouse.census.store import DATABASE, ConflictError, Store, UnknownCommitError
from lakehouse.upkeep import executor, plan, policies
from lakehouse.upkeep.executor import DONE, NO_TIME, SparkEngine
from lakehouse.upkeep.plan import Plan, Table
from lakehouse.upkeep.policies import Policy, PolicyError
from lakehouse.upkeep.records import Records

_FAILED, _UNAVAILABLE = 1, 2
_PLAN = "plan"
_VIEW = "census_units"
_COLUMNS = [*KEYS, "metadata_type", "metadata_identifier", "owner", "additional_metadata", "location"]


def main(argv: list[str] | None = None) -> int:
    """Plan, and run the plan unless it is a dry run; print the result, or `error` with the reason."""
    arguments = _parser().parse_args(argv)
    try:
        listed = policies.parse(json.loads(arguments.policies))
    except (PolicyError, ValueError) as error:
        _print({"error": str(error)})
        return _UNAVAILABLE
    # The kernel releases it when this process ends, however that happens.
    with Path(arguments.lock).open("a", encoding="utf-8") as lock:
        if arguments.verb != _PLAN and not locks.hold(lock, 0):
            _print({"error": f"another run is at work; it holds {arguments.lock}", "conflict": True})
            return _UNAVAILABLE
        spark = _session(arguments.cores)
        try:
            return _run(spark, arguments, listed)
        except (
            ConflictError, UnavailableError, MetastoreError, UnknownCommitError, PySparkException, Py4JError,
        ) as error:  # fmt: skip
            _print({"error": reason(error)})
            return _UNAVAILABLE
        finally:
            spark.stop()


def _session(cores: int) -> SparkSession:
    """Return a session of at most so many cores: an executor with more than these would never start."""
    settings = {"spark.cores.max": cores, "spark.executor.cores": 1, "spark.default.parallelism": cores}
    builder = SparkSession.builder.appName("lakehouse upkeep")
    for name, value in settings.items() if cores else ():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _run(spark: SparkSession, arguments: argparse.Namespace, listed: list[Policy]) -> int:
    start, time_ms = time.monotonic(), int(time.time() * 1000)
    store, records, failed = Store(spark), Records(spark), dict[str, str]()
    files = HdfsFiles(arguments.webhdfs, arguments.user)
    if arguments.verb != _PLAN:
        tables = SparkMetastore(spark).tables(without=[DATABASE])
        open_files = partial(HdfsFiles, arguments.webhdfs, arguments.user)
        failed = dict(job.run(spark, store, tables, open_files).failed)
    known_pins = _pins(files, arguments, time_ms)
    planned = _plan(spark, store, listed, known_pins, records, time_ms, arguments.pattern)
    warnings = [*planned.warnings, *(f"{name}: {why}" for name, why in sorted(failed.items()))]
    if arguments.verb == _PLAN:
        _print({"plan": [action.document() for action in planned.actions], "warnings": warnings})
        return 0
    results = executor.run(
        planned.actions,
        SparkEngine(spark, files, known_pins, time_ms),
        seconds=arguments.minutes * 60 - (time.monotonic() - start),
        scans=arguments.scan,
    )
    document = {"actions": [result.document() for result in results], "warnings": warnings}
    _print(document)
    if began := [result for result in results if result.outcome != NO_TIME]:
        try:
            records.add(began, int(time.time() * 1000))
        except (PySparkException, Py4JError) as error:
            _print({**document, "warnings": [*warnings, f"the run was not recorded: {reason(error)}"]})
            return _FAILED
    return int(any(result.outcome != DONE for result in began))


def _plan(  # noqa: PLR0913, PLR0917 -- all that decides
    spark: SparkSession,
    store: Store,
    listed: list[Policy],
    known_pins: Pins,
    records: Records,
    time_ms: int,
    pattern: str,
) -> Plan:
    units = {model.TABLE, model.SEGMENT, model.PARTITION}
    store.frame(units, _COLUMNS).cache().createTempView(_VIEW)
    query = f"SELECT * FROM {_VIEW} WHERE metadata_type = '{model.TABLE}'"
    tables = [Table.of_row(row.asDict()) for row in spark.sql(query).collect()]
    findings = report.findings(Derived(spark).rows, _VIEW, plan.limits(listed), time_ms)
    return plan.plan(tables, findings, listed, known_pins, last=records.last(), now=time_ms, pattern=pattern)


def _pins(files: HdfsFiles, arguments: argparse.Namespace, time_ms: int) -> Pins:
    """Return what the catalog's history needs; nothing without a history, unknown without its document."""
    if not arguments.root:
        return Pins({})
    place = pins.path(arguments.root)
    try:
        return pins.parse(files.read(place), time_ms / 1000, arguments.pins_hours)
    except DamagedError as error:
        return Pins({}, f"the pins of the catalog's history cannot be read: {error}")


def _print(document: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(document)}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    # A unit has its arguments in a file, a line for each.
    parser = argparse.ArgumentParser(
        prog="upkeep", description="Maintain tables by policies.", fromfile_prefix_chars="@"
    )
    parser.add_argument("verb", choices=[_PLAN, "maintain"])
    parser.add_argument("--pattern", default="*.*", help="tables, such as sales.*")
    parser.add_argument("--policies", required=True, metavar="JSON")
    parser.add_argument("--webhdfs", required=True, metavar="URL", help="address of the NameNode")
    parser.add_argument("--user", required=True, help="user of HDFS")
    parser.add_argument("--root", default="", help="folder above all tables, where there is a history")
    parser.add_argument("--pins-hours", type=float, default=3, help="age from which pins are unknown")
    parser.add_argument("--lock", required=True, metavar="FILE", help="lock of the host")
    parser.add_argument("--minutes", type=float, default=120, help="minutes in which actions begin")
    parser.add_argument("--cores", type=int, default=0, help="cores of the cluster; 0: as any application")
    parser.add_argument("--scan", action="store_true", help="time a scan before and after each action")
    return parser


if __name__ == "__main__":
    sys.exit(main())
