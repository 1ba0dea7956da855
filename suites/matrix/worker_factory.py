"""Makes the worker of an engine: which sessions it gets."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import lakehouse_clients

from suites.matrix.adapters import Adapter, PythonAdapter, SparkSql, SqlAdapter
from suites.matrix.recipes.frames import rows
from suites.matrix.stage import Stage
from suites.matrix.workers import Worker
from suites.testbed import sessions
from suites.testbed.databases import Databases
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.facade import Row
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, ICEBERG
from suites.testbed.namenode import NameNode


@dataclass(frozen=True)
class WorkerFactory:
    """Makes workers: each has a session of its engine, and one of Spark for tables and as the reference."""

    endpoints: Endpoints
    databases: Databases

    def __call__(self, engine: str) -> Worker:
        """Open the sessions."""
        spark = sessions.spark(self.endpoints)
        namenode = NameNode(self.endpoints.namenode.http, self.endpoints.users["hdfs"])
        stage = Stage(engine, spark, self.databases, namenode, self.endpoints)
        return Worker(self._adapter(engine, spark), stage, self._catalogs(engine))

    def _adapter(self, engine: str, spark: Spark) -> Adapter:
        if engine == "spark":
            return SqlAdapter(engine, SparkSql(replace(spark, statements=[])))
        if engine == "trino":
            return SqlAdapter(engine, sessions.trino(self.endpoints))
        if engine == "flink":
            return SqlAdapter(engine, sessions.flink(self.endpoints), quote="`")
        return self._client(engine)

    def _catalogs(self, engine: str) -> frozenset[str]:
        """Return the catalogs of an engine of which the kit withholds something."""
        if engine != "trino":
            return frozenset()
        return frozenset(str(name) for (name,) in sessions.trino(self.endpoints).sql("SHOW CATALOGS"))

    def _client(self, engine: str) -> Adapter:
        lake = lakehouse_clients.connect(self.endpoints.path)
        if engine == "duckdb":
            duck = Duck(lake)
            return PythonAdapter(
                engine, lake, lambda name: lake.sql(f"SELECT * FROM {found(name)}"), duck.sql
            )
        if engine == "polars":
            return PythonAdapter(engine, lake, lambda name: lake.polars(found(name)).to_arrow())
        return PythonAdapter(engine, lake, lambda name: lake.arrow(found(name)))


def found(name: str) -> str:
    """Return the name of a table of this run with its format in front."""
    family = name.split("_")[1]
    return f"{ICEBERG if family == ICEBERG.family else DELTA}.{name}"


class Duck:
    """DuckDB's SQL over Arrow views: a quoted name of a table becomes such a view."""

    def __init__(self, lake: Any) -> None:
        self._lake = lake

    def sql(self, statement: str) -> list[Row]:
        """Run one statement; return its rows."""
        tables = dict.fromkeys(re.findall(r'"((?:iceberg|delta)\.\w+\.\w+)"', statement))
        with self._lake.duckdb(*tables) as connection:
            answer = connection.sql(statement)
            return rows(answer.to_arrow_table()) if answer is not None else []
