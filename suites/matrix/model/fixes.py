"""What the kit sets so that no sequence diverges, each as something that a session can do without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from deltalake import WriterProperties
from lakehouse_clients import delta
from lakehouse_clients import tables as clients_tables

from suites.matrix.cross.engines import Engines
from suites.matrix.model.world import ClusterWorld
from suites.testbed import sessions
from suites.testbed.databases import Databases
from suites.testbed.engines.spark import SESSION, Settings

_UNIQUE: Settings = {"spark.sql.catalog.iceberg.unique-table-location": "false"}


@dataclass(frozen=True)
class Fix:
    """A fix, and what a session is without it.

    `spark` are settings of a session, `trino` statements at its start, `world` parameters of ClusterWorld,
    and `patch` takes something out of the Python clients while its context lasts. The first sequences that
    `seed` draws diverge without the fix; None where no early one does.
    """

    name: str
    spark: Settings = field(default_factory=dict)
    trino: tuple[str, ...] = ()
    world: Mapping[str, Any] = field(default_factory=dict)
    patch: Callable[[], AbstractContextManager[Any]] = nullcontext
    seed: int | None = None

    def __str__(self) -> str:
        return self.name

    @contextmanager
    def taken_out(
        self, engines: Engines, databases: Databases, **world: Any
    ) -> Iterator[Callable[[], ClusterWorld]]:
        """Yield what makes a world without the fix; the other engines keep their sessions.

        `world` are parameters of ClusterWorld beside those of the fix.
        """
        spark = engines.spark.fresh({**SESSION, **self.spark}) if self.spark else engines.spark
        trino = engines.trino
        if self.trino:
            trino = sessions.trino(databases.endpoints)
            for statement in self.trino:
                trino.sql(statement)
        without = replace(engines, spark=spark, trino=trino)
        with self.patch():
            yield lambda: ClusterWorld(without, databases, **self.world, **world)
        if spark is not engines.spark:
            spark.session.stop()


FIXES = {
    fix.name: fix
    for fix in (
        # The metastore's guard is left, and rejects the second table.
        Fix("unique table locations", spark=_UNIQUE),
        Fix("unique table locations, guard of the metastore", spark=_UNIQUE, world={"shared": True}),
        Fix(
            "hive.timestamp-precision",
            trino=("SET SESSION hive.timestamp_precision = 'MILLISECONDS'",),
            seed=3,
        ),
        Fix("hive.orc.use-column-names", trino=("SET SESSION hive.orc_use_column_names = false",), seed=9),
        Fix("spark.sql.orc.filterPushdown", spark={"spark.sql.orc.filterPushdown": "true"}, seed=5),
        Fix("spark.sql.optimizer.excludedRules", spark={"spark.sql.optimizer.excludedRules": ""}, seed=75),
        Fix(
            "spark.sql.hive.metastorePartitionPruningFallbackOnException",
            spark={"spark.sql.hive.metastorePartitionPruningFallbackOnException": "false"},
            seed=436,
        ),
        Fix("migration by a copy", world={"in_place": True}),
        Fix(
            "conditions of the clients",
            patch=lambda: mock.patch.object(clients_tables, "exact", lambda condition: condition),
            seed=33,
        ),
        Fix(
            "statistics of the clients",
            patch=lambda: mock.patch.object(delta, "writer_properties", return_value=WriterProperties()),
        ),
    )
}
