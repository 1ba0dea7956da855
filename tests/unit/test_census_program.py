"""`lakehouse tables census` brings its program to a host, and makes a result of its reply."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from lakehouse.census import __main__ as program_main
from lakehouse.census import job, report
from lakehouse.census.java_errors import Py4JError
from lakehouse.census.job import Counts
from lakehouse.census.store import ConflictError, UnknownCommitError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.outcome import Outcome
from lakehouse.run import ROOT
from lakehouse.tables import census_program
from lakehouse.tables.census_program import Program, Reply

COUNTS: dict[str, Any] = {
    "tables": 3, "skipped": 1, "changed": 2, "dropped": 0, "unsupported": 0, "units": 9, "failed": [],
    "version": 7, "written": True, "seconds": 1.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def program() -> Program:
    return census_program.collector(placement.read(inventory.load(str(ROOT / "tests/inventory"))), "FILE")


def test_the_program_runs_on_the_first_client_as_the_user_of_spark(program: Program) -> None:
    assert program.host.name == program.cluster.inventory.group("clients")[0].name
    assert program.account == program.cluster.variable("lakehouse_users")["spark"]
    namenode = program.cluster.endpoint("namenode_http")
    assert namenode is not None
    assert program.options[:2] == ("--webhdfs", namenode.uri)
    assert f"runuser -u {program.account} -- sh -c" in program.script()
    subprocess.run(["sh", "-n", "-c", program.script()], check=True)


def test_the_archive_has_all_that_the_collectors_import(tmp_path: Path) -> None:
    archive = census_program.archive()
    assert archive == census_program.archive()
    place = tmp_path / "census.zip"
    place.write_bytes(archive)
    names = zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert "lakehouse/census/__main__.py" in names
    assert "lakehouse/tables/risky.py" not in names
    code = "import lakehouse.census.collect as module; print(module.__file__)"
    printed = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(place)!r}); {code}"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    ).stdout  # fmt: skip
    assert printed.startswith(str(place))


def reply(code: int = 0, complaint: str = "", **counts: Any) -> Reply:
    return Reply(Answer(code), counts, complaint)


def test_a_run_that_changes_nothing_has_up_to_date_metadata(program: Program) -> None:
    counts = {**COUNTS, "written": False, "changed": 0, "skipped": 3, "units": 0}
    result = census_program.result(program, reply(**counts), 2.0)
    assert result.outcome == Outcome.OK
    assert "OK; 3 tables, metadata is up to date, 2.0 s; next: " in result.last_line


def test_a_run_has_its_counts_in_the_last_line_and_for_programs(program: Program) -> None:
    result = census_program.result(program, reply(**COUNTS), 2.0)
    assert "3 tables, 2 changed, 0 dropped, 1 up to date, 9 units, 2.0 s" in result.last_line
    assert result.json()["changed"] == 2


@pytest.mark.parametrize(
    ("answer", "outcome", "code", "fact"),
    [
        (reply(1, **{**COUNTS, "failed": [{"table": "x.t", "reason": "why"}]}), 1, "unreadable", "why"),
        (reply(2, error="no HDFS"), 2, "failed", "no HDFS"),
        (reply(1, "java: not found"), 2, "failed", "java: not found"),
        (reply(124), 124, "limit", "ended by --limit; units may have been written"),
        (reply(2, error="changed by another run", conflict=True), 2, "conflict", "another run"),
        (reply(1, **COUNTS, warning="findings were not written: why"), 1, "derived", "not written: why"),
        (Reply(unknown("refused"), {}, ""), 2, "silent", "refused"),
    ],
)
def test_what_failed_is_a_finding(
    program: Program, answer: Reply, outcome: int, code: str, fact: str
) -> None:
    result = census_program.result(program, answer, 1.0)
    assert int(result.outcome) == outcome
    [finding] = result.findings
    assert finding.code == f"tables.{code}"
    assert fact in finding.fact
    json.dumps(result.json())


@pytest.mark.parametrize("fault", [None, Py4JError("no catalog\n\tat java")])
def test_the_result_is_printed_before_snapshots_expire(
    capsys: pytest.CaptureFixture[str], fault: Exception | None
) -> None:
    printed: list[str] = []

    def expire(*_: object) -> None:
        if text := capsys.readouterr().out:
            printed.append(text)
        if fault:
            raise fault

    counts = Counts(1, 0, 1, 0, 0, 2, {}, 7, True, 1.0)
    arguments = argparse.Namespace(webhdfs="", user="", level="FILE", catalog="iceberg")
    with (
        patch.object(program_main, "SparkMetastore"),
        patch.object(job, "run", return_value=counts),
        patch.object(program_main, "Derived"),
        patch.object(report, "findings"),
        patch.object(job, "expire", expire),
    ):
        assert program_main._collect(Mock(), Mock(), arguments) == bool(fault)
    assert [json.loads(line) for line in printed] == [counts.document()]
    warning = {
        **counts.document(),
        "warning": "findings or sizes were not written, or snapshots not expired: no catalog",
    }
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == ([warning] if fault else [])


@pytest.mark.parametrize("error", [ConflictError("changed by another run"), UnknownCommitError("may have")])
def test_a_conflict_of_two_runs_is_one_line(capsys: pytest.CaptureFixture[str], error: Exception) -> None:
    with (
        patch.object(program_main, "SparkSession"),
        patch.object(program_main, "_collect", side_effect=error),
    ):
        assert program_main.main(["collect"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == str(error)


def test_lines_of_the_jvm_are_no_result() -> None:
    lines = ["WARN something", "{broken", '{"tables": 1}', "{ended"]
    assert census_program.document(lines) == {"tables": 1}
    assert census_program.document(["WARN"]) == {}


def test_a_report_has_its_findings_with_cost_and_statement(program: Program) -> None:
    row = {
        "code": "small_files", "severity": "warning", "storage_plugin": "iceberg", "workspace": "x",
        "table_name": "t", "fact": "why",
        "files": 9, "size_bytes": 2048, "spark_sql": "CALL iceberg.system.rewrite_data_files(table => 'x.t')",
    }  # fmt: skip
    idle = {**row, "code": "idle", "severity": "info", "spark_sql": "DESCRIBE TABLE EXTENDED x.t"}
    document = {
        "findings": [idle, row],
        "formats": [{"name": "iceberg", "table_count": 1, "files": 9, "size_bytes": 2048}],
        "history": [],
    }
    reporter = census_program.reporter(program.cluster, 90)
    result = census_program.result(reporter, Reply(Answer(0), document, ""), 1.0)
    assert result.outcome == Outcome.DEGRADED
    assert [finding.code for finding in result.worst] == ["tables.small_files", "tables.idle"]
    assert "why (9 files, 2.0 KiB)" in result.worst[0].fact
    assert "lakehouse sql --engine spark 'CALL iceberg.system.rewrite_data_files" in result.worst[0].next
    assert result.json()["tables"] == [idle, row]


def test_a_report_without_a_census_names_the_command_that_makes_one(program: Program) -> None:
    reporter = census_program.reporter(program.cluster, 90)
    answer = reply(2, error="[TABLE_OR_VIEW_NOT_FOUND] The table cannot be found")
    [finding] = census_program.result(reporter, answer, 1.0).findings
    assert finding.fact == "no census has been written"
    assert "lakehouse tables census" in finding.next
