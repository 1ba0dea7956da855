"""The declarations are complete and strict, every cell that can be executed has a recipe, and is judged."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import distributions
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
import yaml

from lakehouse import run
from lakehouse.errors import LakehouseError
from suites.matrix import cells, operations, switches
from suites.matrix.cells import ENGINES, REST, Cell, Design, Expected
from suites.matrix.proofs import PROOFS
from suites.matrix.recipes import RECIPES
from suites.matrix.recipes.recipe import Names
from suites.matrix.workers import Outcome, verdict
from suites.testbed import formats
from suites.testbed.engines.facade import Row
from tests.unit.surface import KNOWN, surface

NAMES = Names(
    table="c.d.t", short="d.t", database="d", name="t", uri="hdfs://n/d/t", copy="c.d.u", copy_short="d.u",
    copy_uri="hdfs://n/d/u", view="c.d.v", version="7", committed="2024-01-01", committed_ms="1",
)  # fmt: skip
CELLS = cells.load()
TRINO = yaml.safe_load((run.ROOT / "tests/inventory/group_vars/all/trino.yml").read_text(encoding="utf-8"))

DUCKDB = {"core_functions", "icu", "json", "parquet"}


def declared() -> dict[str, Any]:
    """A file in which everything works."""
    works = {operation.name: "works" for operation in operations.OPERATIONS}
    return {engine: {fmt.name: dict(works) for fmt in formats.FORMATS} for engine in ENGINES}


def load(tmp_path: Path, data: object) -> tuple[Cell, ...]:
    path = tmp_path / "cells.yml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
    return cells.load(path)


class TestLoad:
    """Reading the file."""

    def test_every_combination_is_there_once_and_in_order(self, tmp_path: Path) -> None:
        found = load(tmp_path, declared())
        assert len(found) == len(ENGINES) * len(formats.FORMATS) * len(operations.OPERATIONS)
        assert [str(cell) for cell in found[:2]] == ["spark-iceberg-read", "spark-iceberg-create"]
        assert len({str(cell) for cell in found}) == len(found)

    def test_one_word_stands_for_every_operation_that_is_not_named(self, tmp_path: Path) -> None:
        data = declared()
        data["flink"]["delta"] = {
            "merge": "works",
            REST: {"absent": "no connector", "limit": "https://host/1"},
        }
        cells = [cell for cell in load(tmp_path, data) if str(cell).startswith("flink-delta-")]
        found = {cell.operation.name: (cell.expected, cell.reason, cell.limit) for cell in cells}
        assert found.pop("merge") == (Expected.WORKS, "", "")
        assert set(found.values()) == {(Expected.ABSENT, "no connector", "https://host/1")}

    def test_a_cell_says_what_it_is_to_the_report(self, tmp_path: Path) -> None:
        data = declared()
        data["spark"]["delta"]["create"] = {"works": "if asked", "limit": "https://host/2"}
        [cell] = [cell for cell in load(tmp_path, data) if str(cell) == "spark-delta-create"]
        assert dict(cell.properties()) == {
            "engine": "spark", "format": "delta", "operation": "create",
            "expected": "works", "note": "if asked", "limit": "https://host/2",
        }  # fmt: skip

    def test_what_nobody_is_to_mend_says_by_whose_design(self, tmp_path: Path) -> None:
        data = declared()
        data["spark"]["hive-orc"]["rollback"] = {"absent": "no versions", "design": "format"}
        [cell] = [cell for cell in load(tmp_path, data) if str(cell) == "spark-hive-orc-rollback"]
        assert (cell.design, cell.limit) == (Design.FORMAT, "")
        assert ("design", "format") in cell.properties()

    @pytest.mark.parametrize(
        ("declaration", "message"),
        [
            ("perhaps", "is 'perhaps', expected works, or wrong, refused, withheld or absent with a reason"),
            ({"refused": "no", "absent": "no"}, "must be one of: works, wrong, refused, withheld, absent"),
            ({"limit": "https://host"}, "must be one of: works, wrong, refused, withheld, absent"),
            ({"refused": "("}, "has '(', which is no regular expression: missing ), unterminated subpattern"),
            ({"refused": ""}, "is refused without a word why"),
            ({"absent": "no", "limit": "an issue"}, "has the limit 'an issue', expected an address"),
            (
                {"absent": "no", "since": "1"},
                "has 'since', expected works, wrong, refused, withheld, absent, behind, limit or design",
            ),
            ({"absent": "no", "design": "luck"}, "has the design 'luck', expected format, engine, kit"),
            (
                {"absent": "no", "design": "kit", "limit": "https://host/1"},
                "has a limit and a design, expected one of them",
            ),
            (
                {"absent": None},
                "is {'absent': None}, expected works, or wrong, refused, withheld or absent with a reason",
            ),
            ({"withheld": "no"}, "has one of withheld and behind, expected both or none"),
            ({"refused": "no", "behind": "works"}, "has one of withheld and behind, expected both or none"),
            (
                {"withheld": "no", "behind": "works"},
                "is withheld by no setting in suites/matrix/switches.py",
            ),
        ],
    )
    def test_what_is_no_declaration_is_refused_in_one_line(
        self, tmp_path: Path, declaration: object, message: str
    ) -> None:
        data = declared()
        data["trino"]["iceberg"]["merge"] = declaration
        with pytest.raises(LakehouseError) as refused:
            load(tmp_path, data)
        assert str(refused.value).startswith(f"cells.yml: trino.iceberg.merge {message}")
        assert str(refused.value).endswith("; next: edit suites/matrix/cells.yml")
        assert "\n" not in str(refused.value)

    def test_what_the_kit_withholds_says_what_the_engine_itself_does(self, tmp_path: Path) -> None:
        data = declared()
        data["trino"]["delta"]["insert"] = {"withheld": "Denied", "behind": {"works": "alone"}}
        [cell] = [cell for cell in load(tmp_path, data) if str(cell) == "trino-delta-insert"]
        assert (cell.expected, cell.refuses, cell.reason) == (Expected.WITHHELD, True, "Denied")
        assert cell.behind
        assert (cell.behind.expected, cell.behind.note) == (Expected.WORKS, "alone")
        assert cell.behind.format.catalogs["trino"] != cell.format.catalogs["trino"]

    @pytest.mark.parametrize("behind", [{"absent": "no"}, {"withheld": "no", "behind": "works"}])
    def test_behind_the_setting_there_is_an_engine_that_can_be_asked(
        self, tmp_path: Path, behind: dict[str, str]
    ) -> None:
        data = declared()
        data["trino"]["delta"]["insert"] = {"withheld": "no", "behind": behind}
        with pytest.raises(LakehouseError, match=r"^cells\.yml: trino\.delta\.insert is "):
            load(tmp_path, data)

    @pytest.mark.parametrize(
        ("place", "message"),
        [
            (("presto",), "the file has 'presto', expected one of: spark, trino, flink, "),
            (("spark", "hudi"), "spark has 'hudi', expected one of: iceberg, delta, hive-parquet, hive-orc"),
            (
                ("spark", "delta", "truncate"),
                "spark.delta has 'truncate', expected one of: every other operation, ",
            ),
        ],
    )
    def test_an_unknown_name_is_refused(self, tmp_path: Path, place: tuple[str, ...], message: str) -> None:
        data = declared()
        inner = data
        for name in place[:-1]:
            inner = inner[name]
        inner[place[-1]] = "works"
        with pytest.raises(LakehouseError, match=message):
            load(tmp_path, data)

    def test_a_gap_is_refused(self, tmp_path: Path) -> None:
        data = declared()
        del data["polars"]["delta"]["drop"]
        with pytest.raises(LakehouseError, match=r"polars\.delta lacks 'drop'"):
            load(tmp_path, data)

    def test_a_cell_that_is_declared_twice_is_refused(self, tmp_path: Path) -> None:
        text = yaml.safe_dump(declared()) + "spark: {}\n"
        with pytest.raises(LakehouseError, match="'spark' twice"):
            load(tmp_path, text)

    def test_what_is_not_yaml_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(LakehouseError, match=r"cells\.yml cannot be read: "):
            load(tmp_path, "spark: [")


class TestDeclarations:
    """The file of the repository."""

    @pytest.mark.parametrize("cell", CELLS, ids=str)
    def test_what_can_be_executed_has_a_recipe_and_nothing_else_has(self, cell: Cell) -> None:
        recipe = RECIPES[cell.engine].get(cell.format.name, {}).get(cell.operation.name)
        if cell.expected is Expected.ABSENT:
            assert recipe is None, "it has a recipe: execute it and declare what it does"
        else:
            assert recipe is not None
            assert recipe.steps

    @pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.expected is not Expected.WORKS], ids=str)
    def test_what_does_not_work_says_why(self, cell: Cell) -> None:
        assert cell.limit or cell.design, "it has no limit: look for the upstream issue, or name the design"

    @pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.expected is Expected.WRONG], ids=str)
    @pytest.mark.parametrize("got", [[], [(1, "a strange row")]])
    def test_what_is_wrong_says_which_rows_are_read_instead(self, cell: Cell, got: list[Row]) -> None:
        """Or the cell would go as declared whatever the engine reads."""
        adapter = SimpleNamespace(read=lambda *_: got)
        scene: Any = SimpleNamespace(cell=cell, table=None, adapter=adapter)
        with pytest.raises(AssertionError) as found:
            PROOFS[operations.ROWS](scene)
        assert verdict(cell, "", str(found.value))

    @pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.behind], ids=str)
    def test_what_an_engine_refuses_for_another_reason_than_the_kits_has_a_limit_of_its_own(
        self, cell: Cell
    ) -> None:
        """What is withheld is explained by Trino's writes to HDFS, and by nothing else that Trino says."""
        assert cell.behind
        of_hdfs = re.search(r"hdfs|transaction log", cell.behind.reason)
        assert bool(cell.behind.limit) == (cell.behind.refuses and not of_hdfs)
        assert cell.behind.limit != cell.limit

    @pytest.mark.parametrize(("fmt", "other"), [("iceberg", "delta"), ("delta", "iceberg")])
    def test_no_limit_of_one_format_is_explained_by_the_other(self, fmt: str, other: str) -> None:
        limits = {cell.limit for cell in CELLS if cell.format.name == fmt}
        assert [limit for limit in limits if other in limit] == []

    def test_the_kit_is_why_only_where_it_leaves_a_format_out_altogether(self) -> None:
        left_out = {(cell.engine, cell.format) for cell in CELLS if cell.design == Design.KIT}
        works = {(cell.engine, cell.format) for cell in CELLS if cell.expected is Expected.WORKS}
        assert not left_out & works

    def test_what_is_refused_is_refused_by_the_engine_and_not_by_the_kit(self) -> None:
        mine = [
            str(cell) for cell in CELLS if cell.expected is Expected.REFUSED and cell.design == Design.KIT
        ]
        assert mine == [], "ask the engine, or say that the kit withholds it"

    @pytest.mark.parametrize("key", switches.SWITCHES, ids=lambda key: f"{key[0]}-{key[1]}")
    def test_every_setting_that_withholds_has_cells_and_another_catalog(
        self, key: tuple[str, formats.Format]
    ) -> None:
        engine, fmt = key
        cells = [cell for cell in CELLS if (cell.engine, cell.format) == key]
        assert any(cell.expected is Expected.WITHHELD for cell in cells)
        switch = switches.SWITCHES[key]
        assert switch.format.catalogs[engine] == switch.catalog != fmt.catalogs[engine]
        name, _, value = switch.setting.partition(": ")
        assert value
        [catalog] = [each for each in TRINO["trino_catalogs"] if each["name"] == switch.catalog]
        assert (catalog["like"], catalog["properties"]) == (fmt.catalogs[engine], {name: None})

    def test_every_engine_is_asked_for_every_format(self) -> None:
        asked = {(cell.engine, cell.format) for cell in CELLS if cell.expected is not Expected.ABSENT}
        assert asked == set(product(ENGINES, formats.FORMATS))

    def test_what_is_absent_is_not_offered_yet(self) -> None:
        """A class, method or parameter of the clients that is new may be one of the absent cells."""
        known, found = {*KNOWN.read_text(encoding="utf-8").splitlines()}, {*surface()}
        said = [
            *(
                f"new: {line}: look whether this offers one of the absent cells, then add it"
                for line in found - known
            ),
            *(f"gone: {line}: look whether a cell still works, then remove it" for line in known - found),
        ]
        assert not said, "\n".join([*sorted(said), f"next: .venv/bin/python -m {surface.__module__}"])

    def test_duckdb_reaches_no_table_by_itself(self) -> None:
        """Cells are absent because DuckDB brings no more: one that does is to be asked for all of them."""
        with duckdb.connect(config={"autoinstall_known_extensions": False}) as duck:
            built_in = (
                "SELECT extension_name FROM duckdb_extensions() WHERE install_mode = 'STATICALLY_LINKED'"
            )
            assert {name for (name,) in duck.sql(built_in).fetchall()} == DUCKDB
            for statement in (
                "ATTACH 'hdfs://n/t' AS t (TYPE iceberg)",
                "ATTACH 'hdfs://n/t' AS t (TYPE delta)",
            ):
                with pytest.raises(duckdb.Error, match=r"_extension\" not found"):
                    duck.sql(statement)
        brought = {each.name for each in distributions() if each.name.startswith("duckdb-extension")}
        assert not brought, "look again at what is absent in cells.yml"

    def test_every_statement_names_what_there_is(self) -> None:
        steps = [
            step
            for by_format in RECIPES.values()
            for recipes in by_format.values()
            for recipe in recipes.values()
            for step in recipe.steps
            if isinstance(step, str)
        ]
        assert len(steps) > 100
        for step in steps:
            assert "{" not in step.format(**vars(NAMES))

    def test_every_operation_can_be_proven_and_begins_somewhere(self) -> None:
        assert {operation.proof for operation in operations.OPERATIONS} == set(PROOFS)
        assert {operation.start for operation in operations.OPERATIONS} == set(operations.STARTS)


