"""Spark through Spark Connect: a session that records its statements."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.dataframe import DataFrame as Frame
from pyspark.sql.connect.plan import SQL
from pyspark.sql.connect.session import SparkSession

from suites.testbed.engines.facade import Facade, Row

Settings = dict[str, bool | float | int | str | None]

# The tables of tests have a handful of rows: compiling a query, or planning it anew half way, costs more than
# running it, and a second task has nothing to do. Rows that a statement brings along are one file.
SESSION: Settings = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
# Runs on the executor: java.net.InetAddress says "name/address" of the machine.
THIS_HOST = "split(reflect('java.net.InetAddress', 'getLocalHost'), '/')[0]"
# About a second. The client's own patience with a server that has gone is ten minutes for each statement.
_RETRIES = 3


def pause(milliseconds: int) -> str:
    """Return an expression that holds a task's core for so long per row, and computes nothing."""
    return f"reflect('java.lang.Thread', 'sleep', {milliseconds}L)"


@dataclass(repr=False)
class Spark(Facade):
    """A Spark Connect session; `statements` are what the running test has sent, oldest first."""

    session: SparkSession
    url: str
    statements: list[str] = field(default_factory=list)

    refusal = PySparkException

    @classmethod
    def connect(cls, url: str, settings: Settings | None = None) -> Spark:
        """Open a separate session of the server with these settings, by default SESSION."""
        session_settings = SESSION if settings is None else settings
        session = SparkSession.builder.remote(url).config(map=session_settings).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
        return cls(session, url)

    def frame(self, statement: str) -> DataFrame:
        """Send one statement; a command has run when this returns, a query has not."""
        self.statements.append(statement)
        return self.session.sql(statement)

    def sql(self, statement: str) -> list[Row]:
        """Run one statement; return its rows."""
        self.statements.append(statement)
        # `session.sql` first asks whether it is a command; fetching the rows would be a second round trip.
        return [tuple(row) for row in Frame(SQL(statement), self.session).collect()]

    def plan(self, query: str) -> str:
        """Return the physical plan of a query."""
        return str(self.value(f"EXPLAIN {query}"))

    def fresh(self, settings: Settings | None = None) -> Spark:
        """Open a second session, with SESSION or these settings, that adds to the same list of statements."""
        return replace(Spark.connect(self.url, settings), statements=self.statements)
