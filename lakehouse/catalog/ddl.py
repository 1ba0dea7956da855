"""Changes as statements for Spark, where there are such; what no statement does is a comment that says it.

A statement that would delete files, or make a table forget them, is a comment, too: a person decides on it.
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
    for one in changes:
        found = _statement(one)
        # A quoted name has no escapes: one with a line break would end its line, and a comment before it.
        is_line = found is not None and printable(found) == found
        yield found if found and is_line else f"-- no statement: {text.change(one)}"


def _statement(one: Change) -> str | None:
    if one.name.catalog not in {"", DEFAULT_CATALOG}:
        return None
    if one.kind == "database":
        return _database(one)
    # The metadata of these is in files of their own: what the metastore has is a copy, or a pointer.
    if one.table_format != "hive":
        return None
    if one.kind == "partition":
        return _partition(one)
    return _table(one) if one.kind == "table" else None


def _database(one: Change) -> str | None:
    name = quoted(one.name.database)
    if one.action is Action.ADDED:
        place = f" LOCATION {_text(one.after['location'])}" if one.after.get("location") else ""
        comment = f" COMMENT {_text(one.after['description'])}" if one.after.get("description") else ""
        return f"CREATE DATABASE IF NOT EXISTS {name}{comment}{place};"
    if one.action is Action.CHANGED and one.field.startswith(_PARAMETER) and one.after is not None:
        return f"ALTER DATABASE {name} SET DBPROPERTIES ({_pair(one)});"
    return None


def _table(one: Change) -> str | None:
    name = _table_name(one)
    if one.action is not Action.CHANGED:
        return _created(one) if one.action is Action.ADDED else None
    if one.field.startswith(_PARAMETER) and one.after is None:
        key = _text(one.field.removeprefix(_PARAMETER))
        return f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ({key});"
    if one.field.startswith(_PARAMETER):
        return f"ALTER TABLE {name} SET TBLPROPERTIES ({_pair(one)});"
    if one.field == "location" and one.after:
        return f"ALTER TABLE {name} SET LOCATION {_text(one.after)};"
    if one.field.startswith(f"{COLUMN} ") and one.before is None and (said := _column(one.field, one.after)):
        return (
            f"ALTER TABLE {name} ADD COLUMNS ({said}); -- as the last; it is column {one.after['position']}"
        )
    return None


def _partition(one: Change) -> str | None:
    if not (keys := _keys(one.name.partition)):
        return None
    head = f"ALTER TABLE {_table_name(one)}"
    if one.action is Action.ADDED:
        place = f" LOCATION {_text(one.after['location'])}" if one.after.get("location") else ""
        return f"{head} ADD IF NOT EXISTS PARTITION ({keys}){place};"
    if one.action is Action.CHANGED and one.field == "location" and one.after:
        return f"{head} PARTITION ({keys}) SET LOCATION {_text(one.after)};"
    return None


def _created(one: Change) -> str | None:
    """Return the statement of an external table whose rows Hive's own formats hold."""
    said: Mapping[str, Any] = one.after
    storage, parameters = said.get("storage", {}), said.get("parameters", {})
    if said.get("type") != "EXTERNAL_TABLE" or "spark.sql.sources.provider" in parameters:
        return None
    serde = storage.get("serde", {})
    listed = [[_column(column["name"], column) for column in columns] for columns in (
        storage.get("columns", ()), said.get("partition_keys", ()))]  # fmt: skip
    wanted = (
        storage.get("location"),
        serde.get("library"),
        storage.get("input_format"),
        storage.get("output_format"),
    )
    if not all(wanted) or not listed[0] or None in (*listed[0], *listed[1]):
        return None
    place, library, reads, writes = (_text(str(word)) for word in wanted)
    columns, keys = (", ".join(filter(None, columns)) for columns in listed)
    options = _pairs(serde.get("parameters", {}))
    properties = _pairs({key: value for key, value in parameters.items() if key != "EXTERNAL"})
    words = [
        f"CREATE EXTERNAL TABLE {_table_name(one)} ({columns})",
        f"PARTITIONED BY ({keys})" if keys else "",
        f"ROW FORMAT SERDE {library}",
        f"WITH SERDEPROPERTIES ({options})" if options else "",
        f"STORED AS INPUTFORMAT {reads} OUTPUTFORMAT {writes} LOCATION {place}",
        f"TBLPROPERTIES ({properties})" if properties else "",
    ]
    rest = f" -- without its {counted(one.partitions, 'partition')}" if one.partitions else ""
    return f"{' '.join(filter(None, words))};{rest}"


def _keys(partition: str) -> str:
    """Return the values of a partition, whose name is as Hive makes that of its folder."""
    pairs = [word.partition("=") for word in partition.split("/")]
    if not all(key and equals for key, equals, _ in pairs) or any(
        "__HIVE_DEFAULT" in value for *_, value in pairs
    ):
        return ""
    return ", ".join(f"{quoted(_unescaped(key))}={_text(_unescaped(value))}" for key, _, value in pairs)


def _unescaped(word: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), word)


def _column(field: str, said: Mapping[str, Any]) -> str | None:
    kind = str(said.get("type", ""))
    # A type is no text that can be quoted.
    if not _TYPE.fullmatch(kind):
        return None
    comment = f" COMMENT {_text(said['comment'])}" if said.get("comment") else ""
    return f"{quoted(field.removeprefix(f'{COLUMN} '))} {kind}{comment}"


def _pair(one: Change) -> str:
    return f"{_text(one.field.removeprefix(_PARAMETER))}={_text(str(one.after))}"


def _pairs(said: Mapping[str, Any]) -> str:
    return ", ".join(f"{_text(key)}={_text(str(value))}" for key, value in sorted(said.items()))


def _table_name(one: Change) -> str:
    return f"{quoted(one.name.database)}.{quoted(one.name.table)}"


def quoted(name: str) -> str:
    """Return a name as Spark writes it, whatever it holds."""
    return f"`{name.replace('`', '``')}`"


def _text(value: str) -> str:
    """Quote a text; a comment must not end in it, so it stays on its line."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{''.join(map(_letter, escaped))}'"


def _letter(letter: str) -> str:
    """Return a letter as Spark reads it in a text: by its code units where it is not shown as it is."""
    if printable(letter) == letter:
        return letter
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
