"""`lakehouse tables maintain`: what it gives its program, and the lines that it makes of the reply."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from lakehouse import host_code, locks
from lakehouse.census.files import UnavailableError
from lakehouse.maybe import Answer
from lakehouse.model import inventory, placement
from lakehouse.model.placement import Cluster
from lakehouse.outcome import Outcome
from lakehouse.run import ROOT
from lakehouse.tables import upkeep_program
from lakehouse.tables.census_program import Program, Reply
from lakehouse.tables.upkeep_program import MAINTAIN, PLAN
from lakehouse.upkeep import __main__ as program_main
from lakehouse.upkeep import policies

GOLDEN = ROOT / "tests/render/golden/tests/alpha1/usr/local/sbin/lakehouse-upkeep"
ACTION = {
    "table": "sales.orders", "format": "iceberg", "action": "compact", "policy": "*.*",
    "reason": "9 small files",
    "outcome": "done", "files_before": 9, "bytes_before": 4096, "files_after": 1, "bytes_after": 2048,
    "scan_before": None, "scan_after": None, "seconds": 2.0, "error": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load(str(ROOT / "tests/inventory")))


@pytest.fixture(scope="module")
def program(cluster: Cluster) -> Program:
    return upkeep_program.maintainer(cluster, MAINTAIN, "sales.*", scan=True)


def lines(program: Program, **document: Any) -> list[str]:
    reply = Reply(Answer(0), {"warnings": [], **document}, "")
    return [str(finding) for finding in upkeep_program.result(program, reply, 1.0).findings]


def test_the_arguments_are_those_of_the_unit(program: Program) -> None:
    written = {
        word for line in GOLDEN.read_text().splitlines() if (word := line.strip(" '\\")).startswith("--")
    }
    of_unit = {word.partition("=")[0] for word in written} - {"--py-files /run/lakehouse-upkeep/modules.zip"}
    of_command = {word.partition("=")[0] for word in program.options if word.startswith("--")}
    assert of_command - of_unit == {"--scan", "--pattern"}
    assert of_unit - of_command == set()


def test_the_program_reads_its_arguments(program: Program) -> None:
    arguments = program_main._parser().parse_args([program.verb, *program.options])
    assert (arguments.pattern, arguments.scan, arguments.minutes, arguments.cores) == ("sales.*", True, 60, 2)
    assert [policy.file_mb for policy in policies.parse(json.loads(arguments.policies))] == [64, 256]
    assert arguments.root == "/ground"
    subprocess.run(["sh", "-n", "-c", program.script()], check=True)


def test_the_archive_has_the_census_too() -> None:
    names = set(host_code.modules(upkeep_program.PACKAGE))
    assert {"lakehouse/upkeep/__main__.py", "lakehouse/census/job.py", "lakehouse/catalog/pins.py"} <= names
    assert "lakehouse/catalog/store.py" not in names


def test_an_action_has_its_files_and_bytes_before_and_after(program: Program) -> None:
    [line] = lines(program, actions=[ACTION])
    assert line.startswith("OK tables.compact sales.orders: 9 to 1 file, 4.0 KiB to 2.0 KiB; next: ")
    [line] = lines(program, actions=[{**ACTION, "scan_before": 2.0, "scan_after": 0.5}])
    assert ", scan 2.0 to 0.5 s; next: " in line


def test_a_failure_is_a_line_and_exit_code_1(program: Program) -> None:
    failed = {**ACTION, "outcome": "failed", "error": "it is gone", "files_after": None}
    reply = Reply(
        Answer(1), {"actions": [ACTION, failed], "warnings": ["policy 2, a.*: it matches no table"]}, ""
    )
    result = upkeep_program.result(program, reply, 1.0)
    assert result.outcome == Outcome.DEGRADED
    assert "DEGRADED tables.compact sales.orders: it is gone; next: " in str(result.worst[0])
    assert "policy 2, a.*: it matches no table" in str(result.worst[-1])
    assert "2 actions, 1 failed, 1.0 s" in result.last_line


def test_an_action_that_had_no_time_is_no_failure(program: Program) -> None:
    late = {**ACTION, "outcome": "no time left", "files_before": None, "files_after": None}
    reply = Reply(Answer(0), {"actions": [late], "warnings": []}, "")
    result = upkeep_program.result(program, reply, 1.0)
    assert (result.outcome, "1 no time left" in result.last_line) == (Outcome.OK, True)


def test_a_plan_has_reasons_and_costs(cluster: Cluster) -> None:
    program = upkeep_program.maintainer(cluster, PLAN, "*.*")
    row = {**ACTION, "files": 9, "bytes": 4096, "seconds": 3.2}
    [line] = lines(program, plan=[row])
    assert "9 small files (9 files, 4.0 KiB, about 3 s); next: " in line
    assert "tables maintain sales.orders" in line


@pytest.mark.parametrize(
    ("document", "code", "line"),
    [
        ({"error": "another run is at work; it holds x", "conflict": True}, "tables.conflict", "another run"),
        ({"error": "[TABLE_OR_VIEW_NOT_FOUND] x"}, "tables.failed", "no census has been written"),
        ({"error": "safe mode is on"}, "tables.failed", "safe mode is on"),
    ],
)
def test_a_run_that_does_not_begin_is_one_line(
    program: Program, document: dict[str, Any], code: str, line: str
) -> None:
    result = upkeep_program.result(program, Reply(Answer(2), document, ""), 1.0)
    [finding] = result.findings
    assert (finding.code, finding.outcome) == (code, Outcome.DOWN)
    assert finding.fact.startswith(line)


@pytest.fixture
def arguments(tmp_path: Path) -> Iterator[list[str]]:
    with patch.object(program_main, "SparkSession"):
        yield [
            "--webhdfs=http://x", "--user=u", f"--lock={tmp_path / 'lock'}", '--policies=[{"tables": "*.*"}]',
        ]  # fmt: skip


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_two_runs_at_once(arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock, patch.object(program_main, "_run", Mock(return_value=0)):
        assert locks.hold(lock, 0)
        assert program_main.main(["maintain", *arguments]) == 2
        assert document(capsys)["error"] == f"another run is at work; it holds {tmp_path / 'lock'}"
        # A plan changes nothing.
        assert program_main.main(["plan", *arguments]) == 0
    with patch.object(program_main, "_run", Mock(return_value=0)):
        assert program_main.main(["maintain", *arguments]) == 0


def test_an_invalid_policy_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    invalid = [*arguments[:3], '--policies=[{"tables": "*.*", "orphan_days": 1}]']
    assert program_main.main(["maintain", *invalid]) == 2
    assert document(capsys) == {"error": "policy 1: orphan_days is 1; 3 to 36500"}


def test_hdfs_that_does_not_answer_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with patch.object(program_main, "_run", Mock(side_effect=UnavailableError("HDFS does not answer"))):
        assert program_main.main(["maintain", *arguments]) == 2
    assert document(capsys) == {"error": "HDFS does not answer"}
