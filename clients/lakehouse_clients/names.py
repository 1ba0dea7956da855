"""Names of tables: `iceberg.database.table` and `delta.database.table`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_clients.errors import ClientError

FORMATS = ("iceberg", "delta")
_NAME = re.compile(rf"(?P<format>{'|'.join(FORMATS)})\.(?P<database>\w+)\.(?P<table>\w+)")
# Text, quoted names and comments of a query, which contain no names of tables.
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
        if match := _NAME.fullmatch(text):
            return cls(match["format"], match["database"], match["table"])
        raise ClientError(
            f"{text!r} is not a table's name", "write iceberg.database.table or delta.database.table"
        )

    @property
    def identifier(self) -> tuple[str, str]:
        """Database and table, as the metastore names them."""
        return self.database, self.table

    def __str__(self) -> str:
        return f"{self.format}.{self.database}.{self.table}"


def require_columns_of_hive(table: Name, columns: Iterable[str]) -> None:
    """Raise ClientError if two columns differ only in case, which the metastore and SQL ignore."""
    columns_by_name: dict[str, str] = {}
    for column in columns:
        if same_column := columns_by_name.get(column.lower()):
            raise ClientError(
                f"{table}: the columns {same_column} and {column} are one to the metastore and to SQL",
                "rename one",
            )
        columns_by_name[column.lower()] = column


def split_query(query: str) -> tuple[str, list[Name]]:
    """Return the query with every table's name quoted as one word, and the tables once each.

    >>> split_query("SELECT t.x FROM delta.db.t AS t -- not delta.db.u")[0]
    'SELECT t.x FROM "delta.db.t" AS t -- not delta.db.u'
    """
    tables: dict[str, Name] = {}

    def quote_name(match: re.Match[str]) -> str:
        if match["name"] is None:
            if quoted_name := _NAME.fullmatch(match[0][1:-1] if match[0].startswith('"') else ""):
                tables[quoted_name[0]] = Name.parse(quoted_name[0])
            return match[0]
        name = Name(match["format"], match["database"], match["table"])
        tables[str(name)] = name
        return f'"{name}"{match["name"].removeprefix(str(name))}'

    return _TOKENS.sub(quote_name, query), list(tables.values())
