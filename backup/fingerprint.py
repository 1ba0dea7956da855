"""Rows and checksum of each table, as Spark reads it: a Spark program of its own, for `spark-submit`.

The checksum is the sum over all rows of the CRC-32 of their values as text, so the order of rows does not
matter, and Trino computes the same number (lakehouse/backup/engines.py). Values that engines print
differently are normalized: a real number to thousandths, a time to whole seconds; lists and structures are
excluded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Kind of a value by the beginning of its Spark type.
_KINDS = {
    "string": "text", "varchar": "text", "char": "text",
    "tinyint": "whole", "smallint": "whole", "int": "whole", "bigint": "whole", "boolean": "whole",
    "decimal": "whole", "date": "whole",
    "float": "real", "double": "real",
    "timestamp": "time",
}  # fmt: skip
_TEXT = {
    "text": "{0}",
    "whole": "cast({0} AS string)",
    "real": "CASE WHEN abs(cast({0} AS double)) < 1e14 "
            "THEN cast(cast(floor(cast({0} AS double) * 1000) AS bigint) AS string) ELSE 'beyond' END",
    "time": "cast(cast(floor(unix_micros(cast({0} AS timestamp)) / 1000000) AS bigint) AS string)",
}  # fmt: skip


def kinds(types: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the columns that a checksum covers with the kind of their values."""
    columns = (
        (name, _KINDS.get(spark_type.partition("(")[0].removesuffix("_ntz"))) for name, spark_type in types
    )
    return [(name, kind) for name, kind in columns if kind]


def expression(columns: Sequence[tuple[str, str]]) -> str:
    """Return the SQL of a checksum."""
    quoted = ((name.replace("`", "``"), kind) for name, kind in columns)
    texts = [f"coalesce({_TEXT[kind].format(f'`{name}`')}, '∅')" for name, kind in quoted]
    return f"coalesce(sum(crc32(encode(concat_ws('|', {', '.join(texts)}), 'utf-8'))), 0)" if texts else "0"


def source(table: dict[str, Any]) -> str:
    """Return the SQL that names a table at its version, or as the catalog has it now."""
    database, name = (str(table[key]).replace("`", "``") for key in ("database", "name"))
    if table["now"]:
        catalog = "iceberg" if table["format"] == "iceberg" else "spark_catalog"
        return f"{catalog}.`{database}`.`{name}`"
    if table["format"] == "iceberg":
        return f"iceberg.`{database}`.`{name}` VERSION AS OF {table['version']}"
    if table["format"] == "delta":
        place = str(table["location"]).replace("`", "``")
        return f"delta.`{place}` VERSION AS OF {table['version']}"
    return f"spark_catalog.`{database}`.`{name}`"


def count(spark: Any, table: dict[str, Any]) -> dict[str, Any]:
    """Return rows, checksum and checksum columns of a table."""
    if table["format"] == "iceberg" and table["version"] is None and not table["now"]:
        return {"rows": 0, "checksum": 0, "columns": []}
    frame = spark.sql(f"SELECT * FROM {source(table)}")  # noqa: S608 -- the catalog's own
    columns = kinds(frame.dtypes)
    frame.createOrReplaceTempView("counted")
    row = spark.sql(f"SELECT count(*), {expression(columns)} FROM counted").first()  # noqa: S608 -- as above
    return {"rows": int(row[0]), "checksum": int(row[1]), "columns": columns}


def main(input_path: str, output_path: str) -> None:
    """Read tables from a file, write the result of each to another; an unreadable table has an error."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 -- with Spark

    from pyspark.sql import SparkSession  # noqa: PLC0415

    spark = SparkSession.builder.appName("backup").getOrCreate()

    def count_table(table: dict[str, Any]) -> dict[str, Any]:
        try:
            return count(spark.newSession(), table)
        except Exception as error:  # noqa: BLE001 -- Spark's own have no common class; it is returned
            return {"unknown": " ".join(str(error).split())[:300]}

    tables = json.loads(Path(input_path).read_text(encoding="utf-8"))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(count_table, tables))
    Path(output_path).write_text(json.dumps(results), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
