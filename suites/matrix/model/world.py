"""A cluster on which a sequence is replayed, with the matrix's own sessions of its engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as with_

from pyspark.errors import PySparkException

from lakehouse.tables import risky
from lakehouse.tables.features import FILTERED, Risk, predicted
from suites.matrix.cross.engines import DELTA_RS, PYICEBERG, SPARK, SQL_ENGINES, TRINO, Engines
from suites.matrix.model import statements
from suites.matrix.model.replay import RefusalError
from suites.matrix.model.state import KEY, Condition, Model, Table, Values, spell_row
from suites.matrix.model.steps import (
    CHANGES_ROWS,
    COMPACT,
    CREATE,
    EXPIRE,
    MIGRATE,
    REMOVE_ORPHANS,
    RENAME,
    ROLLBACK,
    Step,
    apply,
)
from suites.matrix.recipes import RECIPES
from suites.matrix.recipes.recipe import Names
from suites.testbed import tables
from suites.testbed.databases import Databases
from suites.testbed.databases import Table as Place
from suites.testbed.engines import EngineError, words
from suites.testbed.formats import DELTA, ICEBERG

_MAINTENANCE = frozenset({COMPACT, EXPIRE, REMOVE_ORPHANS, ROLLBACK})


@dataclass
class ClusterWorld:
    """The engines of a cluster, and the tables that a sequence makes in the databases of a run.

    `shared` lets Spark's tables lie in each other's folders, `in_place` migrates by Trino's procedure, which
    takes the files as they are: both are what the kit keeps people from. Without `predictions` a warning of
    `lakehouse risky-tables` explains nothing.
    """

    engines: Engines
    databases: Databases
    shared: bool = False
    in_place: bool = False
    predictions: bool = True
    _run: str = field(default_factory=tables.suffix)
    _known: set[Place] = field(default_factory=set)
    _versions: dict[Place, str] = field(default_factory=dict)

    def execute(self, step: Step, model: Model) -> None:
        """Carry out a step; raises RefusalError."""
        table = (
            model.tables[step.table] if step.table in model.tables else apply(step, model).tables[step.table]
        )
        place = self._place(step.table, table)
        target = self._place(step.to, table) if step.action == RENAME else place
        if step.action in {CREATE, RENAME}:
            self._known.add(target)
        with _refusals():
            if step.action in CHANGES_ROWS and table.rows:
                self._versions[place] = self._version(table, place)
            if step.action == MIGRATE:
                self._migrate(table, place)
            elif step.action in _MAINTENANCE:
                self._maintain(step, table, place)
            elif step.engine in SQL_ENGINES:
                # Spark looks for the new name in the catalog of the old one.
                to = target.short if step.engine == SPARK else target.full(step.engine)
                name = place.full(step.engine)
                for statement in statements.sql(step, table, name, to, shared=self.shared):
                    self.engines.sql(step.engine, statement)
            else:
                call = statements.pyiceberg if step.engine == PYICEBERG else statements.delta_rs
                call(step, table, self.engines.clients, place.short, target.short)

    def rows(self, reader: str, name: str, table: Table) -> list[Values]:
        """Return a table's rows as a reader sees them, in no order; raises RefusalError."""
        names = (
            [statements.quoted(reader, column) for column in table.names]
            if reader in SQL_ENGINES
            else table.names
        )
        with _refusals():
            rows = self.engines.read(reader, self._place(name, table), names)
            return [spell_row(row, table.columns) for row in rows]

    def columns(self, reader: str, name: str, table: Table) -> list[str]:
        """Return the names of a table's columns, in order, as a reader sees them; raises RefusalError."""
        with _refusals():
            return self.engines.columns(reader, self._place(name, table))

    def found(self, reader: str, name: str, table: Table, condition: Condition) -> list[int]:
        """Return the keys of the rows that a reader finds by a condition; raises RefusalError."""
        place = self._place(name, table)
        with _refusals():
            if reader in SQL_ENGINES:
                query = statements.query(reader, table, place.full(reader), condition)
                return [int(row[0]) for row in self.engines.sql(reader, query)]
            if reader == DELTA_RS:
                sql = statements.delta_rs_condition(table, condition)
                result = self.engines.clients.arrow(f"{DELTA}.{place.short}", [KEY], sql)
            else:
                expression = statements.pyiceberg_condition(statements.iso(table, condition))
                iceberg_table = self.engines.clients.iceberg.load_table(place.short)
                result = iceberg_table.scan(expression, selected_fields=(KEY,)).to_arrow()
            return [int(key) for key in result[KEY].to_pylist()]

    def predicts(self, reader: str, name: str, table: Table) -> bool:
        """Tell whether `lakehouse risky-tables` names the table as one that a reader gets wrong."""
        if not self.predictions:
            return False
        place = self._place(name, table)
        findings = risky.of_table(self.databases.endpoints.path, place.database, place.name)
        return any(_is_about(finding.risk, reader) for finding in findings)

    def close(self) -> None:
        """Remove every table that the sequence has made, with its files."""
        for place in self._known:
            self.databases.remove(place)

    def _place(self, name: str, table: Table) -> Place:
        return with_(self.databases.table(table.home, f"m{self._run}_{name}"), format=table.format)

    def _version(self, table: Table, place: Place) -> str:
        """Return what a rollback calls the current state of a table; empty where its format knows no past."""
        if table.format is ICEBERG:
            snapshot = self.engines.clients.iceberg.load_table(place.short).current_snapshot()
            return str(snapshot.snapshot_id)
        return str(self.engines.clients.delta(place.short).version()) if table.format is DELTA else ""

    def _migrate(self, table: Table, place: Place) -> None:
        if self.in_place:
            self.engines.sql(TRINO, f"CALL iceberg.system.migrate('{place.database}', '{place.name}')")
            return
        iceberg_place = with_(place, format=ICEBERG)
        target = with_(iceberg_place, name=f"{place.name}_new")
        self._known.add(target)
        for statement in (
            statements.copy(table, str(place), str(target)),
            f"DROP TABLE {place}",
            f"ALTER TABLE {target} RENAME TO {iceberg_place.short}",
        ):
            self.engines.sql(SPARK, statement)

    def _maintain(self, step: Step, table: Table, place: Place) -> None:
        """Run the recipe of the matrix."""
        full = place.full(step.engine)
        names = Names(
            table=full, short=place.short, database=place.database, name=place.name, uri=place.uri, copy="",
            copy_short="", copy_uri="", view="", catalog=table.format.catalogs.get(step.engine, ""),
            version=self._versions.get(place, ""),
        )  # fmt: skip
        for action in RECIPES[step.engine][table.format.name][step.action].steps:
            if isinstance(action, str):
                self.engines.sql(step.engine, action.format(**vars(names)))
            else:
                action(self.engines.clients, names)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise RefusalError for whatever an engine or client raises: each has errors of its own."""
    try:
        yield
    except (EngineError, PySparkException) as error:
        raise RefusalError(words(error)) from error
    except Exception as error:
        raise RefusalError(f"{type(error).__name__}: {error}") from error


def _is_about(risk: Risk, reader: str) -> bool:
    """Tell whether a risk is what a reader makes of a whole table, or of a condition, which names it."""
    return bool(predicted([risk], reader)) or (risk.effect == FILTERED and reader in risk.consequence.lower())
