"""Engines that run SQL: where each one runs, as which user, and by which client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ops.sql import flink, spark, trino
from ops.sql.query import Asked, Outcome


@dataclass(frozen=True)
class Engine:
    """Where an engine runs: the first host of a group; its default user; and its clients."""

    group: str
    user: str
    ask: Callable[[Asked], Outcome]
    session: Callable[[Asked], str]
    # The account of the program of a session, where that is not the user of the statements.
    account: Callable[[Asked], str] = lambda asked: asked.person


ENGINES = {
    "spark": Engine("clients", "spark", spark.CLIENT.ask, spark.session),
    "trino": Engine("trino_coordinator", "trino", trino.ask, trino.session, trino.account),
    "flink": Engine("flink_jobmanager", "flink", flink.CLIENT.ask, flink.session),
}
