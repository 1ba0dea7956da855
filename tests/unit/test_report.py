"""The report, from the files that a run leaves behind to the verdict."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from lakehouse import report
from lakehouse.errors import LakehouseError
from lakehouse.report import text

EXAMPLE = Path(__file__).parent / "data" / "report"
VERSIONS = {"hadoop": "3.5.0", "spark": "4.1.4"}


class Run:
    """The files of one run, to be changed, and what the report makes of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.console = Console(file=io.StringIO(), force_terminal=False)

    def build(self) -> int:
        return report.build(self.folder, VERSIONS, self.console)

    def edit(self, name: str, change: Callable[[Any], None]) -> None:
        path = self.folder / name
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    def edit_case(self, name: str, change: Callable[[ET.Element], None]) -> None:
        path = self.folder / "report/smoke-junit.xml"
        tree = ET.parse(path)
        (case,) = [case for case in tree.iter("testcase") if case.get("name") == name]
        change(case)
        tree.write(path)

    @property
    def summary(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "report/summary.json").read_text())
        return content

    @property
    def html(self) -> str:
        return (self.folder / "report/index.html").read_text()

    @property
    def junit(self) -> ET.Element:
        return ET.parse(self.folder / "report/junit.xml").getroot()

    @property
    def printed(self) -> str:
        assert isinstance(self.console.file, io.StringIO)
        return self.console.file.getvalue()


class Page(HTMLParser):
    """Checks that tags close in order, and gathers ids and attributes that name an address."""

    VOID = frozenset({"meta", "link"})
    SHAPES = frozenset({"rect"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href"}:
                self.addresses.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Path(shutil.copytree(EXAMPLE, tmp_path / "build")))


def failure(message: str, evidence: str = "", tag: str = "failure") -> Callable[[ET.Element], None]:
    def change(case: ET.Element) -> None:
        ET.SubElement(case, tag, message=message).text = evidence

    return change


def test_a_good_run_is_verified(run: Run) -> None:
    assert run.build() == 0
    assert run.summary["result"] == "passed"
    assert run.summary["problems"] == []
    assert run.printed.splitlines()[-2].startswith(
        "VERIFIED: lakehouse-local: 60 passed, 1 skipped; 13 tables"
    )


def test_the_excerpt_has_the_phases_of_every_deploy_and_the_verdict(run: Run) -> None:
    run.build()
    lines = (run.folder / "report/excerpt.txt").read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if line.startswith("<== ")]
    assert shown == ["<== converge 131.7 s", "<== data 41.3 s", "<== smoke 148.6 s"]
    assert lines[-1].startswith(("VERIFIED: ", "NOT VERIFIED: "))


def test_the_summary_holds_what_programs_need(run: Run) -> None:
    run.build()
    summary = run.summary
    assert summary["versions"] == VERSIONS
    assert summary["phases"][1] == {"name": "artifacts", "offset": 3.2, "seconds": 61.4, "status": "passed"}
    assert summary["tests"]["counts"] == {
        "skipped": 1, "passed": 60, "failed": 0, "error": 0, "absent": 0,
    }  # fmt: skip
    case = next(case for case in summary["tests"]["cases"] if case["name"] == "test_merge[delta]")
    assert (case["engine"], case["format"], case["operation"]) == ("spark", "delta", "merge")
    table = summary["tables"][0]
    assert (table["name"], table["files"], table["blocks"], table["ok"]) == (
        "iceberg.flights.flights",
        12,
        12,
        True,
    )
    assert table["nodes"] == {"cpu-node1": 12, "cpu-node2": 12, "worker-node3": 12}
    assert summary["cluster"]["addresses"][1] == {
        "service": "Metastore",
        "url": "thrift://172.28.0.11:9083",
        "http": "",
    }


@pytest.mark.parametrize("tag", ["failure", "error"])
def test_a_bad_test_fails_the_run_and_shows_its_evidence(run: Run, tag: str) -> None:
    run.edit_case("test_merge[delta]", failure("rows differ", "expected 3 rows\ngot 2 rows", tag))
    assert run.build() == 1
    (problem,) = run.summary["problems"]
    assert problem.startswith("test_merge[delta] ")
    assert problem.endswith(": rows differ")
    assert problem in run.printed
    assert "expected 3 rows\ngot 2 rows" in run.html
    assert run.printed.splitlines()[-2].startswith("NOT VERIFIED")


