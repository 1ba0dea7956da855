"""The engine facade: one Spark session that remembers what it was told, and says what it expected."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]


@dataclass(repr=False)
class Lake:
    """A Spark Connect session; `statements` are what the running test has sent, oldest first."""

    session: SparkSession
    url: str
    statements: list[str] = field(default_factory=list)

    def frame(self, statement: str) -> DataFrame:
        """Send one statement; a command has run when this returns, a query has not."""
        self.statements.append(statement)
        return self.session.sql(statement)

    def sql(self, statement: str) -> list[Row]:
        """Run one statement; return its rows."""
        return [tuple(row) for row in self.frame(statement).collect()]

    def value(self, query: str) -> Any:
        """Run a query for one row of one column; return it."""
        [[value]] = self.sql(query)
        return value

    def expect(self, query: str, rows: list[Row]) -> None:
        """Fail with the query and both sides unless it returns these rows in this order."""
        got = self.sql(query)
        assert got == rows, f"\nstatement: {query}\nexpected:  {rows}\ngot:       {got}"

    def refuses(self, statement: str, reason: str) -> None:
        """Fail unless the statement ends with an error that holds `reason`, a regular expression."""
        try:
            got = str(self.sql(statement))
        except PySparkException as error:
            got = str(error)
            if re.search(reason, got):
                return
        pytest.fail(f"\nstatement: {statement}\nexpected:  an error with {reason!r}\ngot:       {got}")

    def plan(self, query: str) -> str:
        """Return the physical plan of a query."""
        return str(self.value(f"EXPLAIN {query}"))

    def fresh(self) -> Lake:
        """Open a second session: it shares the server with this one, and the list of statements."""
        return Lake(SparkSession.builder.remote(self.url).create(), self.url, self.statements)
