"""Use the Python API of the census on a cluster, in a database of its own: the program of test_census.py.

Its last line is an object of JSON: what was seen, by name.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as spark_functions

from lakehouse.census import filters, model
from lakehouse.census.filters import equal
from lakehouse.census.model import Key, MetadataType, MetadataUnit
from lakehouse.census.store import SCHEMA, Store

ALL = {MetadataType.ALL}
ODD = "it's \\ odd/ä"


def units(table: str, *keys: str, files: int = 2) -> list[MetadataUnit]:
    """Return the units of a table with these keys."""
    values: dict[str, Any] = {"storage_plugin": "hive", "workspace": "x", "table_name": table}
    listed = [MetadataUnit(**values, metadata_type=model.TABLE, metadata_key="GENERAL_INFO", owner="ann")]
    for key in keys:
        listed.append(MetadataUnit(**values, metadata_type=model.SEGMENT, metadata_key=key, locations=["a"]))
        listed += [
            MetadataUnit(**values, metadata_type=model.FILE, metadata_key=key, path=f"/{key}/{number}")
            for number in range(files)
        ]
    return listed


def observed(spark: SparkSession, store: Store) -> dict[str, Any]:
    """Return what was seen of each behaviour."""
    results: dict[str, Any] = {}
    store.create()
    results["no version"] = store.version()
    first = store.modify().overwrite(units("t", "a", "b")).overwrite(units("u", ODD)).execute()
    results["changed"] = [store.has_changed(None), store.has_changed(first)]
    rows = store.read(ALL)
    results["same units"] = sorted(map(repr, map(MetadataUnit.of_row, rows))) == sorted(
        map(repr, units("t", "a", "b") + units("u", ODD))
    )
    results["projection"] = store.read({model.TABLE}, ["owner"], equal("table_name", "t"))
    results["nothing"] = store.read({model.FILE}, ["path"], equal("table_name", "none"))

    before = files_of(spark, store)
    store.modify().overwrite(
        [unit for unit in units("t", "a", files=5) if unit.metadata_key == "a"]
    ).execute()
    results["replaced files"] = len(before - files_of(spark, store))

    commits = count(spark, f"{store.name}.snapshots")
    modify = store.modify().overwrite(units("n", "a")).delete(equal("table_name", "u"), ALL)
    modify.overwrite(units("u", "c")).delete(equal("table_name", "n"), ALL).execute()
    results["commits"] = count(spark, f"{store.name}.snapshots") - commits
    results["keys"] = keys_of(store)

    version = store.version()
    failing = spark.createDataFrame([unit.row() for unit in units("bad", "a")], SCHEMA).withColumn(
        "path", spark_functions.expr("raise_error('injected')")
    )
    modify = store.modify().overwrite(units("ok", "a")).delete(equal("table_name", "t"), ALL)
    try:
        modify.overwrite_frame(failing, [Key("hive", "x", "bad", "a")]).execute()
    except PySparkException:
        results["after a failure"] = [store.version() == version, keys_of(store) == results["keys"]]

    plan = store.frame(ALL, where=equal("table_name", "t"))._jdf.queryExecution().toString()
    results["pushed"] = "filters=table_name = 't'" in plan
    store.modify().purge().execute()
    results["purged"] = len(store.read(ALL))
    results["history"] = count(spark, f"{store.name} VERSION AS OF {version}")
    results["matches"] = compared(spark)
    return results


def compared(spark: SparkSession) -> bool:
    """Return whether Spark and `matches` agree on odd texts and null."""
    texts = [None, "", "a", "b", "'", "\\", ODD, "\uffff", "\U0001d11e"]
    frame = spark.createDataFrame([(text,) for text in texts], "path STRING").coalesce(1)
    kinds = [
        filters.Comparison(operator, "path", text)
        for operator in filters._COMPARISONS
        for text in texts
        if text is not None
    ]
    rows = frame.selectExpr(*(f"{filters.sql(kind)} AS c{number}" for number, kind in enumerate(kinds)))
    return [list(row) for row in rows.collect()] == [
        [filters.matches(kind, {"path": text}) for kind in kinds] for text in texts
    ]


def keys_of(store: Store) -> list[list[str]]:
    """Return tables and keys that have units."""
    rows = store.read(ALL, ["table_name", "metadata_key"])
    return sorted([table, key] for table, key in {(row["table_name"], row["metadata_key"]) for row in rows})


def files_of(spark: SparkSession, store: Store) -> set[str]:
    """Return the files that hold units."""
    return {row[0] for row in spark.sql(f"SELECT file_path FROM {store.name}.files").collect()}


def count(spark: SparkSession, table: str) -> int:
    """Return the number of rows."""
    return int(spark.sql(f"SELECT count(*) FROM {table}").collect()[0][0])


def main() -> None:
    """Use the API in the database that the first argument names, and drop it."""
    spark = SparkSession.builder.appName("census api").getOrCreate()
    database = sys.argv[1]
    store = Store(spark, database=database)
    try:
        sys.stdout.write(f"{json.dumps(observed(spark, store))}\n")
        sys.stdout.flush()
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {store.name} PURGE")
        spark.sql(f"DROP DATABASE IF EXISTS iceberg.{database}")
        spark.stop()


if __name__ == "__main__":
    main()
