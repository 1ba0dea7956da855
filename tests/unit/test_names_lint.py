"""`make lint` refuses new names of variables that say nothing; the recorded numbers only fall."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.dev import names
from lakehouse.run import ROOT


def a_checkout(folder: Path, text: str, record: str = "") -> Path:
    """Make a checkout of a program and the record."""
    for name, content in (("lakehouse/a.py", text), (names.NAME, record)):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "found, host = 1, 2",
        "for found in ():\n    pass",
        "[found for found in ()]",
        "if found := 1:\n    pass",
        "with open() as found:\n    pass",
    ],
)
def test_an_assignment_is_found_wherever_it_stands(text: str) -> None:
    assert [assignment.name for assignment in names.vague("a.py", text)] == ["found"]


@pytest.mark.parametrize("text", ["host = found", "self.found = 1", "missing_hosts = 1", "def found(): pass"])
def test_other_names_and_uses_are_none(text: str) -> None:
    assert not list(names.vague("a.py", text))


@pytest.mark.parametrize(
    ("text", "record", "message"),
    [
        ("found = 1", "lakehouse/a.py: 1\n", ""),
        ("found = 1", "", "lakehouse/a.py:1: the name 'found' says nothing"),
        ("found = 1\none = 2", "lakehouse/a.py: 1\n", "has 1 of 2 in this file); next: name what it is"),
        ("host = 1", "lakehouse/a.py: 1\n", "next: python -m lakehouse.dev.names --write"),
    ],
)
def test_a_number_only_falls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, record: str, message: str
) -> None:
    assert names.main([], a_checkout(tmp_path, text, record)) == bool(message)
    assert message in capsys.readouterr().err


def test_write_lowers_a_number_and_raises_none(tmp_path: Path) -> None:
    root = a_checkout(tmp_path, "found = 1", "lakehouse/a.py: 3\n")
    assert names.main(["--write"], root) == 0
    assert (root / names.NAME).read_text(encoding="utf-8") == "lakehouse/a.py: 1\n"
    (root / "lakehouse/a.py").write_text("found = 1\none = 2\n", encoding="utf-8")
    assert names.main(["--write"], root) == 1
    assert (root / names.NAME).read_text(encoding="utf-8") == "lakehouse/a.py: 1\n"


def test_the_record_is_that_of_this_checkout(capsys: pytest.CaptureFixture[str]) -> None:
    assert names.main([], ROOT) == 0, capsys.readouterr().err
