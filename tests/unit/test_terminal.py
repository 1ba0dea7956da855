"""What the cluster stores never steers the terminal of the person who reads it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import cast

import pytest

from lakehouse import cli
from lakehouse.catalog import text
from lakehouse.errors import LakehouseError
from lakehouse.local import nodes
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.remote import output
from lakehouse.remote.openssh import Line
from lakehouse.rolling import run
from lakehouse.rolling.facts import Living
from lakehouse.rolling.journal import Journal
from lakehouse.rolling.result import Ending, Refusal, RunResult
from lakehouse.rolling.run import Running, Work
from lakehouse.shared_options import ChangeOptions
from lakehouse.sql import rows
from lakehouse.sql.rows import Rows
from lakehouse.terminal import LINES, printable
from lakehouse.validation import finding as checks

# By what a terminal does with it.
HOSTILE = {
    "title": ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
    "clear": ("\x1b[2J", "\\x1b[2J"),
    "a line over another": ("ok\rno", "ok\\rno"),
    "back": ("a\x08b", "a\\x08b"),
    "delete": ("\x7f", "\\x7f"),
    "C1: command": ("\x9b31m", "\\x9b31m"),
    "C1: operating system": ("\x9d0;owned\x9c", "\\x9d0;owned\\x9c"),
    "C1: next line": ("a\x85b", "a\\x85b"),
    "right to left": ("\u202egpj.exe", "\\u202egpj.exe"),
    "isolate": ("\u2066a\u2069", "\\u2066a\\u2069"),
    "line separator": ("a\u2028b", "a\\u2028b"),
    "tag": ("a\U000e0041", "a\\U000e0041"),
    "half a pair": ("a\ud800", "a\\ud800"),
    "null": ("a\x00b", "a\\x00b"),
}
hostile = pytest.mark.parametrize(("value", "shown"), HOSTILE.values(), ids=HOSTILE)
HARMLESS = "Zoë 名前 שלום 1\N{NO-BREAK SPACE}000 \N{GRINNING FACE} \\x1b"


@hostile
def test_what_steers_a_terminal_is_written_as_an_escape(value: str, shown: str) -> None:
    assert printable(value) == shown
    assert printable(f"{value}\n\t", keep=LINES) == f"{shown}\n\t"


def test_letters_of_every_language_stay() -> None:
    assert printable(HARMLESS) == HARMLESS


@hostile
def test_a_table_for_people_shows_escapes_in_names_values_and_messages(value: str, shown: str) -> None:
    told = rows.table([Rows((value,), ((value,), ([value],))), Rows(messages=(value,))])
    assert shown in told
    assert all(letter == "\n" or printable(letter) == letter for letter in told)


@pytest.mark.parametrize("value", [value for value, _ in HOSTILE.values() if value.isascii()])
def test_csv_for_programs_is_lossless_and_csv_on_a_terminal_is_not_steered(value: str) -> None:
    results = [Rows(("id", "name"), ((1, value),))]
    assert list(csv.reader(io.StringIO(rows.as_csv(results), newline="")))[1:] == [["1", value]]
    assert printable(value) in rows.csv_for_terminal(results)
    assert value not in rows.csv_for_terminal(results)


@hostile
def test_json_is_lossless_and_ascii(value: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown
    result = Result("sql", "x", (), (), {}, "next", {"results": rows.documents([Rows(("a",), ((value,),))])})
    output.end(result, as_json=True)
    said = capsys.readouterr().out
    assert said.isascii()
    assert "\x1b" not in said
    assert json.loads(said)["results"][0]["rows"] == [[value]]


@hostile
def test_findings_progress_and_errors_show_escapes(
    value: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = Finding("sql.refused", Outcome.DEGRADED, "n1", f"cannot cast {value}", "lakehouse status")
    output.end(Result("sql", value, (finding,), (value,), {}, "next"), as_json=False)
    said = capsys.readouterr().err
    assert said.count(shown) == 3

    def fail(_: object) -> int:
        raise LakehouseError(f"there is no table {value}", "lakehouse status")

    monkeypatch.setattr(nodes, "status", fail)
    assert cli.main(["nodes"])
    assert f"no table {shown}" in capsys.readouterr().err


@hostile
def test_a_change_shows_escapes_in_its_plan_its_progress_and_its_end(
    value: str, shown: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Running(cast("Living", None), Journal(tmp_path / "r1.jsonl")).say(f"n1 says {value}")
    assert capsys.readouterr().err == f"r1 n1 says {shown}\n"
    ended = RunResult("restart", value, Ending.HALFWAY, (f"n1 says {value}",), "lakehouse resume r1")
    assert ended.last_line.count(shown) == 2
    work = Work(
        value, {}, (), [f"drops {value}"], "", lambda _: (), refusal=Refusal(value, "lakehouse status")
    )
    options = ChangeOptions("inv")
    plan = run.Plan(cast("Living", None), {}, work)
    run._result(options, "restart", plan, lambda _: plan, None)
    assert capsys.readouterr().out == f"drops {shown}\n"


@hostile
def test_a_check_shows_escapes(value: str, shown: str) -> None:
    assert str(checks.Finding("a.b", "n1", value, "lakehouse status", value)).count(shown) == 2


@pytest.mark.parametrize(("terminal", "expected"), [(True, "\\x1b[2J\ta\n"), (False, "\x1b[2J\ta\n")])
def test_lines_of_hosts_are_as_they_are_where_nobody_looks(
    terminal: bool, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    output.Lines(["n1"])(Line("n1", "\x1b[2J\ta"))
    assert capsys.readouterr().out == expected


@hostile
def test_the_history_of_the_catalog_shows_no_control_characters(value: str, shown: str) -> None:
    assert shown
    told = text.printable(f"a {value} b")
    assert printable(told) == told