def test_a_table_with_too_few_replicas_fails_the_run(run: Run) -> None:
    run.edit("report/tables.json", lambda tables: tables[1].update(replicas_min=2))
    assert run.build() == 1
    assert run.summary["problems"] == ["table delta.flights.flights: a block has 2 of 3 replicas"]
    suite = next(suite for suite in run.junit if suite.get("name") == "replication")
    assert suite.get("failures") == "1"


def test_a_table_without_blocks_lacks_nothing(run: Run) -> None:
    run.edit(
        "report/tables.json", lambda tables: tables[0].update(files=0, blocks=0, replicas_min=0, nodes={})
    )
    assert run.build() == 0


def test_nothing_tested_is_not_verified(run: Run) -> None:
    (run.folder / "report/smoke-junit.xml").write_text('<testsuites><testsuite name="pytest"/></testsuites>')
    run.edit("report/tables.json", lambda tables: tables.clear())
    assert run.build() == 1
    assert run.summary["problems"] == ["no test has run", "no table's replicas were counted"]


def test_a_failed_phase_fails_the_run_unless_it_was_repeated(run: Run) -> None:
    run.edit("report/phases.json", lambda phases: phases[3].update(status="failed"))
    assert run.build() == 1
    assert run.summary["problems"] == ["phase converge failed"]
    again = {"name": "converge", "started": 1795237999.0, "seconds": 20.0, "status": "passed"}
    run.edit("report/phases.json", lambda phases: phases.append(again))
    assert run.build() == 0


def test_warnings_of_a_run_are_in_every_report_and_fail_nothing(run: Run) -> None:
    line = "WARN hadoop.keys all: Hadoop 3.5.0 has no key <b>: did you mean dfs.replication?"

    def twice(phases: list[dict[str, Any]]) -> None:
        for phase in phases[:2]:
            phase["warnings"] = [line]

    run.edit("report/phases.json", twice)
    assert run.build() == 0
    assert run.summary["warnings"] == [line]
    assert line in run.printed
    assert run.printed.count("1 warning") == 1
    assert "has no key &lt;b&gt;" in run.html


def test_phases_may_be_missing(run: Run) -> None:
    (run.folder / "report/phases.json").unlink()
    assert run.build() == 0
    assert "Nothing was timed." in run.html


def test_another_engine_is_more_rows(run: Run) -> None:
    trino = run.folder / "report/trino-junit.xml"
    trino.write_text(
        '<testsuite name="pytest" tests="1"><testcase name="test_merge[trino]" time="1.5"><properties>'
        '<property name="engine" value="trino"/><property name="format" value="iceberg"/>'
        '<property name="operation" value="merge"/></properties></testcase></testsuite>'
    )
    run.edit("endpoints.json", lambda content: content.update(trino={"http": "http://172.28.0.12:8090"}))
    run.edit(
        "endpoints.json", lambda content: content["hosts"]["cpu-node2"]["groups"].append("trino_workers")
    )
    assert run.build() == 0
    assert re.search(r"^trino +merge +ok +1\.5 s$", run.printed, re.MULTILINE)
    assert "trino · iceberg" in run.html
    assert "Trino worker" in run.html
    assert "http://172.28.0.12:8090" in run.printed
    assert [suite.get("name") for suite in run.junit] == ["smoke", "trino", "replication"]


def test_the_merged_junit_counts_every_suite(run: Run) -> None:
    run.edit_case("test_merge[delta]", failure("rows differ"))
    run.build()
    root = run.junit
    assert root.get("tests") == str(61 + 13)
    assert len(list(root.iter("testcase"))) == 61 + 13
    assert root.get("skipped") == "1"


def test_a_test_without_properties_is_called_by_its_name(run: Run) -> None:
    (run.folder / "report/smoke-junit.xml").write_text(
        '<testsuite tests="1"><testcase name="test_name_node_answers[a]" time="0.1"/></testsuite>'
    )
    assert run.build() == 0
    (case,) = run.summary["tests"]["cases"]
    assert (case["engine"], case["format"], case["operation"]) == ("-", "-", "name node answers")


