"""Findings about tables, as SQL over their units, each with the statement that fixes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

WARNING, INFO = "warning", "info"
# The statement of a finding that no statement fixes.
_DESCRIBE = "DESCRIBE TABLE EXTENDED {name}"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
# In milliseconds.
_DAY = 24 * 3600 * 1000
# Of each kind of finding, the worst ones.
MOST_FINDINGS = 100


@dataclass(frozen=True)
class Limits:
    """Thresholds: a larger number is a finding."""

    small_file_bytes: int = 16 << 20
    small_files: int = 10
    skew_factor: int = 10
    skew_bytes: int = 128 << 20
    snapshots: int = 100
    manifests: int = 100
    delete_files: int = 100
    idle_days: int = 90


@dataclass(frozen=True)
class Kind:
    """A kind of finding: a query of rows (storage_plugin, workspace, table_name, fact, files, bytes)."""

    code: str
    severity: str
    query: Callable[[str, Limits, int], str]
    # The statement in Spark's SQL by catalog, with {name} for the table, {text} for its name in a literal.
    statements: Mapping[str, str]


def _number(name: str) -> str:
    return f"try_cast(get_json_object(additional_metadata, '$.{name}') AS BIGINT)"


_TABLE = "storage_plugin, workspace, table_name"
_SIZE = f"coalesce({_number('files')}, 0) AS files, coalesce({_number('bytes')}, 0) AS size_bytes"


def total(name: str) -> str:
    """Return the sum of a column under its name; 0 for one beyond 64 bits, which must not end a query."""
    return f"coalesce(try_sum({name}), 0) AS {name}"


_TOTALS = f"count(*) AS table_count, {total('files')}, {total('size_bytes')}"


def _of_tables(fact: str, condition: str) -> Callable[[str, Limits, int], str]:
    """Return the query of tables whose own unit meets a condition, in which {limits} are replaced."""

    def query(units: str, limits: Limits, now: int) -> str:
        parameters = {**vars(limits), "now": now, "idle_since": now - limits.idle_days * _DAY}
        return (
            f"SELECT {_TABLE}, {fact.format(**parameters)} AS fact, {_SIZE} FROM {units}"
            f" WHERE metadata_key = 'GENERAL_INFO' AND {condition.format(**parameters)}"
        )

    return query


def _small_files(units: str, limits: Limits, _: int) -> str:
    """Return the query of tables with segments of many files that are small on average."""
    return (
        f"SELECT {_TABLE}, concat(try_sum(files), ' files of ',"
        " try_sum(size_bytes) DIV try_sum(files) DIV 1024, ' KiB on average, in ', count(*),"
        " ' segments') AS fact, try_sum(files) AS files, try_sum(size_bytes) AS size_bytes"
        f" FROM (SELECT {_TABLE}, {_SIZE} FROM {units} WHERE metadata_type = 'SEGMENT')"
        f" WHERE files >= {limits.small_files}"
        f" AND size_bytes < try_multiply(files, {limits.small_file_bytes}) GROUP BY {_TABLE}"
    )


def _skew(units: str, limits: Limits, _: int) -> str:
    """Return the query of tables whose largest partition is many times as large as the median."""
    return (
        f"SELECT {_TABLE}, concat('the largest of ', count(*), ' partitions, ',"
        " max_by(metadata_identifier, size_bytes), ', has ', max(size_bytes) DIV 1048576,"
        " ' MiB, the median ', try_cast(median(size_bytes) AS BIGINT) DIV 1048576, ' MiB') AS fact,"
        " try_sum(files) AS files,"
        f" try_sum(size_bytes) AS size_bytes FROM (SELECT {_TABLE}, metadata_identifier, {_SIZE} FROM {units}"
        f" WHERE metadata_type = 'PARTITION') GROUP BY {_TABLE}"
        f" HAVING max(size_bytes) >= {limits.skew_bytes}"
        f" AND max(size_bytes) > {limits.skew_factor} * median(size_bytes)"
    )


KINDS = (
    Kind(
        "unreadable_files", WARNING,
        _of_tables(
            f"concat('unreadable files: ', {_number('unreadable_files')}, ', such as ',"
            " get_json_object(additional_metadata, '$.unreadable_file'))",
            f"{_number('unreadable_files')} > 0",
        ),
        {},
    ),
    Kind(
        "partitions_without_directory", WARNING,
        _of_tables(
            f"concat('partitions without directory: ', {_number('partitions_without_directory')})",
            f"{_number('partitions_without_directory')} > 0",
        ),
        {"hive": "MSCK REPAIR TABLE {name} DROP PARTITIONS"},
    ),
    Kind(
        "directories_without_partition", WARNING,
        _of_tables(
            f"concat('directories without partition: ', {_number('directories_without_partition')})",
            f"{_number('directories_without_partition')} > 0",
        ),
        {"hive": "MSCK REPAIR TABLE {name} ADD PARTITIONS"},
    ),
    Kind(
        "equality_deletes", WARNING,
        _of_tables(
            f"concat('equality deletes, which not every reader supports: ', {_number('equality_deletes')})",
            f"{_number('equality_deletes')} > 0",
        ),
        {"iceberg": "CALL iceberg.system.rewrite_data_files(table => '{text}',"
                    " options => map('delete-file-threshold', '1'))"},
    ),
    Kind(
        "position_deletes", WARNING,
        _of_tables(
            f"concat('files of position deletes: ', {_number('position_deletes')})",
            f"{_number('position_deletes')} > {{delete_files}}",
        ),
        {"iceberg": "CALL iceberg.system.rewrite_data_files(table => '{text}',"
                    " options => map('delete-file-threshold', '1'))"},
    ),
    Kind(
        "small_files", WARNING, _small_files,
        {"iceberg": "CALL iceberg.system.rewrite_data_files(table => '{text}')", "delta": "OPTIMIZE {name}"},
    ),
    Kind("skewed_partitions", INFO, _skew, {}),
    Kind(
        "many_snapshots", WARNING,
        _of_tables(
            f"concat({_number('snapshots')}, ' snapshots')",
            f"{_number('snapshots')} > {{snapshots}}",
        ),
        {"iceberg": "CALL iceberg.system.expire_snapshots(table => '{text}')"},
    ),
    Kind(
        "many_manifests", WARNING,
        _of_tables(
            f"concat({_number('manifests')}, ' manifests of ', {_number('files')}, ' files')",
            f"{_number('manifests')} > {{manifests}}"
            f" AND try_multiply({_number('manifests')}, 10) > {_number('files')}",
        ),
        {"iceberg": "CALL iceberg.system.rewrite_manifests(table => '{text}')"},
    ),
    Kind(
        "stale_statistics", INFO,
        _of_tables(
            f"concat('its statistics are of ', {_number('statistics_files')}, ' files, it has ',"
            f" {_number('files')})",
            f"{_number('statistics_files')} <> {_number('files')} AND {_number('partitions')} = 0",
        ),
        {"hive": "ANALYZE TABLE {name} COMPUTE STATISTICS"},
    ),
    Kind(
        "idle", INFO,
        _of_tables(
            f"concat('no commit for ', try_subtract({{now}}, {_number('last_commit')}) DIV {_DAY}, ' days')",
            f"{_number('last_commit')} < {{idle_since}}",
        ),
        {},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class TableFinding:
    """A finding about a table: its cost in files and bytes, and what Spark runs to fix or describe it."""

    code: str
    severity: str
    storage_plugin: str
    workspace: str
    table_name: str
    fact: str
    files: int
    size_bytes: int
    spark_sql: str


def findings(
    query: Callable[[str], list[Mapping[str, Any]]], units: str, limits: Limits, now: int
) -> Iterator[TableFinding]:
    """Yield the findings of each kind, the largest tables first; `query` runs SQL and returns rows."""
    for kind in KINDS:
        ordered = (
            f"{kind.query(units, limits, now)} ORDER BY size_bytes DESC, files DESC LIMIT {MOST_FINDINGS}"
        )
        for row in query(ordered):
            name = sql_name(row["workspace"], row["table_name"])
            yield TableFinding(
                kind.code,
                kind.severity,
                row["storage_plugin"],
                row["workspace"],
                row["table_name"],
                str(row["fact"] or ""),
                int(row["files"] or 0),
                int(row["size_bytes"] or 0),
                kind.statements.get(row["storage_plugin"], _DESCRIBE).format(name=name, text=escaped(name)),
            )


def sizes(units: str, group: str) -> str:
    """Return the query of the number, the files and the bytes of tables by an expression."""
    return (
        f"SELECT name, {_TOTALS}"
        f" FROM (SELECT coalesce({group}, '') AS name, {_SIZE} FROM {units}"
        " WHERE metadata_key = 'GENERAL_INFO')"
        f" GROUP BY name ORDER BY size_bytes DESC, name LIMIT {MOST_FINDINGS}"
    )


GROUPS = {
    "formats": "storage_plugin",
    "versions": f"concat(storage_plugin, ' ', {_number('format_version')})",
    "databases": "workspace",
    "owners": "owner",
}


def sizes_of_run(units: str, time_ms: int, version: int | None, free_bytes: int | None) -> str:
    """Return the query of a run's rows in the table of sizes, by format, database and owner."""
    groups = "storage_plugin, workspace, owner"
    return (
        f"SELECT {_literal(time_ms)} AS measured_at, {_literal(version)} AS version, {groups}, {_TOTALS},"
        f" {_literal(free_bytes)} AS free_bytes FROM (SELECT storage_plugin, workspace,"
        f" coalesce(owner, '') AS owner, {_SIZE} FROM {units} WHERE metadata_key = 'GENERAL_INFO')"
        f" GROUP BY {groups}"
    )


def _literal(number: int | None) -> str:
    return f"CAST({'NULL' if number is None else number} AS BIGINT)"


def sql_name(database: str, table: str) -> str:
    """Return the name of a table as it is in Spark's SQL."""
    return f"{_quoted(database)}.{_quoted(table)}"


def escaped(text: str) -> str:
    """Return a text as it is between quotation marks in Spark's SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"
