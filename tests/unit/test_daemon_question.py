"""What a host's shell is asked about units, and what is made of its answer."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from plugins.action.lakehouse_daemon import is_asked, question, unsettled

# As systemd prints it, with the path of the unit put in.
SHOWN = """\
LoadState=loaded
ActiveState={state}
UnitFileState=enabled
NeedDaemonReload=no
ActiveEnterTimestamp={started}
ExecMainStartTimestamp={started}
FragmentPath={unit}
DropInPaths=
"""
HOUR = 3600.0


def stamp(seconds: float) -> str:
    return time.strftime("%a %Y-%m-%d %H:%M:%S.000000 UTC", time.gmtime(seconds))


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask the shell, where systemd knows units that started at a time; returns the names of the unsettled."""
    files = tmp_path / "units"
    files.mkdir()
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--value*) echo "{files}/$3"; echo;; *) cat "{files}/$3.shown";; esac\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def asked(units: list[dict[str, Any]], started: float, state: str = "active") -> list[str]:
        for unit in units:
            path = files / unit["name"]
            path.touch()
            text = SHOWN.format(state=state, started=stamp(started), unit=path)
            path.with_name(f"{unit['name']}.shown").write_text(text, encoding="utf-8")
        done = subprocess.run(["sh", "-c", question(units)], capture_output=True, text=True, check=True)
        # As it comes through a terminal.
        return unsettled(units, done.stdout.replace("\n", "\r\n"))

    return asked


def test_what_runs_with_what_is_there_needs_no_module(answer: Any) -> None:
    assert answer([{"name": "a.timer"}, {"name": "b", "files": []}], started=time.time() + HOUR) == []


def test_what_is_older_than_a_file_is_left_to_the_module(answer: Any, tmp_path: Path) -> None:
    target, link = tmp_path / "a file", tmp_path / "link"
    link.symlink_to(target)
    target.touch()
    units = [{"name": "a", "files": [str(link)]}, {"name": "b"}]
    assert answer(units, started=time.time() - HOUR) == ["a", "b"]


def test_what_does_not_run_is_left_to_the_module(answer: Any) -> None:
    assert answer([{"name": "a"}], started=time.time() + HOUR, state="failed") == ["a"]
    assert answer([{"name": "a", "enabled": False}], started=time.time() + HOUR) == ["a"]


@pytest.mark.parametrize(
    "text", ["", "a banner\n", "LoadState=loaded\n1.0\n"], ids=["none", "banner", "short"]
)
def test_an_answer_of_another_form_is_left_to_the_module(text: str) -> None:
    assert unsettled([{"name": "a"}], text) == ["a"]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ({"name": "a"}, False),
        ({"name": "a", "ready": [{}]}, True),
        ({"name": "a", "listens": [{}]}, True),
        ({"name": "a", "ready": [{}], "enabled": False}, False),
    ],
    ids=["systemd alone", "it answers", "it listens", "it is off"],
)
def test_a_unit_that_answers_is_asked_itself(unit: dict[str, Any], expected: bool) -> None:
    assert is_asked(unit) == expected
