"""One run of the census: collect changed tables on all executors, and write them in one commit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.storagelevel import StorageLevel

from lakehouse.census import changes, model
from lakehouse.census.changes import Changes, Summary
from lakehouse.census.collect import FORMATS, Outcome, collect
from lakehouse.census.contents import TableName
from lakehouse.census.delta import Checkpoint, Log
from lakehouse.census.files import MOST_ENTRIES, Files, UnavailableError
from lakehouse.census.java_errors import Py4JError, reason
from lakehouse.census.metastore import Table
from lakehouse.census.model import KEYS, Key, MetadataType
from lakehouse.census.store import SCHEMA, Modify, Store

if TYPE_CHECKING:
    # The client of Spark Connect, on the control machine, has none.
    from pyspark import RDD

# Tables of a task, which costs as much as many unchanged tables; and tasks per core, so that a table with
# many files delays no others.
_TABLES_PER_TASK, _TASKS = 50, 4
_STATE = [*KEYS, "additional_metadata"]
# Columns of a checkpoint that the census reads, as one text in the form of a commit's line.
_ACTIONS = "to_json(struct(add, metaData, protocol)) AS action"

# Spark reads a path with one of them as a pattern, which matches folders of other tables.
_GLOB = frozenset("[]{}*?\\")
_REASON_LETTERS = 300

OpenFiles = Callable[[], Files]


@dataclass(frozen=True)
class Counts:
    """The result of a run; `failed` are tables with the reason, `version` is the snapshot of the units."""

    tables: int
    skipped: int
    changed: int
    dropped: int
    unsupported: int
    units: int
    failed: Mapping[str, str]
    version: int | None
    written: bool
    seconds: float

    def document(self) -> dict[str, Any]:
        """Return the result for programs."""
        return {
            **{name: getattr(self, name) for name in
               ("tables", "skipped", "changed", "dropped", "unsupported", "units")},
            "failed": [{"table": table, "reason": reason} for table, reason in sorted(self.failed.items())],
            "version": self.version,
            "written": self.written,
            "seconds": round(self.seconds, 1),
        }  # fmt: skip


def run(
    spark: SparkSession,
    store: Store,
    tables: Sequence[Table],
    open_files: OpenFiles,
    level: MetadataType = model.ROW_GROUP,
) -> Counts:
    """Describe all tables, and commit what differs from the previous run; UnavailableError, ConflictError.

    `open_files` is called on executors. A table that cannot be described keeps its units of an earlier run.
    """
    start = time.monotonic()
    store.create()
    # Before the first read: a later commit is a conflict.
    modify = store.modify()
    stored = changes.versions(store.read({model.TABLE}, _STATE))
    supported = [table for table in tables if table.format in FORMATS]
    context = spark.sparkContext
    work = [(table, stored.get(table.name, "")) for table in supported]
    slices = max(1, min(len(work), max(_TASKS * context.defaultParallelism, len(work) // _TABLES_PER_TASK)))
    parallel = context.parallelize(work, slices)
    outcomes = [_evaluated(parallel.mapPartitions(lambda part: collect_all(part, open_files, level)))]
    try:
        summaries = _summaries(outcomes[0])
        for name, outcome in _from_checkpoints(spark, summaries, work, open_files, level):
            if isinstance(outcome, str):
                replacement = [Summary(name, failed=outcome)]
            else:
                outcomes.append(outcome)
                replacement = _summaries(outcome)
            summaries = [*(entry for entry in summaries if entry.name != name), *replacement]
        difference = changes.changes(
            summaries, {table.name for table in tables}, stored, _stored_digests(store, summaries, stored)
        )
        if difference:
            _write(spark, modify, context.union(outcomes), difference)
    finally:
        for outcome in outcomes:
            outcome.unpersist()
    return Counts(
        tables=len(tables),
        skipped=sum(entry.unchanged for entry in summaries),
        changed=len(changes.changed_names(summaries)),
        dropped=len(difference.dropped),
        unsupported=len(tables) - len(supported),
        units=sum(entry.units for entry in summaries),
        failed={str(entry.name): entry.failed for entry in summaries if entry.failed},
        version=store.version(),
        written=bool(difference),
        seconds=time.monotonic() - start,
    )


def collect_all(
    work: Iterable[tuple[Table, str]],
    open_files: OpenFiles,
    level: MetadataType,
    checkpoint: Checkpoint | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of each table with its known version; no more requests after a failure of HDFS."""
    files, unavailable = open_files(), ""
    for table, known_version in work:
        if not unavailable:
            try:
                yield collect(table, files, level, known_version, checkpoint)
                continue
            except UnavailableError as error:
                unavailable = str(error)
        yield Outcome(table.name, unavailable=unavailable)


