"""The tables of the tests: each belongs to one test, is measured where its blocks lie, and is dropped."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlsplit

from suites.testbed.databases import Databases, Table
from suites.testbed.engines.facade import Row
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import OPEN_FORMATS, Format
from suites.testbed.placement import Ledger

# What a new table holds unless a test says otherwise: orders of two months.
ORDERS: list[Row] = [
    (1, "ada", dt.date(2024, 1, 15), Decimal("10.00")),
    (2, "bob", dt.date(2024, 2, 15), Decimal("20.00")),
    (3, "eve", dt.date(2024, 2, 16), Decimal("30.00")),
]
_ORDERS_QUERY = """
SELECT id, customer, day, CAST(amount AS DECIMAL(10, 2)) AS amount FROM VALUES
  (1, 'ada', DATE '2024-01-15', 10), (2, 'bob', DATE '2024-02-15', 20), (3, 'eve', DATE '2024-02-16', 30)
  AS orders (id, customer, day, amount)
""".strip()


def suffix() -> str:
    """Return letters that make a name this run's own."""
    return secrets.token_hex(3)


@dataclass(frozen=True)
class Version:
    """A commit of a table: what VERSION AS OF and TIMESTAMP AS OF (UTC) call it."""

    id: int
    committed: str


def history(spark: Spark, table: Table) -> list[Version]:
    """Return the commits of a table, oldest first."""
    fmt = table.format
    commits = spark.frame(table.statement(fmt.history)).selectExpr(
        fmt.version, f"CAST({fmt.committed} AS STRING)"
    )
    return sorted((Version(*row) for row in commits.collect()), key=lambda version: version.committed)


def data_files(spark: Spark, table: Table) -> set[str]:
    """Return the HDFS paths of the files that the current version consists of."""
    return {urlsplit(uri).path for (uri,) in spark.sql(table.statement(table.format.data_files))}


@dataclass
class Tables:
    """Makes tables, and clears away what it made."""

    spark: Spark
    databases: Databases
    ledger: Ledger
    format: Format

    def __post_init__(self) -> None:
        self._made: list[Table] = []

    def name(self) -> Table:
        """Return a table that the test creates itself."""
        table = self.databases.table(self.format, f"orders_{suffix()}")
        self._made.append(table)
        return table

    def new(self, clauses: str = "", query: str = _ORDERS_QUERY) -> Table:
        """Create a table from a query; `clauses` are those of CREATE TABLE, like TBLPROPERTIES."""
        table = self.name()
        self.spark.sql(f"CREATE TABLE {table} USING {self.format} {clauses} AS {query}")
        return self.databases.found(table)

    def close(self) -> None:
        """Note where the blocks of every table are, then remove it: the second also if the first fails."""
        while self._made:
            table = self.databases.found(self._made.pop())
            try:
                self.ledger.measure(table.short, table.format.name, table.path)
            finally:
                self.databases.remove(table)


@contextmanager
def of_each_format(spark: Spark, databases: Databases, ledger: Ledger) -> Iterator[list[Tables]]:
    """Yield a maker of tables for each open format; what they made is cleared away when the block ends."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Tables(spark, databases, ledger, fmt))) for fmt in OPEN_FORMATS]
