"""The engine facade: one Spark session that remembers what it was told, and says what it expected."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

Row = tuple[Any, ...]
Settings = dict[str, bool | float | int | str | None]

# The suite's tables have a handful of rows: compiling a query, or planning it anew half way, costs more than
# running it, and a second task has nothing to do.
SESSION: Settings = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
# About a second. The client's own patience with a server that has gone is ten minutes for each statement.
_RETRIES = 3


@dataclass(repr=False)
class Lake:
    """A Spark Connect session; `statements` are what the running test has sent, oldest first."""

    session: SparkSession
    url: str
    statements: list[str] = field(default_factory=list)

    @classmethod
    def connect(cls, url: str, settings: Settings | None = None) -> Lake:
        """Open a session that shares nothing but the server; its settings are SESSION, or these."""
        own = SESSION if settings is None else settings
        session = SparkSession.builder.remote(url).config(map=own).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
        return cls(session, url)

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
        """Open a second session that adds to the same list of statements."""
        return replace(Lake.connect(self.url), statements=self.statements)
