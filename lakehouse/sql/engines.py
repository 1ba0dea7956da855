"""Engines that run SQL: the host, default user and client of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakehouse.sql import flink, spark, trino
from lakehouse.sql.query import Outcome, Query


@dataclass(frozen=True)
class Engine:
    """The group whose first host runs an engine, its default user, and its clients."""

    group: str
    user: str
    ask: Callable[[Query], Outcome]
    session: Callable[[Query], str]
    # The Unix account of an interactive client; by default that of the user.
    account: Callable[[Query], str] = lambda query: query.user


ENGINES = {
    "spark": Engine("clients", "spark", spark.CLIENT.ask, spark.session),
    "trino": Engine("trino_coordinator", "trino", trino.ask, trino.session, trino.account),
    "flink": Engine("flink_jobmanager", "flink", flink.CLIENT.ask, flink.session),
}
