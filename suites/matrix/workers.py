"""Run the cells of an engine one after another, and the engines concurrently."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import pytest
from pyspark.errors import PySparkException

from suites.matrix import switches
from suites.matrix.adapters import Adapter
from suites.matrix.cells import Cell, Expected
from suites.matrix.proofs import PROOFS, Scene
from suites.matrix.recipes import RECIPES
from suites.matrix.recipes.recipe import Recipe
from suites.matrix.stage import Stage
from suites.testbed.databases import Table
from suites.testbed.engines import EngineError, telling
from suites.testbed.engines.facade import Row


@dataclass(frozen=True)
class Outcome:
    """How a cell went.

    `statements` are those of the operation, `seconds` what it took with its proof. `message` is what the
    engine said when it refused, or what turned out to be wrong. `failure` is empty if all was as declared.
    `behind` is what the engine itself does where the kit withholds something; empty: it could not be asked.
    """

    statements: tuple[str, ...]
    seconds: float
    message: str = ""
    failure: str = ""
    behind: str = ""

    def said(self, cell: Cell) -> str:
        """Return the line of the message that matches the declared reason."""
        return telling(self.message, cell.reason) if self.message else ""


def verdict(cell: Cell, refusal: str, disproof: str) -> str:
    """Compare the result with the declaration; return the difference.

    `refusal` is the engine's error message, empty if the operation succeeded; `disproof` is the first
    condition that does not hold afterwards, empty if all do.
    """
    if cell.expected is Expected.WORKS:
        return f"declared as works, but refused:\n{refusal}" if refusal else disproof
    expected_text, unexpected_text = (refusal, disproof) if cell.refuses else (disproof, refusal)
    if not expected_text and not unexpected_text:
        return f"declared as {cell.expected} ({cell.reason!r}), but it works now: change cells.yml"
    if not re.search(cell.reason, expected_text):
        return (
            f"declared as {cell.expected}, but not with {cell.reason!r}:\n{expected_text or unexpected_text}"
        )
    return ""


@dataclass
class Worker:
    """One engine: asks, proves, and keeps the tables of its cells.

    `catalogs` are those of the engine: what the kit withholds is asked where one of them lacks the setting.
    """

    adapter: Adapter
    stage: Stage
    catalogs: frozenset[str] = frozenset()

    def execute(self, cell: Cell) -> Outcome:
        """Run a cell and, if the kit disables the operation, the same with the kit's switch off."""
        outcome = self._execute(cell)
        switch = switches.of(cell.engine, cell.format)
        if not (cell.behind and switch and switch.catalog in self.catalogs) or outcome.failure:
            return outcome
        behind = self._execute(cell.behind)
        reason = behind.said(cell.behind)
        return replace(
            outcome,
            statements=(*outcome.statements, *behind.statements),
            seconds=outcome.seconds + behind.seconds,
            failure=behind.failure and f"without {switch.setting}: {behind.failure}",
            behind=f"{cell.behind.expected}: {reason}" if reason else str(cell.behind.expected),
        )

    def _execute(self, cell: Cell) -> Outcome:
        recipe = RECIPES[cell.engine][cell.format.name][cell.operation.name]
        table = self.stage.table(cell)
        names = self.stage.names(cell, table)
        self.adapter.statements.clear()
        started = time.monotonic()
        answer: list[Row] = []
        message = ""
        try:
            for step in recipe.steps[:-1]:
                self.adapter.run(step, names)
            answer = self.adapter.run(recipe.steps[-1], names)
        except EngineError as error:
            message = error.message
        statements = tuple(self.adapter.statements)
        succeeded = not message
        disproof = self._disproof(cell, recipe, table, answer) if succeeded and not cell.refuses else ""
        if cell.refuses and succeeded:
            self.stage.spoilt(cell, table)
        failure = verdict(cell, message, disproof)
        if cell.operation.writes and succeeded and not failure:
            self.stage.written.append(self._about(cell, table))
        return Outcome(statements, time.monotonic() - started, message or disproof, failure)

    def _about(self, cell: Cell, table: Table) -> Table:
        """Return the table that the operation was about: the new one, if it made one from another."""
        return self.stage.copy(cell) if cell.operation.name == "ctas" else table

    def _disproof(self, cell: Cell, recipe: Recipe, table: Table, answer: list[Row]) -> str:
        if recipe.answer:
            return "" if re.search(recipe.answer, str(answer)) else f"no {recipe.answer!r} in {answer}"
        scene = Scene(cell, self._about(cell, table), answer, self.adapter, self.stage)
        try:
            PROOFS[cell.operation.proof](scene)
        except (AssertionError, EngineError, PySparkException) as error:
            return str(error)
        return ""


class Workers:
    """All engines of a run; the outcome of a cell can be waited for."""

    def __init__(self, open_worker: Callable[[str], Worker], cells: Iterable[Cell]) -> None:
        by_engine: dict[str, list[Cell]] = {}
        for cell in cells:
            by_engine.setdefault(cell.engine, []).append(cell)
        self.workers: dict[str, Worker] = {}
        self._open = open_worker
        self._futures: dict[Cell, Future[Outcome]] = {
            cell: Future() for cells in by_engine.values() for cell in cells
        }
        self._pool = ThreadPoolExecutor(max(1, len(by_engine)))
        for engine, engine_cells in by_engine.items():
            self._pool.submit(self._work, engine, engine_cells)

    def outcome(self, cell: Cell, seconds: float) -> Outcome:
        """Wait for a cell; raises what kept it from being executed."""
        return self._futures[cell].result(timeout=seconds)

    def finished(self) -> list[Worker]:
        """Wait for all, and return those that could begin."""
        wait(self._futures.values())
        return list(self.workers.values())

    def close(self) -> None:
        """Wait until no worker works any more."""
        self._pool.shutdown(cancel_futures=True)

    def _work(self, engine: str, cells: list[Cell]) -> None:
        try:
            worker = self.workers[engine] = self._open(engine)
        except (Exception, pytest.skip.Exception) as error:  # noqa: BLE001 -- every cell of the engine says so
            for cell in cells:
                self._futures[cell].set_exception(error)
            return
        for cell in cells:
            try:
                self._futures[cell].set_result(worker.execute(cell))
            except Exception as error:  # noqa: BLE001 -- the cell's test raises it
                self._futures[cell].set_exception(error)
