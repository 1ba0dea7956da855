"""Convert changes to DDL statements for Spark; a change without a statement becomes a comment.

A statement that would delete files, or remove them from a table, is a comment too, for the user to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lakehouse.catalog import text
from lakehouse.catalog.diff import COLUMN, Action, Change
from lakehouse.catalog.names import DEFAULT_CATALOG
from lakehouse.terminal import printable
from plugins.module_utils.lakehouse.counting import counted

_PARAMETER = "parameter "
_TYPE = re.compile(r"[A-Za-z0-9_(),<>:. ]+")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def statements(changes: Iterable[Change]) -> Iterator[str]:
    """Give a statement, or a comment, for each change, in their order."""
    for change in changes:
        statement = _statement(change)
        # Quoted names have no escapes: one with a line break would end its line, or a comment before it.
        is_line = statement is not None and printable(statement) == statement
        yield statement if statement and is_line else f"-- no statement: {text.change(change)}"


def _statement(change: Change) -> str | None:
    if change.name.catalog not in {"", DEFAULT_CATALOG}:
        return None
    if change.kind == "database":
        return _database(change)
    # Tables of other formats have their metadata in files: the metastore has a copy of it, or a pointer.
    if change.table_format != "hive":
        return None
    if change.kind == "partition":
        return _partition(change)
    return _table(change) if change.kind == "table" else None


def _database(change: Change) -> str | None:
    name = quoted(change.name.database)
    if change.action is Action.ADDED:
        place = f" LOCATION {_text(change.after['location'])}" if change.after.get("location") else ""
        comment = f" COMMENT {_text(change.after['description'])}" if change.after.get("description") else ""
        return f"CREATE DATABASE IF NOT EXISTS {name}{comment}{place};"
    if change.action is Action.CHANGED and change.field.startswith(_PARAMETER) and change.after is not None:
        return f"ALTER DATABASE {name} SET DBPROPERTIES ({_pair(change)});"
    return None


def _table(change: Change) -> str | None:
    name = _table_name(change)
    if change.action is not Action.CHANGED:
        return _created(change) if change.action is Action.ADDED else None
    if change.field.startswith(_PARAMETER) and change.after is None:
        key = _text(change.field.removeprefix(_PARAMETER))
        return f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ({key});"
    if change.field.startswith(_PARAMETER):
        return f"ALTER TABLE {name} SET TBLPROPERTIES ({_pair(change)});"
    if change.field == "location" and change.after:
        return f"ALTER TABLE {name} SET LOCATION {_text(change.after)};"
    if (
        change.field.startswith(f"{COLUMN} ")
        and change.before is None
        and (column := _column(change.field, change.after))
    ):
        position = change.after["position"]
        return f"ALTER TABLE {name} ADD COLUMNS ({column}); -- as the last; it is column {position}"
    return None


def _partition(change: Change) -> str | None:
    if not (keys := _keys(change.name.partition)):
        return None
    head = f"ALTER TABLE {_table_name(change)}"
    if change.action is Action.ADDED:
        place = f" LOCATION {_text(change.after['location'])}" if change.after.get("location") else ""
        return f"{head} ADD IF NOT EXISTS PARTITION ({keys}){place};"
    if change.action is Action.CHANGED and change.field == "location" and change.after:
        return f"{head} PARTITION ({keys}) SET LOCATION {_text(change.after)};"
    return None


def _created(change: Change) -> str | None:
    """Return the CREATE statement of an external table of Hive's own formats."""
    document: Mapping[str, Any] = change.after
    storage, parameters = document.get("storage", {}), document.get("parameters", {})
    if document.get("type") != "EXTERNAL_TABLE" or "spark.sql.sources.provider" in parameters:
        return None
    serde = storage.get("serde", {})
    listed = [[_column(column["name"], column) for column in columns] for columns in (
        storage.get("columns", ()), document.get("partition_keys", ()))]  # fmt: skip
    clauses = (
        storage.get("location"),
        serde.get("library"),
        storage.get("input_format"),
        storage.get("output_format"),
    )
    if not all(clauses) or not listed[0] or None in (*listed[0], *listed[1]):
        return None
    place, library, reads, writes = (_text(str(word)) for word in clauses)
    columns, keys = (", ".join(filter(None, columns)) for columns in listed)
    options = _pairs(serde.get("parameters", {}))
    properties = _pairs({key: value for key, value in parameters.items() if key != "EXTERNAL"})
    words = [
        f"CREATE EXTERNAL TABLE {_table_name(change)} ({columns})",
        f"PARTITIONED BY ({keys})" if keys else "",
        f"ROW FORMAT SERDE {library}",
        f"WITH SERDEPROPERTIES ({options})" if options else "",
        f"STORED AS INPUTFORMAT {reads} OUTPUTFORMAT {writes} LOCATION {place}",
        f"TBLPROPERTIES ({properties})" if properties else "",
    ]
    rest = f" -- without its {counted(change.partitions, 'partition')}" if change.partitions else ""
    return f"{' '.join(filter(None, words))};{rest}"


def _keys(partition: str) -> str:
    """Return the partition spec for the name of a partition; empty if it cannot be written."""
    pairs = [word.partition("=") for word in partition.split("/")]
    if not all(key and equals for key, equals, _ in pairs) or any(
        "__HIVE_DEFAULT" in value for *_, value in pairs
    ):
        return ""
    return ", ".join(f"{quoted(_unescaped(key))}={_text(_unescaped(value))}" for key, _, value in pairs)


def _unescaped(word: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), word)


def _column(field: str, column: Mapping[str, Any]) -> str | None:
    kind = str(column.get("type", ""))
    # A type cannot be quoted.
    if not _TYPE.fullmatch(kind):
        return None
    comment = f" COMMENT {_text(column['comment'])}" if column.get("comment") else ""
    return f"{quoted(field.removeprefix(f'{COLUMN} '))} {kind}{comment}"


def _pair(change: Change) -> str:
    return f"{_text(change.field.removeprefix(_PARAMETER))}={_text(str(change.after))}"


def _pairs(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{_text(key)}={_text(str(value))}" for key, value in sorted(parameters.items()))


def _table_name(change: Change) -> str:
    return f"{quoted(change.name.database)}.{quoted(change.name.table)}"


def quoted(name: str) -> str:
    """Quote a name for Spark."""
    return f"`{name.replace('`', '``')}`"


def _text(value: str) -> str:
    """Quote a text for Spark, on one line so that it cannot end a comment."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{''.join(map(_letter, escaped))}'"


def _letter(letter: str) -> str:
    """Escape a character that is not printable, by its UTF-16 code units."""
    if printable(letter) == letter:
        return letter
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
