"""Features of tables that an engine reads wrongly or not at all: pure functions over metastore rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog.partition_names import NOTHING
from lakehouse.tables import hive_types
from lakehouse.tables.features import CUT, FILTERED, FLINK, REFUSED, SPARK, SPREADS, TRINO, WRONG, Risk

_PAGE = "docs/across-engines.md#hive-tables"
_PROVIDER, _SCHEMA = "spark.sql.sources.provider", "spark.sql.sources.schema"
# Providers whose tables other rules judge, or that are Hive's own.
_OTHERS = {"", "hive", "delta", "iceberg"}
# What Spark gives a table that only Spark can read.
_STAND_IN = [("col", "array<string>")]
_MOST_PARTS = 10_000
_COUNT = re.compile(r"[0-9]{1,9}")
_TYPES = Risk(
    "type names",
    SPREADS,
    "Trino cannot read it, nor list the columns of any table (information_schema.columns)",
    "https://github.com/apache/spark/pull/49506",
    engines=(TRINO,),
)
_HEADER = Risk(
    "skip.header.line.count",
    WRONG,
    "Spark and Flink read the header as a row",
    "https://github.com/trinodb/trino/issues/17933",
    engines=(SPARK, FLINK),
)
_NULL = Risk(
    "partition value null", WRONG, f"Flink reads the text {NOTHING}", _PAGE, engines=(FLINK,)
)  # fmt: skip
_QUOTE = Risk("partition value with a quote", FILTERED, "Flink finds no row by it", _PAGE)
_ALTERED = Risk(
    "columns",
    WRONG,
    "Spark reads the columns that it made (USING), not those that the metastore has now; recreate it",
    "docs/flink.md#hive-tables",
    engines=(SPARK,),
)
_SPARK_ONLY = Risk(
    "columns that Spark alone knows",
    REFUSED,
    "Trino and Flink cannot read them; make the table with STORED AS",
    "docs/flink.md#hive-tables",
    engines=(TRINO, FLINK),
)
_NESTED = Risk(
    "nested types in lists or maps of Parquet",
    REFUSED,
    "Flink cannot read the table",
    _PAGE,
    engines=(FLINK,),
)
_EMPTY = Risk("lists or maps in Parquet", CUT, "Flink reads an empty one as null", _PAGE)
_PLAIN_FILES = Risk(
    "files without a bucket",
    REFUSED,
    "Trino cannot read a table with buckets after an INSERT of Flink, which writes none",
    _PAGE,
    engines=(TRINO,),
)
# How Hive and Spark, and how Trino name the file of a bucket.
_BUCKET = re.compile(r"\d+_\d+|.*_bucket-\d+")
_LISTED = re.compile(r"\b(?:array|map)<")
# A nested type that is an element, a key or a value.
_IN_LIST = re.compile(r"\b(?:array<|map<(?:[^<>,]+,)?)(?:array|map|struct|uniontype)<")


@dataclass(frozen=True)
class HiveTable:
    """A table of Hive's formats as the metastore has it: names and types of columns, and of partition keys.

    `partitions` are names such as `p=a/q=1`: as many as were asked for, and all kinds of those with a null.
    `bucket_files` are names of files in folders of a table with buckets; none of any other.
    """

    parameters: Mapping[str, str]
    columns: Sequence[tuple[str, str]]
    keys: Sequence[tuple[str, str]]
    input_format: str
    partitions: Sequence[str] = ()
    bucket_files: Sequence[str] = ()


def type_risks(columns: Sequence[tuple[str, str]]) -> list[Risk]:
    """Judge the types of any table's columns, which Trino parses before it knows the table's format."""
    unreadable = [f"{name} ({why})" for name, kind in columns if (why := hive_types.unreadable(kind))]
    return [_TYPES.of(unreadable)] if unreadable else []


def hive_risks(table: HiveTable) -> list[Risk]:
    """Judge a table of Hive's own formats."""
    return list(_risks(table))


def _risks(table: HiveTable) -> Iterator[Risk]:
    input_format = table.input_format.lower()
    header = table.parameters.get("skip.header.line.count", "")
    if "text" in input_format and _COUNT.fullmatch(header) and int(header):
        yield _HEADER
    if null := [name for name in table.partitions if NOTHING in name]:
        yield _NULL.of(null)
    if quoted := [name for name in table.partitions if "%27" in name or "'" in name]:
        yield _QUOTE.of(quoted)
    if plain := [name for name in table.bucket_files if not _BUCKET.match(name)]:
        yield _PLAIN_FILES.of(plain)
    if table.parameters.get(_PROVIDER, "").lower() not in _OTHERS:
        yield from _of_spark(table)
    if "parquet" in input_format:
        yield from _lists(table.columns)


def _lists(columns: Sequence[tuple[str, str]]) -> Iterator[Risk]:
    """Judge lists and maps, by the names of their types."""
    nested = [name for name, kind in columns if _IN_LIST.search(kind[: hive_types.MOST_CHARACTERS])]
    if nested:
        yield _NESTED.of(nested)
    elif listed := [name for name, kind in columns if _LISTED.search(kind[: hive_types.MOST_CHARACTERS])]:
        yield _EMPTY.of(listed)


def _of_spark(table: HiveTable) -> Iterator[Risk]:
    """Compare the columns in the properties of a table that Spark created with those of the metastore."""
    if list(table.columns) == _STAND_IN:
        yield _SPARK_ONLY
        return
    spark_columns = _noted_columns(table.parameters)
    if spark_columns is None:
        return
    current_columns = {name.lower() for name, _ in (*table.columns, *table.keys)}
    if different := sorted(spark_columns ^ current_columns):
        yield _ALTERED.of(different)


def _noted_columns(parameters: Mapping[str, str]) -> set[str] | None:
    """Return the names of columns in Spark's own schema; None where there is none."""
    text = parameters.get(_SCHEMA)
    if text is None:
        count = parameters.get(f"{_SCHEMA}.numParts", "")
        if not _COUNT.fullmatch(count) or int(count) > _MOST_PARTS:
            return None
        text = "".join(parameters.get(f"{_SCHEMA}.part.{number}", "") for number in range(int(count)))
    schema: Any = json.loads(text)
    return {str(field["name"]).lower() for field in schema["fields"]}
