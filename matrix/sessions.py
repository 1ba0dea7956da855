"""Which sessions each engine's worker gets."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import lakehouse_clients

from matrix.adapters import Adapter, PythonAdapter, SparkSql, SqlAdapter
from matrix.recipes.frames import rows
from matrix.stage import Stage
from matrix.workers import NotDeployedError, Worker
from testbed.databases import Databases
from testbed.endpoints import Endpoints
from testbed.engines.facade import Row
from testbed.engines.flink import Flink
from testbed.engines.spark import Spark
from testbed.engines.trino import Trino
from testbed.formats import DELTA, ICEBERG
from testbed.namenode import NameNode


@dataclass(frozen=True)
class Sessions:
    """Makes workers: each has a session of its engine, and one of Spark for tables and as the reference."""

    connect: str
    endpoints: Endpoints
    databases: Databases

    def __call__(self, engine: str) -> Worker:
        """Open the sessions."""
        lake = Spark.connect(self.connect)
        namenode = NameNode(self.endpoints.namenode.http, self.endpoints.users["hdfs"])
        stage = Stage(engine, lake, self.databases, namenode, self.endpoints)
        return Worker(self._adapter(engine, lake), stage, self._catalogs(engine))

    def _adapter(self, engine: str, lake: Spark) -> Adapter:
        trino, flink = self.endpoints.trino, self.endpoints.flink
        if engine == "spark":
            return SqlAdapter(engine, SparkSql(replace(lake, statements=[])))
        if engine == "trino" and trino:
            return SqlAdapter(engine, Trino.connect(trino.http, self.endpoints.users["trino"]))
        if engine == "flink" and flink:
            return SqlAdapter(engine, Flink.connect(flink.sql_gateway), quote="`")
        if engine in {"trino", "flink"}:
            raise NotDeployedError(f"{engine} is not deployed")
        return self._client(engine)

    def _catalogs(self, engine: str) -> frozenset[str]:
        """Return the catalogs of an engine of which the kit withholds something."""
        trino = self.endpoints.trino
        if engine != "trino" or trino is None:
            return frozenset()
        rows = Trino.connect(trino.http, self.endpoints.users["trino"]).sql("SHOW CATALOGS")
        return frozenset(str(name) for (name,) in rows)

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
