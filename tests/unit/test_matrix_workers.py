"""Engines work side by side, the tables of a cell are its own if it changes them, and failures stay in it."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from suites.matrix import operations, placement_report, switches
from suites.matrix.adapters import PythonAdapter, SqlAdapter, body, spelt
from suites.matrix.cells import Cell, Expected
from suites.matrix.recipes.recipe import Names
from suites.matrix.stage import Stage
from suites.matrix.worker_factory import found
from suites.matrix.workers import Outcome, Worker, Workers
from suites.testbed import formats, sessions
from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines import EngineError
from suites.testbed.engines.facade import Row
from suites.testbed.engines.spark import Spark
from suites.testbed.namenode import NameNode
from suites.testbed.placement import Placement
from tests.unit import patience

ENDPOINTS = cast("Endpoints", SimpleNamespace(root="/lake", warehouse="hdfs://name/lake"))


class Known(Databases):
    """Databases whose tables are where their names say."""

    def found(self, table: Table) -> Table:
        return table


DATABASES = Known("matrix", "ab12", formats.ONE_OF_EACH_FAMILY, ENDPOINTS, cast("NameNode", None))


@dataclass
class Frame:
    """The rows of a query, as Spark's client holds them."""

    rows: list[Row]

    def selectExpr(self, *_: str) -> Frame:  # noqa: N802 (the client's name)
        return self

    def collect(self) -> list[Row]:
        return self.rows


@dataclass
class Sql:
    """A facade that answers nothing, or what it was told."""

    answers: dict[str, Any] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)

    def sql(self, statement: str) -> list[Row]:
        self.statements.append(statement)
        answer: Any = next((rows for begin, rows in self.answers.items() if statement.startswith(begin)), [])
        if isinstance(answer, str):
            raise EngineError("spark", statement, answer)
        return cast("list[Row]", answer)

    def frame(self, statement: str) -> Frame:
        return Frame(self.sql(statement))


def cell(operation: str, expected: Expected = Expected.WORKS, reason: str = "") -> Cell:
    return Cell("spark", formats.ICEBERG, operations.BY_NAME[operation], expected, reason)


def stage(spark: Sql) -> Stage:
    return Stage("spark", cast("Spark", spark), DATABASES, cast("NameNode", None), cast("Endpoints", None))


class TestStage:
    """The tables before."""

    def test_what_changes_its_table_has_one_of_its_own(self) -> None:
        spark = Sql()
        one = stage(spark)
        assert one.table(cell("update")).short == "matrix_iceberg_ab12.spark_update"
        assert one.table(cell("delete")).short == "matrix_iceberg_ab12.spark_delete"
        assert spark.statements[0].startswith(
            "CREATE TABLE iceberg.matrix_iceberg_ab12.spark_update USING ice"
        )

    def test_questions_and_refusals_share_one(self) -> None:
        one = stage(Sql())
        shared = one.table(cell("read"))
        assert one.table(cell("update", Expected.REFUSED, "no")) is shared
        assert one.shared() == [("orders", shared)]

    def test_a_shared_table_that_was_changed_is_made_again(self) -> None:
        spark = Sql()
        one = stage(spark)
        refused = cell("update", Expected.REFUSED, "no")
        one.spoilt(refused, one.table(refused))
        assert spark.statements[-1].startswith("DROP TABLE IF EXISTS iceberg.")
        assert one.shared() == []

    def test_the_first_version_is_known_by_number_and_moment(self) -> None:
        one = stage(Sql({"SELECT snapshot_id": [(11, "2024-01-01 00:00:00.5"), (12, "2024-01-02 00:00:00")]}))
        travel = cell("read version")
        names = one.names(travel, one.table(travel))
        assert (names.version, names.committed, names.committed_ms) == (
            "11",
            "2024-01-01 00:00:00.5",
            "1704067200500",
        )

    def test_both_hive_formats_have_names_of_their_own_in_one_database(self) -> None:
        one = stage(Sql())
        update = operations.BY_NAME["insert"]
        names = {one.table(Cell("spark", fmt, update, Expected.WORKS)).short for fmt in formats.FORMATS[2:]}
        assert names == {"matrix_hive_ab12.spark_parquet_insert", "matrix_hive_ab12.spark_orc_insert"}


class TestWorker:
    """One cell."""

    READ = "SELECT id, customer, day, amount FROM iceberg.matrix_iceberg_ab12.spark_"

    def execute(self, one: Cell, **answers: Any) -> Outcome:
        spark = Sql({"SELECT": answers.pop("select", []), **answers})
        return Worker(SqlAdapter("spark", spark), stage(spark)).execute(one)

    def test_it_passes_when_the_rows_are_right(self) -> None:
        outcome = self.execute(cell("delete"), select=list(operations.BY_NAME["delete"].rows))
        assert not outcome.failure
        assert outcome.statements == ("DELETE FROM iceberg.matrix_iceberg_ab12.spark_delete WHERE id = 2",)

    def test_wrong_rows_are_shown(self) -> None:
        outcome = self.execute(cell("delete"), select=[(1, "ada")])
        assert outcome.failure.startswith("spark reads other rows\nexpected: [(1, 'ada', datetime.date(")

    def test_a_refusal_is_compared(self) -> None:
        refused = cell("delete", Expected.REFUSED, "not today")
        assert not self.execute(refused, DELETE="not today").failure
        assert "not with" in self.execute(refused, DELETE="never").failure
        assert "works now" in self.execute(refused).failure

    def test_an_answer_that_is_no_rows_is_matched(self) -> None:
        assert not self.execute(cell("statistics"), CALL=[("hdfs://x/1.stats",)]).failure
        assert self.execute(cell("statistics"), CALL=[("none",)]).failure.startswith("no ")