def test_the_log_is_plain_and_aligned(run: Run) -> None:
    run.build()
    assert "\x1b" not in run.printed
    lines = run.printed.splitlines()
    assert lines[0].split() == ["engine", "operation", "iceberg", "delta", "cluster"]
    heading = next(line for line in lines if line.startswith("table "))
    row = next(line for line in lines if line.startswith("delta.flights.flights "))
    assert row.rindex("13") + 2 == len(heading)
    assert all(line == line.rstrip() for line in lines)
    assert "thrift://172.28.0.11:9083" in run.printed


def test_the_page_is_well_formed_and_needs_nothing_else(run: Run) -> None:
    run.build()
    page = Page(run.html)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    inner = {address.removeprefix("#") for address in page.addresses if address.startswith("#")}
    assert inner == set(page.ids)
    outer = {address for address in page.addresses if not address.startswith(("#", "http://172.28.0."))}
    assert outer == {"data:,", "summary.json", "junit.xml"}
    assert not page.tags & {"script", "img", "iframe"}


def test_hostile_text_stays_text(run: Run) -> None:
    evil = "<script>alert(1)</script>\"'><b>[bold]"
    run.edit_case("test_create[iceberg]", failure(evil, evil))
    run.edit_case("test_create[iceberg]", lambda case: case.set("name", evil))
    run.edit("report/tables.json", lambda tables: tables[0].update(table=evil, nodes={evil: 12}))
    run.edit("report/phases.json", lambda phases: phases[0].update(name=evil))
    run.edit("endpoints.json", lambda content: content.update(cluster=evil, warehouse=evil))
    run.edit("endpoints.json", lambda content: content["namenode"].update(http="javascript:alert(1)"))
    run.edit(
        "endpoints.json", lambda content: content["hosts"].update({evil: {"address": evil, "groups": [evil]}})
    )
    assert run.build() == 1
    page = Page(run.html)
    assert page.open == []
    assert not page.tags & {"script", "b[bold]"}
    assert "javascript:alert(1)" not in page.addresses
    assert evil in run.printed


@pytest.mark.parametrize("name", ["endpoints.json", "report/tables.json", "report/smoke-junit.xml"])
@pytest.mark.parametrize("content", [None, "", "{", "[1]", '"x"', "<a/>"])
def test_a_missing_or_broken_input_is_one_line_with_the_next_command(
    run: Run, name: str, content: str | None
) -> None:
    path = run.folder / name
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(LakehouseError) as caught:
        run.build()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value.next_command).startswith("make ")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("report/tables.json", lambda tables: tables[2].pop("blocks"), "tables.json: 2 lacks 'blocks'"),
        (
            "report/tables.json",
            lambda tables: tables[0].update(files="12"),
            'tables.json: 0.files is "12", expected a count',
        ),
        (
            "report/tables.json",
            lambda tables: tables[0].update(bytes=-1),
            "tables.json: 0.bytes is -1, expected a count",
        ),
        (
            "report/tables.json",
            lambda tables: tables[0].update(nodes=["n"]),
            'nodes is ["n"], expected an object',
        ),
        ("endpoints.json", lambda content: content.pop("metastore"), "endpoints.json lacks 'metastore'"),
        (
            "endpoints.json",
            lambda content: content["spark"].pop("master"),
            "endpoints.json: spark lacks 'master'",
        ),
        (
            "endpoints.json",
            lambda content: content.update(replication=True),
            "replication is true, expected a count",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_place(
    run: Run, name: str, change: Callable[[Any], None], message: str
) -> None:
    run.edit(name, change)
    with pytest.raises(LakehouseError) as caught:
        run.build()
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0.0 s"), (0.04, "0.0 s"), (59.94, "59.9 s"), (59.97, "1 min 00 s"), (392.4, "6 min 32 s")],
)
def test_seconds_are_readable(value: float, expected: str) -> None:
    assert text.seconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (6148213, "5.9 MiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes_are_readable(value: int, expected: str) -> None:
    assert text.size(value) == expected
