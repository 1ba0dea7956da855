"""Two ways to ask an engine, with one face: SQL through its facade, and functions of the Python clients."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.errors import PySparkException

from suites.matrix.recipes.recipe import Names, Step
from suites.testbed.databases import Table
from suites.testbed.engines import EngineError
from suites.testbed.engines.facade import Row
from suites.testbed.engines.spark import Spark


class Adapter(Protocol):
    """An engine that runs steps and reads tables."""

    engine: str

    @property
    def statements(self) -> list[str]:
        """What the engine was asked, oldest first."""

    def run(self, step: Step, names: Names) -> list[Row]:
        """Run one step; return what it answers. Raises EngineError."""

    def read(self, table: Table, columns: Sequence[str]) -> list[Row]:
        """Return these columns of a table (`*`: all) in the order of the first one. Raises EngineError."""


class Sql(Protocol):
    """What the facades of the SQL engines have in common."""

    statements: list[str]

    def sql(self, statement: str) -> list[Row]:
        """Run one statement; return its rows."""


class SparkSql:
    """Spark's session with the errors of the other facades."""

    def __init__(self, spark: Spark) -> None:
        self._spark = spark
        self.statements = spark.statements

    def sql(self, statement: str) -> list[Row]:
        """Run one statement; return its rows."""
        try:
            return self._spark.sql(statement)
        except PySparkException as error:
            raise EngineError("spark", statement, str(error)) from error


@dataclass
class SqlAdapter:
    """An engine that speaks SQL; `quote` encloses names."""

    engine: str
    facade: Sql
    quote: str = ""

    @property
    def statements(self) -> list[str]:
        """What the facade was sent."""
        return self.facade.statements

    def run(self, step: Step, names: Names) -> list[Row]:
        """Fill the names in, and send the statement."""
        if not isinstance(step, str):
            raise TypeError(f"{self.engine} is asked in SQL, not by {step!r}")
        return self.facade.sql(step.format(**vars(names)))

    def read(self, table: Table, columns: Sequence[str]) -> list[Row]:
        """Select in the order of the first column."""
        selection = ", ".join(name if name == "*" else f"{self.quote}{name}{self.quote}" for name in columns)
        order = "id" if columns[0] == "*" else columns[0]
        return self.facade.sql(f"SELECT {selection} FROM {table.full(self.engine)} ORDER BY {order}")


class PythonAdapter:
    """A Python client: steps are functions of its handle, and their source is the statement.

    `reader` gives a table's rows by its short name as Arrow; `sql`, where there is one, runs a statement.
    """

    def __init__(
        self,
        engine: str,
        handle: Any,
        reader: Callable[[str], Any],
        sql: Callable[[str], list[Row]] | None = None,
    ) -> None:
        self.engine = engine
        self.statements: list[str] = []
        self._handle = handle
        self._reader = reader
        self._sql = sql

    def run(self, step: Step, names: Names) -> list[Row]:
        """Call the function, or send the SQL; whatever it raises is the client's refusal."""
        if isinstance(step, str):
            statement, call = step.format(**vars(names)), self._sql
            if call is None:
                raise TypeError(f"{self.engine} is asked by functions, not by {step!r}")
            return self._asked(statement, lambda: call(statement))
        return self._asked(spelt(body(step), names), lambda: step(self._handle, names) or [])

    def read(self, table: Table, columns: Sequence[str]) -> list[Row]:
        """Read the whole table by the client's usual way, and pick columns."""
        arrow = self._guarded(f"read {table.short}", lambda: self._reader(table.short))
        picked = arrow.column_names if columns[0] == "*" else columns
        return sorted(tuple(row[name] for name in picked) for row in arrow.to_pylist())

    def _asked(self, statement: str, call: Callable[[], list[Row]]) -> list[Row]:
        self.statements.append(statement)
        rows: list[Row] = self._guarded(statement, call)
        return rows

    def _guarded(self, statement: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            # Each client has errors of its own, and all of them are refusals.
            raise EngineError(self.engine, statement, f"{type(error).__name__}: {error}") from error


def body(function: Any) -> str:
    """Return a function's source without its first line and its docstring: what a person would type."""
    lines = inspect.getsource(function).splitlines()
    start = next(number for number, line in enumerate(lines) if line.rstrip().endswith(":")) + 1
    return textwrap.dedent("\n".join(line for line in lines[start:] if not line.lstrip().startswith('"""')))


def spelt(source: str, names: Names) -> str:
    """Return the source with the values in the place of `names.something`."""
    for name, value in vars(names).items():
        source = source.replace(f"{{names.{name}}}", value)
        source = re.sub(rf"\bnames\.{name}\b", repr(value), source)
    return source
