"""Names of tables: `iceberg.database.table` and `delta.database.table`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_clients.errors import ClientError

FORMATS = ("iceberg", "delta")
_NAME = re.compile(rf"(?P<format>{'|'.join(FORMATS)})\.(?P<database>\w+)\.(?P<table>\w+)")
# What a query may hold beside names: text, quoted names and comments, in which nothing is a name.
_TOKENS = re.compile(
    rf"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|(?<![\w.])(?P<name>{_NAME.pattern})(?![\w.]*\()",
    flags=re.DOTALL,
)


@dataclass(frozen=True)
class Name:
    """A table: its format, its database and its own name."""

    format: str
    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> Name:
        """Read `iceberg.database.table` or `delta.database.table`; ClientError for anything else."""
        if found := _NAME.fullmatch(text):
            return cls(found["format"], found["database"], found["table"])
        raise ClientError(
            f"{text!r} is not a table's name", "write iceberg.database.table or delta.database.table"
        )

    @property
    def identifier(self) -> tuple[str, str]:
        """Database and table, as the metastore knows them."""
        return self.database, self.table

    def __str__(self) -> str:
        return f"{self.format}.{self.database}.{self.table}"


def require_columns_of_hive(table: Name, columns: Iterable[str]) -> None:
    """Raise ClientError if two columns differ in capitals alone, which the metastore and SQL take for one."""
    seen: dict[str, str] = {}
    for column in columns:
        if other := seen.get(column.lower()):
            raise ClientError(
                f"{table}: the columns {other} and {column} are one to the metastore and to SQL", "rename one"
            )
        seen[column.lower()] = column


def split_query(query: str) -> tuple[str, list[Name]]:
    """Return the query with every table's name quoted as one word, and the tables once each.

    >>> split_query("SELECT t.x FROM delta.db.t AS t -- not delta.db.u")[0]
    'SELECT t.x FROM "delta.db.t" AS t -- not delta.db.u'
    """
    found: dict[str, Name] = {}

    def quoted(match: re.Match[str]) -> str:
        if match["name"] is None:
            if known := _NAME.fullmatch(match[0][1:-1] if match[0].startswith('"') else ""):
                found[known[0]] = Name.parse(known[0])
            return match[0]
        name = Name(match["format"], match["database"], match["table"])
        found[str(name)] = name
        return f'"{name}"{match["name"].removeprefix(str(name))}'

    return _TOKENS.sub(quoted, query), list(found.values())
