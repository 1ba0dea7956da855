"""Statements of Spark's SQL for actions. Pure; names are quoted, numbers are numbers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from lakehouse.census.report import escaped, sql_name
from lakehouse.upkeep.plan import Table
from lakehouse.upkeep.policies import Policy

# Files with deletes are rewritten; each group of files is committed alone, so that a conflict with a writer
# costs that group; deletes of rows that are gone by then go too.
_REWRITE = {
    "delete-file-threshold": 1,
    "remove-dangling-deletes": "true",
    "partial-progress.enabled": "true",
}
# Spark's own name of the catalog of Hive and Delta tables.
_SESSION, _ICEBERG = "spark_catalog", "iceberg"


def name(table: Table) -> str:
    """Return the name of a table, with its catalog."""
    catalog = _ICEBERG if table.format == "iceberg" else _SESSION
    return f"{catalog}.{sql_name(table.database, table.table)}"


def call(table: Table, procedure: str, **arguments: str) -> str:
    """Return the call of a procedure of Iceberg; arguments are SQL."""
    listed = {"table": f"'{escaped(sql_name(table.database, table.table))}'", **arguments}
    text = ", ".join(f"{key} => {value}" for key, value in listed.items())
    return f"CALL {_ICEBERG}.system.{procedure}({text})"


def compact(table: Table, policy: Policy) -> str:
    """Return the statement that rewrites small files and those with deletes."""
    columns = ", ".join(map(_column, policy.zorder or policy.sort))
    if table.format == "delta":
        return f"OPTIMIZE {name(table)}{f' ZORDER BY ({columns})' if columns else ''}"
    arguments = {}
    if columns:
        order = f"zorder({columns})" if policy.zorder else columns
        arguments = {"strategy": "'sort'", "sort_order": f"'{escaped(order)}'"}
    options = {"target-file-size-bytes": policy.file_bytes, **_REWRITE}
    pairs = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    return call(table, "rewrite_data_files", **arguments, options=f"map({pairs})")


def expire(table: Table, ids: Iterable[int]) -> str:
    """Return the statement that expires these snapshots, and none by its age alone."""
    listed = ", ".join(f"{number}L" for number in ids)
    return call(
        table,
        "expire_snapshots",
        older_than="TIMESTAMP '1970-01-01 00:00:00'",
        snapshot_ids=f"array({listed})",
    )


def orphans(table: Table, before_ms: int, view: str = "") -> str:
    """Return the statement that lists old files without a commit, or removes those among a view."""
    rest = {"file_list_view": f"'{view}'"} if view else {"dry_run": "true"}
    before = datetime.fromtimestamp(before_ms // 1000, UTC)
    older_than = f"TIMESTAMP '{before:%Y-%m-%d %H:%M:%S} UTC'"
    return call(table, "remove_orphan_files", older_than=older_than, **rest)


def vacuum(table: Table, hours: int | None, *, dry_run: bool) -> str:
    """Return the statement that lists or removes files that no version of so many hours needs.

    None is the duration of the table's own property.
    """
    retained = "" if hours is None else f" RETAIN {hours} HOURS"
    return f"VACUUM {name(table)}{retained}{' DRY RUN' if dry_run else ''}"


def analyze(table: Table) -> str:
    """Return the statement that counts rows and, for Iceberg, distinct values."""
    if table.format == "iceberg":
        return call(table, "compute_table_stats")
    return f"ANALYZE TABLE {name(table)} COMPUTE STATISTICS"


def _column(text: str) -> str:
    return ".".join(f"`{part}`" for part in text.split("."))
