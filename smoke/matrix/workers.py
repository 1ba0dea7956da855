"""The engines at work: the cells of an engine one after another, the engines side by side."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from smoke.engines import EngineError
from smoke.matrix.asking import Asking
from smoke.matrix.cells import Cell, Expected
from smoke.matrix.databases import MatrixTable
from smoke.matrix.proofs import PROOFS, Scene
from smoke.matrix.recipes import RECIPES
from smoke.matrix.recipes.recipe import Recipe
from smoke.matrix.stage import Stage

_LONGEST = 300


@dataclass(frozen=True)
class Outcome:
    """How a cell went.

    `statements` are those of the operation and its proof, `seconds` what both took. `message` is what the
    engine said when it refused; `failure` is empty if all was as declared.
    """

    statements: tuple[str, ...]
    seconds: float
    message: str = ""
    failure: str = ""

    def said(self, cell: Cell) -> str:
        """Return the line of the message that matters."""
        lines = self.message.splitlines()
        return next((line for line in lines if re.search(cell.reason, line)), lines[0]).strip()[:_LONGEST]


def verdict(cell: Cell, message: str) -> str:
    """Compare a refusal's message (empty: there was none) with the declaration; return what is wrong."""
    if cell.expected is Expected.WORKS:
        return f"declared as works, but refused:\n{message}" if message else ""
    if not message:
        return f"declared as refused ({cell.reason!r}), but it works now: change cells.yml and the documents"
    if not re.search(cell.reason, message):
        return f"refused with another message than {cell.reason!r}:\n{message}"
    return ""


@dataclass
class Worker:
    """One engine: asks, proves, and keeps the tables of its cells."""

    asking: Asking
    stage: Stage

    def execute(self, cell: Cell) -> Outcome:
        """Run one cell."""
        recipe = RECIPES[cell.engine][cell.format.name][cell.operation.name]
        table = self.stage.table(cell)
        names = self.stage.names(cell, table)
        self.asking.statements.clear()
        started = time.monotonic()
        answer, message = [], ""
        try:
            for step in recipe.steps[:-1]:
                self.asking.run(step, names)
            answer = self.asking.run(recipe.steps[-1], names)
        except EngineError as error:
            message = error.message
        statements = tuple(self.asking.statements)
        failure = verdict(cell, message)
        if cell.expected is Expected.WORKS and not failure:
            failure = self._unproven(cell, recipe, table, answer)
        if cell.expected is Expected.REFUSED and not message:
            self.stage.spoilt(cell, table)
        return Outcome(statements, time.monotonic() - started, message, failure)

    def _unproven(
        self, cell: Cell, recipe: Recipe, table: MatrixTable, answer: list[tuple[object, ...]]
    ) -> str:
        if recipe.answer:
            return "" if re.search(recipe.answer, str(answer)) else f"no {recipe.answer!r} in {answer}"
        if cell.operation.name == "ctas":
            table = self.stage.copy(cell)
        scene = Scene(cell, table, answer, self.asking, self.stage)
        try:
            PROOFS[cell.operation.proof](scene)
        except (AssertionError, EngineError) as error:
            return str(error)
        if cell.operation.writes:
            self.stage.written.append(table)
        return ""


class Workers:
    """All engines of a run; the outcome of a cell can be waited for."""

    def __init__(self, hire: Callable[[str], Worker], cells: Iterable[Cell]) -> None:
        by_engine: dict[str, list[Cell]] = {}
        for cell in cells:
            by_engine.setdefault(cell.engine, []).append(cell)
        self.workers: dict[str, Worker] = {}
        self._hire = hire
        self._futures: dict[Cell, Future[Outcome]] = {
            cell: Future() for cells in by_engine.values() for cell in cells
        }
        self._pool = ThreadPoolExecutor(max(1, len(by_engine)))
        for engine, mine in by_engine.items():
            self._pool.submit(self._work, engine, mine)

    def outcome(self, cell: Cell, seconds: float) -> Outcome:
        """Wait for a cell; raises what kept it from being executed."""
        return self._futures[cell].result(timeout=seconds)

    def finished(self) -> list[Worker]:
        """Wait for all, and return those that could begin."""
        wait(self._futures.values())
        return list(self.workers.values())

    def close(self) -> None:
        """Wait until nobody works any more."""
        self._pool.shutdown(cancel_futures=True)

    def _work(self, engine: str, cells: list[Cell]) -> None:
        try:
            worker = self.workers[engine] = self._hire(engine)
        except Exception as error:  # noqa: BLE001 -- every cell of the engine says so
            for cell in cells:
                self._futures[cell].set_exception(error)
            return
        for cell in cells:
            try:
                self._futures[cell].set_result(worker.execute(cell))
            except Exception as error:  # noqa: BLE001 -- the cell's test raises it
                self._futures[cell].set_exception(error)
