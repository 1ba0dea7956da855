"""Load batches of flights: new files of a folder into bronze, their rows into silver, their days into gold.

Each step is one commit of an Iceberg table. It records in the snapshot what it has read, so that the next run
goes on there: a run that was killed is repeated, one without new files writes nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pipeline import flights, parsing
from pipeline.flights import BATCH, DATE, NEWEST
from pipeline.parsing import RAW, REASON
from pipeline.sources import FLIGHTS

# Properties of a snapshot, set by a session: Iceberg adds them to each commit, MERGE included.
_PROPERTY = "spark.sql.iceberg.snapshot-property.lakehouse."
_READ = "lakehouse.bronze-snapshot"
_BATCH_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}\.csv", re.ASCII)
# Letters of an error of Spark that are shown.
_MOST_LETTERS = 500
# Table -> columns, partitions, and the columns that identify a row.
_TABLES = {
    "bronze": (f"{BATCH} STRING, bytes BIGINT, {NEWEST} DATE, {RAW} STRING", f"{BATCH}, bytes", ()),
    "rejected": (f"{BATCH} STRING, {DATE} DATE, {REASON} STRING, {RAW} STRING", "", (BATCH, RAW)),
    "silver": (f"{BATCH} STRING, {FLIGHTS.schema}, {DATE} DATE", f"months({DATE})", FLIGHTS.key),
    "gold": (
        f"{DATE} DATE, origin STRING, flights BIGINT, cancelled BIGINT, delayed BIGINT, mean_delay DOUBLE",
        f"years({DATE})",
        (DATE, "origin"),
    ),
}
# Snapshots say what has been read: some stay when others expire.
_PROPERTIES = "'history.expire.min-snapshots-to-keep'='20'"


class Pipeline:
    """One run on the tables of a database; `faults` are the batches that were refused, with the reason."""

    def __init__(self, spark: SparkSession, database: str = "flights") -> None:
        self.spark, self.database = spark, f"iceberg.{database}"
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}"
        self.faults: list[str] = []
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {self.database}")
        for name, (columns, partitions, _) in _TABLES.items():
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.table(name)} ({columns}) USING iceberg"
                f" {f'PARTITIONED BY ({partitions})' if partitions else ''} TBLPROPERTIES ({_PROPERTIES})"
            )

    def table(self, name: str) -> str:
        """Full name of a table."""
        return f"{self.database}.{name}"

    def bronze(self, landing: str) -> Iterator[dict[str, Any]]:
        """Append the lines of each new file; a file is a batch, whose name identifies it."""
        files = self.spark.read.format("binaryFile").option("pathGlobFilter", "*.csv").load(landing)
        sizes = self._rows(
            f"SELECT partition.{BATCH}, partition.bytes FROM {self.table('bronze')}.partitions"
        )
        stored = dict(sizes)
        newest = self._rows(f"SELECT max({DATE}) FROM {self.table('silver')}")[0][0]
        for path, size in sorted(map(tuple, files.select("path", "length").collect())):
            batch = path.rpartition("/")[2]
            if stored.get(batch) == size:
                continue
            if fault := self._fault(batch, path, stored):
                self.faults.append(f"{batch[:100]}: {fault}")
                continue
            lines = self.spark.read.text(path).select(
                F.lit(batch).alias(BATCH),
                F.lit(size).cast("bigint").alias("bytes"),
                F.lit(newest).cast("date").alias(NEWEST),
                F.col("value").alias(RAW),
            )
            with self._lineage("bronze", batch):
                lines.writeTo(self.table("bronze")).append()
            yield self._result("bronze", batch)

    def silver(self, days: str | None = None) -> Iterator[dict[str, Any]]:
        """Merge the rows of new batches; in a backfill those of all batches within a range, also late ones.

        `days` is the range, as a condition in SQL on the date.
        """
        current, read = self._version("bronze"), self._read("silver")
        if current == read and not days:
            return
        rows = flights.judge(self._batches(None if days else read), late=not days).where(days or "true")
        rows = rows.persist()
        source = f"{self.table('bronze')}@{current}"
        # A backfill reads only its range of newer batches.
        with self._lineage("silver", source, read if days else current):
            # First, so that no row is lost in between.
            self._merge("rejected", flights.set_aside(rows), days)
            newer = "true" if days else f"s.{BATCH} >= silver.{BATCH}"
            self._merge("silver", flights.deduplicate(flights.accepted(rows)), days, newer)
        warnings = flights.warnings(rows)
        rows.unpersist()
        yield self._result("rejected", source)
        yield self._result("silver", source) | {"warnings": warnings}

    def gold(self, days: str | None = None) -> Iterator[dict[str, Any]]:
        """Compute the days again of which silver has new rows, or those of a range."""
        current, read = self._read("silver"), self._read("gold")
        if current == read and not days:
            return
        silver = self.spark.table(self.table("silver")).where(days or "true")
        if not days:
            changed = flights.accepted(flights.judge(self._batches(read), late=True)).select(DATE).distinct()
            silver = silver.join(F.broadcast(changed), DATE, "left_semi")
        source = f"{self.table('silver')}@{self._version('silver')}"
        with self._lineage("gold", source, read if days else current):
            self._merge("gold", flights.daily(silver), days)
        yield self._result("gold", source)

    def _fault(self, batch: str, path: str, stored: dict[str, int]) -> str | None:
        """Return why a file cannot be a new batch."""
        if not _BATCH_NAME.fullmatch(batch):
            return "a name has letters, digits, '.', '_' and '-'; rename the file"
        if batch in stored:
            return f"differs from the batch of {stored[batch]} bytes in bronze; land it under another name"
        fault = parsing.drift(parsing.header(self.spark.read.text(path)), FLIGHTS)
        return fault and f"{fault}; change the file, or pipeline/sources.py"

    def _batches(self, since: str | None) -> DataFrame:
        """Return what was appended to bronze after a snapshot; all of it where that is gone."""
        history = f"SELECT 1 FROM {self.table('bronze')}.history WHERE snapshot_id = {since or -1}"
        reader = self.spark.read
        if self._rows(f"{history} AND is_current_ancestor"):
            reader = reader.option("start-snapshot-id", str(since))
        return reader.table(self.table("bronze"))

    def _merge(self, name: str, rows: DataFrame, days: str | None, newer: str = "true") -> None:
        """Replace and add rows by key; in a range, remove those that are not among them any more."""
        same = " AND ".join(f"{name}.{column} = s.{column}" for column in _TABLES[name][2])
        equal = " AND ".join(f"{name}.{column} <=> s.{column}" for column in rows.columns)
        # Not in SQL: Spark 4.1 plans no MERGE from a temporary view of an Iceberg table (apache/spark#56515).
        merge = rows.alias("s").mergeInto(self.table(name), F.expr(same))
        merge = merge.whenMatched(F.expr(f"{newer} AND NOT ({equal})")).updateAll()
        merge = merge.whenNotMatched().insertAll()
        if days:
            merge = merge.whenNotMatchedBySource(F.expr(f"{name}.{days}")).delete()
        merge.merge()

    @contextmanager
    def _lineage(self, stage: str, source: str, read: str | None = None) -> Iterator[None]:
        """Have the commits of a block record run, stage, input, and the snapshot of bronze that was read."""
        values = {"run": self.run, "stage": stage, "input": source}
        if read:
            values[_READ.partition(".")[2]] = read
        for key, value in values.items():
            self.spark.conf.set(_PROPERTY + key, value)
        try:
            yield
        finally:
            for key in values:
                self.spark.conf.unset(_PROPERTY + key)

    def _result(self, name: str, source: str) -> dict[str, Any]:
        table = self.table(name)
        return {"run": self.run, "table": table, "snapshot": self._version(name), "input": source}

    def _version(self, name: str) -> str | None:
        rows = self._rows(f"SELECT snapshot_id FROM {self.table(name)}.refs WHERE name = 'main'")
        return str(rows[0][0]) if rows else None

    def _read(self, name: str) -> str | None:
        """Return the snapshot of bronze that the newest commit of a table recorded."""
        table = self.table(name)
        rows = self._rows(
            f"SELECT s.summary['{_READ}'] FROM {table}.history h JOIN {table}.snapshots s USING (snapshot_id)"
            f" WHERE h.is_current_ancestor AND s.summary['{_READ}'] IS NOT NULL"
            " ORDER BY h.made_current_at DESC LIMIT 1"
        )
        return rows[0][0] if rows else None

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(query).collect()]


def main(arguments: list[str] | None = None) -> int:
    """Run the stages, each commit a line of JSON; return 1 if a batch was refused or Spark failed."""
    parser = argparse.ArgumentParser(prog="lakehouse-pipeline", description=__doc__.partition("\n")[0])
    parser.add_argument("--landing", required=True, help="URI of the folder with the batches")
    parser.add_argument("--database", default="flights", help="database of the tables (%(default)s)")
    parser.add_argument("--backfill", nargs=2, type=date.fromisoformat, metavar=("FIRST", "LAST"),
                        help="then compute these days again from all batches, with late rows")  # fmt: skip
    options = parser.parse_args(arguments)
    if not options.database.isidentifier():
        parser.error(f"--database {options.database!r}: a name has letters, digits and underscores")
    spark = SparkSession.builder.appName("pipeline").getOrCreate()
    faults: list[str] = []
    try:
        pipeline = Pipeline(spark, options.database)
        stages = [pipeline.bronze(options.landing), pipeline.silver(), pipeline.gold()]
        if options.backfill:
            first, last = options.backfill
            days = f"{DATE} BETWEEN DATE'{first}' AND DATE'{last}'"
            stages += [pipeline.silver(days), pipeline.gold(days)]
        for result in chain.from_iterable(stages):
            sys.stdout.write(json.dumps(result) + "\n")
        faults = pipeline.faults
    except PySparkException as error:
        faults = [str(error).partition("\n")[0][:_MOST_LETTERS]]
    finally:
        spark.stop()
    sys.stderr.writelines(f"lakehouse-pipeline: {fault}\n" for fault in faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
