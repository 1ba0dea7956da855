"""Which session each engine's worker gets."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from smoke.lake import Lake, Row
from smoke.matrix.asking import Asking, AskingPython, AskingSql, SparkSql
from smoke.matrix.databases import MatrixDatabases
from smoke.matrix.recipes.frames import rows
from smoke.matrix.stage import Stage
from smoke.matrix.workers import Worker
from smoke.namenode import NameNode
from smoke.settings import Endpoints


def hire(
    engine: str, connect: str, endpoints: Endpoints, databases: MatrixDatabases, namenode: NameNode
) -> Worker:
    """Open the engine's session, and one of Spark that prepares its tables and is the reference."""
    lake = Lake.connect(connect)
    own = NameNode(endpoints.namenode.http, endpoints.users["hdfs"])
    stage = Stage(engine, lake, databases, own, endpoints)
    return Worker(_asking(engine, lake, endpoints), stage, own, endpoints)


def _asking(engine: str, lake: Lake, endpoints: Endpoints) -> Asking:
    """Open a session. An engine's module is imported where it is needed: others can do without it."""
    if engine == "spark":
        return AskingSql(engine, SparkSql(replace(lake, statements=[])))
    if engine == "trino":
        from smoke.engines.trino import Trino  # noqa: PLC0415

        return AskingSql(engine, Trino.connect(endpoints.trino.url, endpoints.users["trino"]))
    if engine == "flink":
        from smoke.engines.flink import Flink  # noqa: PLC0415

        return AskingSql(engine, Flink.connect(endpoints.flink.sql_gateway), quote="`")
    return _client(engine, endpoints)


def _client(engine: str, endpoints: Endpoints) -> Asking:
    import lakehouse_clients  # noqa: PLC0415

    lake = lakehouse_clients.connect(endpoints.path)

    def found(name: str) -> str:
        """Return the name with the format in which the table is."""
        return f"{'iceberg' if name.startswith('matrix_iceberg') else 'delta'}.{name}"

    def reader(name: str) -> Any:
        return lake.arrow(found(name))

    if engine == "duckdb":
        return AskingPython(
            engine, lake, lambda name: lake.sql(f"SELECT * FROM {found(name)}"), Duck(lake).sql
        )
    return AskingPython(engine, lake, reader)


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
