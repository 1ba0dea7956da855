"""A program that hangs is killed with all that it has started, and one line says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible.module_utils.lakehouse import programs
from ansible.module_utils.lakehouse.refused import RefusedError, UnansweredError

from suites.testbed.waiting import wait_for
from tests.unit import patience


def test_output_errors_and_the_exit_code_come_back() -> None:
    done = programs.run(
        ["sh", "-c", "cat; echo $WORD >&2; exit 3"],
        seconds=30, next_command="", text="in", environment={**os.environ, "WORD": "oops"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (3, "in", "oops\n")


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    hang = f"sleep 600 & echo $! > {pid}; wait"
    with pytest.raises(RefusedError) as error:
        programs.run(["sh", "-c", hang], seconds=0.5, next_command="look at it")
    assert str(error.value) == "sh has not ended within 0.5 s; next: look at it"
    child = Path("/proc", pid.read_text(encoding="utf-8").strip(), "stat")

    def is_gone() -> bool:
        return not child.exists() or child.read_text(encoding="utf-8").split()[2] == "Z"

    wait_for("the child's end", is_gone, seconds=patience.SECONDS, ignoring=(FileNotFoundError,))


def test_the_program_behind_runuser_is_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runuser = tmp_path / "runuser"
    runuser.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    runuser.chmod(0o755)
    argv = ["runuser", "-u", "hdfs", "--", "/usr/bin/java", "-format"]
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(RefusedError, match=r"^java has not ended within 0\.2 s"):
        programs.run(argv, seconds=0.2, next_command="")


def test_a_program_that_is_not_installed_is_named() -> None:
    with pytest.raises(UnansweredError, match=r"^there is no program kit-none; next: install it$"):
        programs.run(["kit-none"], seconds=1, next_command="install it")
