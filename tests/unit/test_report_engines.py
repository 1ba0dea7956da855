"""The matrix suite's results, sorted and shown."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from lakehouse.report import engines, page, terminal
from lakehouse.report.cluster import Cluster
from lakehouse.report.model import Case, Report, Status


def case(engine: str = "trino", fmt: str = "delta", operation: str = "merge", **more: object) -> Case:
    values = {
        "suite": engines.SUITE,
        "name": f"test_cell[{engine}-{fmt}-{operation}]",
        "status": Status.PASSED,
        "seconds": 1.5,
        "expected": "works",
    }
    return Case(engine=engine, format=fmt, operation=operation, **(values | more))  # type: ignore[arg-type]


REFUSED = case(
    expected="refused",
    statement="MERGE INTO <t>",
    refusal="merges are not supported",
    limit="https://example.test/18829",
)
ABSENT = case("flink", expected="absent", status=Status.SKIPPED)
WITHHELD = replace(REFUSED, operation="insert", expected="withheld", behind="without security: refused: <no>")
ANSWER = case("spark", operation="TPC-H q01", expected="", name="test_the_answer_is_right[spark-q01]")
PROOF = case("polars", operation="types written by trino", expected="", name="test_rows[trino-polars]")
LIMIT = replace(
    PROOF, engine="flink", expected="refused", refusal="no such view", limit="https://example.test/17858"
)


def report(*cases: Case) -> Report:
    cluster = Cluster("kit", "tests", "ns", "hdfs://ns/x", 3, (), ())
    return Report(cluster, {"trino": "476"}, (), cases, (), datetime(2026, 1, 1, tzinfo=UTC))


def test_each_kind_has_its_place() -> None:
    other = case(suite="smoke")
    arranged = engines.arrange([REFUSED, ANSWER, PROOF, other])
    found = [[each for cell in kind.cells for each in cell.cases] for kind in
             (arranged.cells, arranged.answers, arranged.proofs)]  # fmt: skip
    assert found == [[REFUSED], [ANSWER], [PROOF]]
    assert engines.apart([REFUSED, other]) == [other]
    assert arranged
    assert not engines.arrange([other])


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (case(), "works"),
        (REFUSED, "refused"),
        (ABSENT, "absent"),
        (WITHHELD, "withheld"),
        (case(expected="refused", status=Status.FAILED), "failed"),
        (case(status=Status.ERROR), "failed"),
        (case(status=Status.SKIPPED), "skipped"),
    ],
)
def test_a_cell_looks_like_what_happened(cell: Case, shown: str) -> None:
    assert engines.look(cell) == shown


def test_cells_are_counted() -> None:
    cells = engines.arrange([case(), REFUSED, ABSENT, case("spark", status=Status.FAILED)]).cells.cells
    assert engines.counts(cells) == {"works": 1, "refused": 1, "absent": 1, "failed": 1}


def test_the_proof_of_a_limit_looks_like_a_cell_and_is_counted_by_a_name_of_its_own() -> None:
    arranged = engines.arrange([REFUSED, PROOF, LIMIT])
    assert [cell.cases for cell in arranged.proofs.cells] == [(PROOF,), (LIMIT,)]
    assert (arranged.counts, arranged.proven, arranged.limits) == ({"refused": 1}, 1, 1)
    html = page.render_matrix(report(REFUSED, PROOF, LIMIT))
    assert '<td class="works"><a href="#evidence-2"' in html
    assert '<td class="refused"><a href="#evidence-3"' in html
    for text in ("✕ 1.5", "no such view", 'href="https://example.test/17858"', "refused, as declared"):
        assert text in html


def test_every_part_of_the_report_counts_the_same_cells() -> None:
    wrong = replace(REFUSED, operation="rename", expected="wrong")
    cases = (case(), REFUSED, wrong, ABSENT, LIMIT, replace(LIMIT, expected="wrong"), PROOF)
    run, printed = report(*cases), StringIO()
    terminal.show(run, Path("x"), Console(file=printed, width=200))
    [line] = [line for line in terminal.excerpt(run).splitlines() if line.startswith("the matrix: ")]
    assert line == "the matrix: 1 works, 1 wrong, 1 refused, 1 absent"
    assert line in printed.getvalue()
    for html in (page.render(run), page.render_matrix(run)):
        for count, name in (("1", "wrong"), ("1", "refused"), ("2", "limits across engines")):
            assert re.search(rf"<li><b>{count}</b> {name}", html)
    head, *rows = [
        re.split(r"  +", row)
        for row in printed.getvalue().splitlines()
        if row.startswith(("engine", "trino"))
    ]
    assert head[2:] == ["works", "wrong", "refused", "absent", "TPC-H", "proofs", "limits", "seconds"]
    assert [row[2:5] for row in rows if len(row) > 5] == [["1", "1", "1"]]


def test_a_limit_that_is_none_any_more_fails_as_loudly() -> None:
    html = page.render_matrix(report(PROOF, replace(LIMIT, status=Status.FAILED)))
    assert '<td class="failed"><a href="#evidence-2"' in html
    assert "<b>1</b> failed" in html


def test_several_tests_of_one_operation_look_like_the_one_that_says_most() -> None:
    right, gone = replace(LIMIT, expected=""), replace(LIMIT, expected="wrong")
    for cases, look in (
        ((right, right), "works"),
        ((right, LIMIT), "refused"),
        ((LIMIT, gone), "wrong"),
        ((gone, replace(right, status=Status.ERROR)), "failed"),
        ((right, replace(right, status=Status.SKIPPED)), "works"),
    ):
        [cell] = engines.arrange(cases).proofs.cells
        assert engines.shown(cell) == look


def test_strangers_are_said_once() -> None:
    assert engines.arrange([REFUSED, ABSENT]).strangers == (("flink", "delta"),)


def test_the_page_shows_statement_words_and_limit_escaped() -> None:
    html = page.render_matrix(report(REFUSED, ABSENT, ANSWER, PROOF))
    for text in ("MERGE INTO &lt;t&gt;", "merges are not supported", 'href="https://example.test/18829"'):
        assert text in html
    assert "Not at all: flink · delta." in html
    assert "types written by trino" in html
    assert "<t>" not in html


def test_what_the_kit_withholds_is_shown_with_what_the_engine_itself_does() -> None:
    html = page.render_matrix(report(REFUSED, WITHHELD))
    assert '<td class="withheld">' in html
    assert html.count("without security: refused: &lt;no&gt;") == 2
    assert "<b>1</b> withheld by the kit" in html


def test_the_terminal_counts_cells_in_one_line_and_absent_ones_apart_from_skipped_tests() -> None:
    printed = StringIO()
    skipped = case(suite="smoke", status=Status.SKIPPED, expected="")
    terminal.show(report(case(), REFUSED, WITHHELD, ABSENT, LIMIT, skipped), Path("x"), Console(file=printed))
    assert "\nthe matrix: 1 works, 1 refused, 1 withheld, 1 absent\n" in printed.getvalue()
    assert "4 passed, 1 skipped, 1 absent" in printed.getvalue()


def test_a_cell_that_went_otherwise_is_loud() -> None:
    html = page.render_matrix(report(case(status=Status.FAILED, message="it works now", evidence="rows: 3")))
    assert 'class="failed"' in html
    assert "rows: 3" in html


@pytest.mark.parametrize("bad", [ANSWER, PROOF, case()])
def test_one_failure_of_any_kind_spoils_the_page(bad: Case) -> None:
    good = page.render_matrix(report(REFUSED, ANSWER, PROOF))
    assert '<header class="good">' in good
    html = page.render_matrix(report(REFUSED, replace(bad, status=Status.FAILED)))
    assert '<header class="bad">' in html
    assert "<b>1</b> failed" in html


def test_what_was_not_run_is_not_called_executed() -> None:
    assert "was executed" in page.render_matrix(report(REFUSED, ABSENT))
    html = page.render_matrix(report(REFUSED, case("spark", status=Status.SKIPPED)))
    assert "was executed" not in html
    assert "1 cells were not run." in html


def test_a_proof_of_several_engines_is_a_row() -> None:
    alone = replace(PROOF, engine="all", operation="appends at once")
    arranged = engines.arrange([PROOF, replace(PROOF, engine="duckdb"), alone, replace(alone, engine="hdfs")])
    assert arranged.shared == (("types written by trino", "delta"),)
    html = page.render_matrix(report(PROOF, replace(PROOF, engine="duckdb"), alone))
    assert html.count('<th scope="row">types written by trino <small>delta</small></th>') == 1
    assert html.count("<li><a") == 1


def test_a_limit_that_is_no_address_is_no_link() -> None:
    assert "javascript:" not in page.render_matrix(report(replace(REFUSED, limit="javascript:alert(1)")))


def test_the_terminal_has_a_row_for_each_engine_and_format() -> None:
    printed = StringIO()
    cases = (REFUSED, ABSENT, ANSWER, PROOF, replace(LIMIT, engine="trino"))
    terminal.show(report(*cases), Path("x"), Console(file=printed, width=200))
    lines = [line.split() for line in printed.getvalue().splitlines()]
    assert ["engine", "format", "refused", "absent", "TPC-H", "proofs", "limits", "seconds"] in lines
    assert ["trino", "delta", "1", "1", "3.0"] in lines
    assert ["polars", "delta", "1", "1.5"] in lines
    assert not [line for line in lines if line[:1] == ["flink"]]