class TestWithheld:
    """A cell that the kit refuses, and what the engine itself does."""

    def execute(self, behind: Expected, reason: str = "", catalogs: str = "delta_allow_all") -> Outcome:
        """Run a DELETE that the kit's catalog denies; the other one says that HDFS is not for it."""
        switch = switches.SWITCHES["trino", formats.DELTA]
        delete = operations.BY_NAME["delete"]
        without = Cell("trino", switch.format, delete, behind, reason)
        withheld = Cell("trino", formats.DELTA, delete, Expected.WITHHELD, "Denied", behind=without)
        trino = Sql({"DELETE FROM delta.": "Access Denied", "DELETE FROM delta_allow_all.": "not on HDFS"})
        place = Stage(
            "trino", cast("Spark", Sql()), DATABASES, cast("NameNode", None), cast("Endpoints", None)
        )
        return Worker(SqlAdapter("trino", trino), place, frozenset({catalogs})).execute(withheld)

    def test_both_are_asked_and_the_engine_s_words_are_kept(self) -> None:
        outcome = self.execute(Expected.REFUSED, "on HDFS")
        assert not outcome.failure
        assert (outcome.message, outcome.behind) == ("Access Denied", "refused: not on HDFS")
        assert outcome.statements == (
            "DELETE FROM delta.matrix_delta_ab12.trino_from_orders WHERE id = 2",
            "DELETE FROM delta_allow_all.matrix_delta_ab12.trino_behind_from_orders WHERE id = 2",
        )

    def test_an_engine_that_does_otherwise_fails_the_cell(self) -> None:
        assert self.execute(Expected.WORKS).failure.startswith(
            "without delta.security: READ_ONLY: declared as works, but refused:\nnot on HDFS"
        )

    def test_where_the_setting_cannot_be_left_out_nothing_is_assumed(self) -> None:
        outcome = self.execute(Expected.WORKS, catalogs="delta")
        assert (outcome.failure, outcome.behind) == ("", "")


class TestWorkers:
    """Several engines."""

    def test_cells_of_an_engine_that_is_not_there_are_skipped(self) -> None:
        workers = Workers(sessions.not_deployed, [cell("read")])
        with pytest.raises(pytest.skip.Exception, match="spark is not deployed"):
            workers.outcome(cell("read"), 10)
        workers.close()

    def test_they_work_at_the_same_time(self) -> None:
        both = threading.Barrier(2, timeout=patience.SECONDS)

        def open_worker(_: str) -> Worker:
            both.wait()
            raise LookupError("enough")

        cells = [cell("read"), Cell("trino", formats.ICEBERG, operations.BY_NAME["read"], Expected.WORKS)]
        workers = Workers(open_worker, cells)
        for one in cells:
            with pytest.raises(LookupError, match="enough"):
                workers.outcome(one, 10)
        assert workers.finished() == []
        workers.close()

    def test_a_cell_that_breaks_leaves_the_others_alone(self) -> None:
        spark = Sql({"SELECT": list(operations.BY_NAME["read"].rows), "CREATE TABLE iceberg.m": []})
        worker = Worker(SqlAdapter("spark", spark), stage(spark))
        broken = Cell("spark", formats.ICEBERG, operations.Operation("none", "orders", ()), Expected.WORKS)
        workers = Workers(lambda _: worker, [broken, cell("read")])
        with pytest.raises(KeyError):
            workers.outcome(broken, 10)
        assert not workers.outcome(cell("read"), 10).failure
        workers.close()


class TestPythonClients:
    """Engines that are asked by functions."""

    def test_the_statement_is_what_a_person_would_type(self) -> None:
        def drop(lake: Any, names: Names) -> None:
            """Explain."""
            lake.drop(names.short, f"delta.{names.short}")

        names = Names("c.d.t", "d.t", "d", "t", "", "", "", "", "")
        assert body(drop) == 'lake.drop(names.short, f"delta.{names.short}")'
        assert spelt(body(drop), names) == "lake.drop('d.t', f\"delta.d.t\")"

    def test_whatever_is_raised_is_a_refusal(self) -> None:
        def fails(*_: object) -> None:
            raise OSError("no such block")

        adapter = PythonAdapter("polars", object(), lambda _: None)
        with pytest.raises(EngineError) as refused:
            adapter.run(fails, Names("c.d.t", "d.t", "d", "t", "", "", "", "", ""))
        assert refused.value.message == "OSError: no such block"
        assert adapter.statements == ['raise OSError("no such block")']

    def test_a_table_is_found_by_its_database(self) -> None:
        assert found("matrix_delta_ab12.t") == "delta.matrix_delta_ab12.t"
        assert found("matrix_iceberg_ab12.t") == "iceberg.matrix_iceberg_ab12.t"


def test_placements_of_an_earlier_run_are_replaced_and_those_of_others_stay(tmp_path: Path) -> None:
    def placed(table: str) -> Placement:
        return Placement(table, "iceberg", 1, 1, 1, 3, 3, {})

    (tmp_path / "tables.json").write_text(json.dumps([{"table": "smoke.t"}]), encoding="utf-8")
    for run in ("first", "second"):
        placement_report.add(tmp_path, [placed(run)])
    tables = json.loads((tmp_path / "tables.json").read_text(encoding="utf-8"))
    assert [table["table"] for table in tables] == ["smoke.t", "second"]
