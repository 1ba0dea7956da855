"""A stack that is to be smaller has nothing left of what it was, and keeps what was written."""

from __future__ import annotations

import pytest

from lakehouse.compose import running
from lakehouse.compose.labels import SERVICE_LABEL
from lakehouse.compose.settings import Settings
from lakehouse.nodes import engine
from tests.compose.conftest import ENV_FILE, succeed

pytestmark = pytest.mark.cluster


def services(meant: Settings) -> set[str]:
    with engine.connect() as client:
        return {found.labels[SERVICE_LABEL] for found in running.containers(client, meant)}


def test_the_engines_go_and_the_core_stays(everything: Settings, core: Settings) -> None:
    assert services(everything) == running.wanted(everything)
    succeed("compose", "up", "--env-file", str(ENV_FILE))
    assert services(core) == running.wanted(core)
