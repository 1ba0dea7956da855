"""The hook that looks at a subject keeps the rule that CONTRIBUTING.md states, and `make lint` asks it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lakehouse.dev import subjects
from lakehouse.run import ROOT


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("A daemon comes back after a stray signal", False),
        ("x" * 72, False),
        ("x" * 73, True),
        ("Short\n\n" + "A line of the body may be longer. " * 4, False),
        ("wip", True),
        ("WIP: ports", True),
        ("Work in progress on ports", True),
        ("Wipe the disks of a node that left", False),
    ],
)
def test_a_subject_is_short_and_says_something(message: str, refused: bool) -> None:
    assert subjects.refused(message) is refused


def test_a_subject_that_passed_the_hook_by_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, "The first one says what changes")
    assert subjects.main(tmp_path) == 0
    commit(tmp_path, "x" * 73)
    commit(tmp_path, "The last one does so too")
    assert subjects.main(tmp_path) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "x" * 73 in line
    assert line.endswith("; next: git commit --amend, or git rebase -i")


def test_older_commits_stay_as_they_are(tmp_path: Path) -> None:
    commit(tmp_path, "x" * 73)
    for number in range(subjects.NEWEST):
        commit(tmp_path, f"Change {number}")
    assert subjects.main(tmp_path) == 0


def test_an_archive_has_no_history(tmp_path: Path) -> None:
    assert subjects.main(tmp_path) == 0


def test_lint_asks() -> None:
    [recipe] = [line for line in (ROOT / "Makefile").read_text().splitlines() if "ruff check" in line]
    assert "python -m lakehouse.dev.subjects" in recipe


def commit(folder: Path, message: str) -> None:
    """Make a commit, and the repository where there is none."""
    own = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.hooksPath=/dev/null")
    for argv in (("init", "--quiet"), (*own, "commit", "--quiet", "--allow-empty", f"--message={message}")):
        subprocess.run(["git", *argv], cwd=folder, check=True)
