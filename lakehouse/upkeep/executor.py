"""Run actions with Spark, one after the other, within budgets.

Each action is one or more commits of Iceberg or Delta: a kill leaves the table as it was before or after one,
and files without a commit, which a later run removes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse.catalog import readable
from lakehouse.catalog.pins import Pins
from lakehouse.census.files import DamagedError, Files, MissingError
from lakehouse.census.java_errors import Py4JError, reason
from lakehouse.upkeep import plan, snapshots, statements
from lakehouse.upkeep.plan import Action, Table
from lakehouse.upkeep.policies import Policy
from lakehouse.upkeep.snapshots import Snapshot
from plugins.module_utils.lakehouse.webhdfs import path_of

_DAY_MS = 24 * 3600 * 1000
# Files without a commit in one run; the next one takes the rest.
_MOST_ORPHANS = 100_000
# Delta refuses to remove files that are younger, since a writer may be about to commit them.
_LEAST_VACUUM_HOURS = 7 * 24
# Delta's error class of a duration below that of a table's property.
_TOO_SHORT = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
_ORPHANS_VIEW = "upkeep_orphans"
DONE, FAILED, REFUSED, NO_TIME = "done", "failed", "refused", "no time left"


class RefusedError(Exception):
    """An action would remove what something may need, or cannot tell: the reason."""


@dataclass(frozen=True)
class Measure:
    """Files and bytes that an action changes, and seconds of a scan where they were measured."""

    files: int | None = None
    bytes: int | None = None
    scan: float | None = None


@dataclass(frozen=True)
class Result:
    """An action with its outcome, what was measured before and after it, and why it failed."""

    action: Action
    outcome: str
    before: Measure = Measure()
    after: Measure = Measure()
    seconds: float = 0.0
    error: str = ""

    def document(self) -> dict[str, Any]:
        """Return the result for programs."""
        document = self.action.document() | {"outcome": self.outcome, "error": self.error}
        for moment, measure in (("before", self.before), ("after", self.after)):
            document |= {f"{name}_{moment}": value for name, value in asdict(measure).items()}
        return document | {"seconds": round(self.seconds, 1)}


def run(
    actions: Iterable[Action],
    engine: SparkEngine,
    *,
    seconds: float,
    scans: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> list[Result]:
    """Run actions in order; none begins after so many seconds, or beyond the minutes of its policy.

    One that fails delays no other.
    """
    start, spent, results = clock(), dict[Policy, float](), list[Result]()
    for action in actions:
        minutes = action.policy.minutes
        used = spent.get(action.policy, 0.0)
        if clock() - start >= seconds or (minutes and used >= minutes * 60):
            results.append(Result(action, NO_TIME))
            continue
        began = clock()
        result = _one(action, engine, scans=scans)
        took = clock() - began
        spent[action.policy] = used + took
        results.append(replace(result, seconds=took))
    return results


def _one(action: Action, engine: SparkEngine, *, scans: bool) -> Result:
    result = Result(action, FAILED)
    try:
        result = replace(result, before=engine.measure(action, scan=scans))
        engine.run(action)
        return replace(result, outcome=DONE, after=engine.measure(action, scan=scans))
    except RefusedError as error:
        return replace(result, outcome=REFUSED, error=str(error))
    except (PySparkException, Py4JError) as error:
        return replace(result, error=reason(error))


class SparkEngine:
    """Actions of a Spark session; `now` is in milliseconds since 1970."""

    def __init__(self, spark: SparkSession, files: Files, pins: Pins, now: int) -> None:
        self._spark, self._files, self._pins, self._now = spark, files, pins, now
        self._actions: Mapping[str, Callable[[Action], None]] = {
            plan.COMPACT: self._compact,
            plan.MANIFESTS: lambda action: self._sql(statements.call(action.table, "rewrite_manifests")),
            plan.EXPIRE: self._expire,
            plan.ORPHANS: self._orphans,
            plan.VACUUM: self._vacuum,
            plan.ANALYZE: lambda action: self._sql(statements.analyze(action.table)),
        }

    def run(self, action: Action) -> None:
        """Do an action; RefusedError, PySparkException or Py4JError for one that cannot be done."""
        self._actions[action.name](action)

    def measure(self, action: Action, *, scan: bool) -> Measure:
        """Return the live files of a table, its manifests, or all that is in its folder."""
        table = action.table
        if table.format == "hive" or action.name in {plan.EXPIRE, plan.ORPHANS, plan.VACUUM}:
            files, size = self._stored(table)
        elif table.format == "delta":
            details = self._spark.sql(f"DESCRIBE DETAIL {statements.name(table)}")
            [(files, size)] = details.select("numFiles", "sizeInBytes").collect()
        else:
            is_manifests = action.name == plan.MANIFESTS
            part, column = ("manifests", "length") if is_manifests else ("files", "file_size_in_bytes")
            query = f"SELECT count(*), coalesce(sum({column}), 0) FROM {statements.name(table)}.{part}"
            [(files, size)] = self._rows(query)
        return Measure(files, size, self._scan(table) if scan else None)

    def _scan(self, table: Table) -> float:
        """Return the seconds of the faster of two scans of all columns, whose rows go nowhere."""
        seconds = []
        for _ in range(2):
            start = time.monotonic()
            self._spark.table(statements.name(table)).write.format("noop").mode("overwrite").save()
            seconds.append(time.monotonic() - start)
        return round(min(seconds), 2)

    def _sql(self, statement: str) -> None:
        self._rows(statement)

    def _rows(self, statement: str) -> list[Any]:
        return list(self._spark.sql(statement).collect())

    def _stored(self, table: Table) -> tuple[int, int]:
        """Return what is in a folder now, without files that only snapshots of HDFS have."""
        path = self._spark._jvm.org.apache.hadoop.fs.Path(table.location)
        summary = path.getFileSystem(self._spark._jsc.hadoopConfiguration()).getContentSummary(path)
        return (
            summary.getFileCount() - summary.getSnapshotFileCount(),
            summary.getLength() - summary.getSnapshotLength(),
        )

    def _compact(self, action: Action) -> None:
        if action.table.format == "delta":
            self._spark.conf.set("spark.databricks.delta.optimize.maxFileSize", action.policy.file_bytes)
            self._spark.conf.set("spark.databricks.delta.optimize.minFileSize", action.policy.file_bytes)
        self._sql(statements.compact(action.table, action.policy))
        if action.table.number("position_deletes"):
            # Those of files that are gone slow down each plan of a scan.
            options = "map('rewrite-all', 'true')"
            self._sql(statements.call(action.table, "rewrite_position_delete_files", options=options))

    def _expire(self, action: Action) -> None:
        name, policy = statements.name(action.table), action.policy
        query = f"SELECT snapshot_id, parent_id, unix_millis(committed_at), summary FROM {name}.snapshots"
        ids = snapshots.expirable(
            (Snapshot(row[0], row[1], row[2], dict(row[3] or {})) for row in self._rows(query)),
            dict(self._rows(f"SELECT name, snapshot_id FROM {name}.refs")),
            self._pinned(action.table),
            count=policy.snapshots,
            oldest_kept=self._now - policy.age_days * _DAY_MS,
        )
        if ids:
            self._sql(statements.expire(action.table, ids))

    def _orphans(self, action: Action) -> None:
        table, before = action.table, self._now - action.policy.orphan_days * _DAY_MS
        query = f"SELECT snapshot_id FROM {statements.name(table)}.snapshots"
        if missing := self._pinned(table) - {row[0] for row in self._rows(query)}:
            raise RefusedError(
                f"a commit of the catalog's history needs snapshot {min(missing)}, which it no longer has"
            )
        listed = [row[0] for row in self._rows(statements.orphans(table, before))]
        removed = removable(listed, table.location, self._pins.of(table.folder).metadata)
        if removed:
            rows = [(path, datetime(1970, 1, 1)) for path in removed[:_MOST_ORPHANS]]
            frame = self._spark.createDataFrame(rows, "file_path STRING, last_modified TIMESTAMP")
            frame.createOrReplaceTempView(_ORPHANS_VIEW)
            self._sql(statements.orphans(table, before, _ORPHANS_VIEW))

    def _pinned(self, table: Table) -> set[int]:
        """Return the snapshots of pinned metadata files: writers other than Spark name them nowhere else.

        A file that is gone can be read out of a snapshot of HDFS, which has its data files too.
        """
        ids = set()
        for path in self._pins.of(table.folder).metadata:
            try:
                snapshot = readable.snapshot(readable.parse_metadata(self._files.read(path)))
            except MissingError:
                continue
            except (DamagedError, ValueError) as error:
                raise RefusedError(f"a commit of the catalog's history needs {path}: {error}") from None
            if snapshot:
                ids.add(int(snapshot["snapshot-id"]))
        return ids

    def _vacuum(self, action: Action) -> None:
        table = action.table
        pinned = self._pins.hours(table.folder, self._now / 1000)
        hours: int | None = max(action.policy.orphan_days * 24, pinned, _LEAST_VACUUM_HOURS)
        # Otherwise Delta takes the table's own duration, whatever the statement has.
        self._spark.conf.set("spark.databricks.delta.vacuum.retentionWindowIgnore.enabled", "false")
        try:
            rows = self._rows(statements.vacuum(table, hours, dry_run=True))
        except PySparkException as error:
            if _TOO_SHORT not in str(error):
                raise
            # The table's own duration is longer, and counts where the statement has none.
            hours = None
            rows = self._rows(statements.vacuum(table, hours, dry_run=True))
        if removable([row[0] for row in rows], table.location):
            self._sql(statements.vacuum(table, hours, dry_run=False))


def removable(listed: Iterable[str], location: str, needed: Collection[str] = ()) -> list[str]:
    """Return the files of a dry run that are not needed; RefusedError for one outside of the table's folder.

    The authority counts: with another one in its metadata, all files of a table seem to be without a commit.
    """
    files = [file for file in listed if path_of(file) not in needed]
    authority, folder = _place(location)
    for file in files:
        authority_of_file, path = _place(file)
        if authority_of_file != authority or not path.startswith(f"{folder}/"):
            raise RefusedError(f"{file[:300]} is not in its folder {location}")
    return files


def _place(uri: str) -> tuple[tuple[str, str], str]:
    """Return scheme and authority of a URI, and its path."""
    parts = urlsplit(uri)
    return (parts.scheme, parts.netloc), (path_of(uri) or parts.path).rstrip("/")
