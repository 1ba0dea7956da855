"""What every fast test has: a state of its own, and no Docker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit import one_host


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a test has read of a cache out of the person's own state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture(autouse=True)
def _no_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no Docker answer, so that a test that asks one fails where there is one too."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-docker.sock")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> one_host.Host:
    """A host that runs the scripts of the lock."""
    return one_host.one(tmp_path, monkeypatch)
