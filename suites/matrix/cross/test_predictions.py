"""The check of risky tables predicts what each engine makes of odd tables: each is made and read by all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from lakehouse.tables import features, risky
from lakehouse.tables.features import CUT, REFUSED, SPREADS, WRONG, Risk
from suites.matrix.cross import canonical
from suites.matrix.cross.engines import PYICEBERG, Engines
from suites.matrix.cross.odd_tables import CATALOGS, TABLES, OddTable, tables
from suites.testbed import metastore
from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.facade import Row
from suites.testbed.formats import ICEBERG
from suites.testbed.tables import suffix

RIGHT, DIFFERENT = "right", "different"
# What a whole read shows of each effect.
SHOWN = {REFUSED: REFUSED, SPREADS: REFUSED, WRONG: DIFFERENT, CUT: DIFFERENT}
EXAMPLES = 6


class Odd:
    """An odd table that there is."""

    def __init__(self, spec: OddTable, table: Table, engines: Engines, endpoints: Endpoints) -> None:
        self.spec, self.table, self._engines, self._endpoints = spec, table, engines, endpoints

    def make(self) -> None:
        """Run the statements that make it."""
        names = {"short": self.table.short, "database": self.table.database, "name": self.table.name}
        for engine, statement in self.spec.steps:
            self._engines.sql(engine, statement.format(**names))

    def risks(self) -> list[Risk]:
        """Return the risks that the check reports."""
        findings = risky.of_table(self._endpoints.path, self.table.database, self.table.name)
        return [finding.risk for finding in findings]

    def predicted(self, risks: list[Risk]) -> dict[str, str]:
        """Return the predicted result of each engine."""
        effects_by_engine = {
            engine: {SHOWN[effect] for effect in features.predicted(risks, engine)}
            for engine in self.spec.readers
        }
        return {
            engine: REFUSED if REFUSED in effects else DIFFERENT if effects else RIGHT
            for engine, effects in effects_by_engine.items()
        }

    def seen(self) -> tuple[dict[str, str], dict[str, object]]:
        """Return the result of each engine, and its rows or its error."""
        results = {engine: self._read(engine) for engine in self.spec.readers}
        evidence = {engine: rows_or_error for engine, (_, rows_or_error) in results.items()}
        return {engine: result for engine, (result, _) in results.items()}, evidence

    def _read(self, engine: str) -> tuple[str, object]:
        try:
            rows = self._rows(engine, list(self.spec.columns))
        except Exception as error:  # noqa: BLE001 -- whatever an engine refuses a table with
            return self._without_names(engine), f"{type(error).__name__}: {str(error)[:300]}"
        try:
            spelt_rows = canonical.rows(rows, self.spec.columns.values())
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            return DIFFERENT, f"{rows}: {error}"
        is_right = spelt_rows == canonical.rows(self.spec.rows, self.spec.columns.values())
        return RIGHT if is_right else DIFFERENT, spelt_rows

    def _without_names(self, engine: str) -> str:
        """Tell whether an engine reads the table where no query asks it for a column that it lacks."""
        try:
            self._rows(engine, [])
        except Exception:  # noqa: BLE001 -- as above
            return REFUSED
        return DIFFERENT

    def _rows(self, engine: str, names: list[str]) -> list[Row]:
        if engine == PYICEBERG:
            return self._engines.read(engine, self.table, names)
        full = f"{CATALOGS[self.spec.of][engine]}.{self.table.short}"
        return self._engines.rows(engine, f"SELECT {', '.join(names) or '*'} FROM {full}")


Make = Callable[[OddTable], AbstractContextManager[Odd]]


@pytest.fixture(scope="module")
def odd(_engines: Engines, databases: Databases, endpoints: Endpoints) -> Make:
    """Make an odd table for as long as a block runs."""

    @contextmanager
    def make(spec: OddTable) -> Iterator[Odd]:
        table = databases.table(ICEBERG, f"odd_{suffix()}")
        odd_table = Odd(spec, table, _engines, endpoints)
        try:
            odd_table.make()
            yield odd_table
        finally:
            _drop(endpoints, table)

    return make


def _drop(endpoints: Endpoints, table: Table) -> None:
    """Drop a table of which an engine may know nothing."""
    with metastore.Connection(endpoints.metastore, endpoints.users["hdfs"]) as client:
        if client.get_table_objects_by_name(table.database, [table.name]):
            client.drop_table(table.database, table.name, True)


@pytest.mark.operation("predictions: {spec}", engine="all")
@pytest.mark.parametrize("spec", TABLES, ids=str)
def test_a_known_kind_is_predicted(spec: OddTable, odd: Make) -> None:
    with odd(spec) as odd_table:
        risks = odd_table.risks()
        results, evidence = odd_table.seen()
        expected = {engine: SHOWN.get(spec.effects.get(engine, ""), RIGHT) for engine in spec.readers}
        assert results == expected, evidence
        assert odd_table.predicted(risks) == expected, risks


@pytest.mark.operation("predictions: random tables", engine="all")
def test_random_tables_are_predicted(odd: Make) -> None:
    @settings(
        max_examples=EXAMPLES, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
    )
    @given(tables())
    def judge(spec: OddTable) -> None:
        with odd(spec) as odd_table:
            risks = odd_table.risks()
            results, evidence = odd_table.seen()
            assert odd_table.predicted(risks) == results, f"{spec}\n{spec.steps}\n{risks}\n{evidence}"

    judge()
