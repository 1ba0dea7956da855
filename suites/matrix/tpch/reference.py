"""The expected answers: what DuckDB computes on the source files."""

from __future__ import annotations

import duckdb

from suites.matrix.tpch.compare import Answer
from suites.matrix.tpch.queries import Query
from suites.matrix.tpch.source import Source


class Reference:
    """DuckDB with the source files as tables."""

    def __init__(self, source: Source) -> None:
        self._duckdb = duckdb.connect()
        for table in source.tables:
            self._duckdb.execute(f"CREATE VIEW {table} AS FROM '{source.file(table)}'")

    def answer(self, query: Query) -> Answer:
        """Compute what a query returns; AmbiguousError where its limit does not say which rows."""
        cursor = self._duckdb.execute(query.unlimited)
        columns = tuple(column[0] for column in cursor.description or ())
        order = tuple(columns.index(name) for name in query.order)
        return Answer(columns, tuple(cursor.fetchall()), order).first(query.limit)

    def counts(self, source: Source) -> dict[str, int]:
        """Count the rows of each table."""
        return {table: self._count(table) for table in source.tables}

    def _count(self, table: str) -> int:
        [[count]] = self._duckdb.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)
