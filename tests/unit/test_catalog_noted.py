"""What came of the last commit of the catalog is kept for status and doctor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakehouse.catalog.hosted.__main__ import _recorded
from lakehouse.errors import LakehouseError


def _read(path: Path) -> tuple[bool, str]:
    kept = json.loads(path.read_bytes())
    return kept["good"] is not None, kept["why"]


def _failed(path: Path, *, by_clock: bool) -> None:
    with pytest.raises(LakehouseError), _recorded(path, failures=by_clock):
        raise LakehouseError("no database answers")


def test_a_good_commit_of_a_person_makes_up_for_a_bad_one_by_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    _failed(path, by_clock=True)
    assert _read(path) == (False, "no database answers")
    with _recorded(path, failures=False):
        pass
    assert _read(path) == (True, "")


def test_a_bad_commit_of_a_person_is_theirs_alone(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    _failed(path, by_clock=False)
    assert not path.exists()
    with _recorded(path, failures=True):
        pass
    _failed(path, by_clock=False)
    assert _read(path) == (True, "")
