"""Which session each engine's worker gets."""

from __future__ import annotations

from dataclasses import replace

from smoke.lake import Lake
from smoke.matrix.asking import Asking, AskingSql, SparkSql
from smoke.matrix.databases import MatrixDatabases
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
    if engine == "spark":
        return AskingSql(engine, SparkSql(replace(lake, statements=[])))
    if engine == "trino":
        from smoke.engines.trino import Trino

        return AskingSql(engine, Trino.connect(endpoints.trino, endpoints.users["trino"]))
    if engine == "flink":
        from smoke.engines.flink import Flink

        return AskingSql(engine, Flink.connect(endpoints.flink), quote="`")
    raise NotImplementedError(engine)
