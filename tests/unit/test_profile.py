"""A profile that was asked for once holds until another one is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lakehouse import run
from lakehouse.model import profile


@pytest.fixture(params=["inventory/local", "inventory/three-node"])
def mine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of an inventory whose state does not exist, and nothing set."""
    monkeypatch.delenv(profile.VARIABLE, raising=False)
    shutil.copytree(run.ROOT / request.param, tmp_path / "inventory/mine")
    return str(tmp_path / "inventory/mine")


def test_nothing_asked_and_nothing_kept_is_the_whole(mine: str) -> None:
    assert profile.remember(mine) is None
    assert profile.of(mine) == "full"
    assert not (Path(mine) / "../../.state").exists()


def test_a_run_without_a_word_keeps_the_small_one_and_says_so(
    mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(profile.VARIABLE, "core")
    assert profile.remember(mine) == "profile core instead of full, from now on"
    assert profile.remember(mine) is None
    # What `make` hands down where no PROFILE= is given.
    monkeypatch.setenv(profile.VARIABLE, "")
    assert profile.of(mine) == "core"
    assert profile.remember(mine) == "profile core, as before; PROFILE=full changes it"
    assert profile.of(f"{mine}/hosts.yml") == "core"


def test_a_change_is_asked_for(mine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    profile.remember(mine, "core")
    monkeypatch.setenv(profile.VARIABLE, "full")
    assert profile.of(mine) == "full"
    assert profile.remember(mine) == "profile full instead of core, from now on"
    monkeypatch.delenv(profile.VARIABLE)
    assert profile.of(mine) == "full"


def test_what_is_kept_is_for_its_owner_alone(mine: str) -> None:
    profile.remember(mine, "core")
    (kept,) = (Path(mine) / "../../.state").resolve().rglob("profile")
    assert kept.stat().st_mode & 0o777 == 0o600