def _evaluated(outcomes: RDD[Outcome]) -> RDD[Outcome]:
    """Evaluate outcomes once: a block that is lost later fails the job, as HDFS may have changed since."""
    outcomes.persist(StorageLevel.MEMORY_AND_DISK)
    outcomes.localCheckpoint()
    outcomes.count()
    return outcomes


def _summaries(outcomes: RDD[Outcome]) -> list[Summary]:
    """Return the summaries of outcomes; UnavailableError."""
    summaries: list[Summary] = outcomes.map(changes.summary).collect()
    for entry in summaries:
        if entry.unavailable:
            raise UnavailableError(entry.unavailable)
    return summaries


def _from_checkpoints(
    spark: SparkSession,
    summaries: Iterable[Summary],
    work: Iterable[tuple[Table, str]],
    open_files: OpenFiles,
    level: MetadataType,
) -> Iterator[tuple[TableName, RDD[Outcome] | str]]:
    """Yield the outcome of each Delta table whose checkpoint Spark reads, or why it cannot be read."""
    logs = {entry.name: entry.log for entry in summaries if entry.log}
    for row in work if logs else ():
        name = row[0].name
        if (log := logs.get(name)) is None:
            continue
        if _GLOB & set(log.folder):
            yield (
                name,
                f"Spark cannot read its checkpoint: {log.folder[:200]} has one of {' '.join(sorted(_GLOB))}",
            )
            continue
        try:
            yield name, _evaluated(_from_checkpoint(spark, log, row, open_files, level))
        except (PySparkException, Py4JError, ValueError) as error:
            fault = f"its checkpoint {log.checkpoint} cannot be read: {reason(error)}"
            yield name, fault[:_REASON_LETTERS]


def _from_checkpoint(
    spark: SparkSession, log: Log, row: tuple[Table, str], open_files: OpenFiles, level: MetadataType
) -> RDD[Outcome]:
    """Return the outcome of a table, which an executor makes of the actions of the checkpoint of its log."""
    frame = spark.read.parquet(*log.checkpoint_files).where(
        "add IS NOT NULL OR metaData IS NOT NULL OR protocol IS NOT NULL"
    )

    def outcomes(rows: Iterable[Any]) -> Iterator[Outcome]:
        actions = (json.loads(row.action) for row in rows)
        return collect_all([row], open_files, level, Checkpoint(log, actions))

    return frame.selectExpr(_ACTIONS).limit(MOST_ENTRIES + 2).coalesce(1).rdd.mapPartitions(outcomes)


def _stored_digests(
    store: Store, summaries: Iterable[Summary], stored: Mapping[TableName, str]
) -> dict[Key, str]:
    """Return the digests of the keys of tables that have changed and were there before."""
    names = [name for name in changes.changed_names(summaries) if name in stored]
    if not names:
        return {}
    types = {model.TABLE, model.SEGMENT}
    return changes.digests(store.read(types, _STATE, changes.of_tables(names)))


def _write(spark: SparkSession, modify: Modify, outcomes: RDD[Outcome], difference: Changes) -> None:
    """Commit the difference; ConflictError, UnknownCommitError."""
    for condition in difference.delete_filters():
        modify.delete(condition, {MetadataType.ALL})
    if difference.overwritten:
        overwritten = spark.sparkContext.broadcast(difference.overwritten)
        rows = outcomes.flatMap(
            lambda outcome: [unit.row() for unit in outcome.units if unit.key in overwritten.value]
        )
        modify.overwrite_frame(
            spark.createDataFrame(rows, SCHEMA, verifySchema=False), difference.overwritten
        )
    modify.execute()


def expire(spark: SparkSession, table: str) -> None:
    """Expire snapshots of the units by the properties of their table."""
    jvm = spark._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    loaded.expireSnapshots().commit()