class TestVerdict:
    """What happened, compared with what was declared."""

    WORKS = Cell("spark", formats.ICEBERG, operations.BY_NAME["merge"], Expected.WORKS)
    REFUSED = Cell(
        "trino", formats.DELTA, operations.BY_NAME["merge"], Expected.REFUSED, "Access (Denied|No)"
    )
    WITHHELD = replace(REFUSED, expected=Expected.WITHHELD)

    WRONG = Cell("trino", formats.DELTA, operations.BY_NAME["merge"], Expected.WRONG, "got: None")

    def test_as_declared(self) -> None:
        assert not verdict(self.WORKS, "", "")
        assert not verdict(self.REFUSED, "oh\nAccess Denied: no", "")
        assert not verdict(self.WITHHELD, "oh\nAccess Denied: no", "")
        assert not verdict(self.WRONG, "", "expected: 1, got: None")

    def test_what_worked_and_is_refused_or_wrong_now_fails(self) -> None:
        assert verdict(self.WORKS, "boom", "") == "declared as works, but refused:\nboom"
        assert verdict(self.WORKS, "", "other rows") == "other rows"

    @pytest.mark.parametrize("cell", [REFUSED, WITHHELD, WRONG], ids=lambda cell: cell.expected)
    def test_what_works_now_fails_as_loudly(self, cell: Cell) -> None:
        assert "but it works now" in verdict(cell, "", "")

    @pytest.mark.parametrize("cell", [REFUSED, WITHHELD, WRONG], ids=lambda cell: cell.expected)
    def test_another_message_fails_and_is_shown(self, cell: Cell) -> None:
        assert verdict(cell, "boom", "").endswith("boom")
        assert verdict(cell, "", "boom").endswith("boom")

    def test_the_line_that_matters_is_what_the_report_shows(self) -> None:
        assert Outcome((), 0, "first\n  Access Denied: no \nlast").said(self.REFUSED) == "Access Denied: no"
