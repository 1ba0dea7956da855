"""The stack of docker compose that these tests share, under names and ports of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lakehouse import run
from lakehouse.compose import settings, stack
from lakehouse.compose.settings import Settings
from smoke import waiting
from smoke.lake import Lake

ENV_FILE = Path(__file__).with_name("test.env")
EVIDENCE_LINES = "15"


def compose(meant: Settings, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run docker compose; fail with what it and the containers said."""
    variables = {**os.environ, **meant.values, **(environment or {})}
    done = subprocess.run(
        stack.compose(meant, *arguments), capture_output=True, text=True, check=False, env=variables
    )
    if done.returncode:
        logs = subprocess.run(
            stack.compose(meant, "logs", "--tail", EVIDENCE_LINES),
            capture_output=True,
            text=True,
            check=False,
            env=variables,
        )
        pytest.fail(f"docker compose {' '.join(arguments)}:\n{done.stdout}{done.stderr}\n{logs.stdout}")
    return done.stdout


def up(meant: Settings) -> None:
    """Start what does not run, and wait until every service has answered."""
    compose(meant, "up", "--detach", "--wait")


def connect(meant: Settings) -> Lake:
    """A new session with the stack's Spark, as a person on this computer opens it."""

    def first_answer() -> Lake:
        lake = Lake.connect(f"sc://127.0.0.1:{meant.values['SPARK_CONNECT_PORT']}")
        lake.sql("SELECT 1")
        return lake

    return waiting.wait_for("a first query", first_answer, seconds=90, ignoring=(Exception,))


@pytest.fixture(scope="session")
def meant() -> Settings:
    return settings.load(ENV_FILE, environment={})


@pytest.fixture(scope="session")
def _rendered(meant: Settings) -> None:
    if not (meant.rendered / "namenode").is_dir():
        pytest.exit(
            "the stack kit-test was never rendered; next: make compose-up ENV_FILE=tests/compose/test.env", 1
        )


@pytest.fixture(scope="session")
def core(meant: Settings, _rendered: None) -> Iterator[Settings]:
    """The small stack, which runs."""
    up(meant)
    yield meant
    if os.environ.get("CI"):
        compose(meant, "--profile", "*", "down", "--volumes", "--remove-orphans")


@pytest.fixture
def lake(core: Settings) -> Iterator[Lake]:
    lake = connect(core)
    yield lake
    lake.session.stop()


@pytest.fixture(scope="session")
def everything(core: Settings) -> Settings:
    """The same stack with all engines and the client."""
    complete = core.with_values(COMPOSE_PROFILES="all")
    up(complete)
    return complete


def lakehouse(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the kit's program as a person would."""
    return subprocess.run(
        [run.program("lakehouse"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=run.ROOT,
        env={**surroundings(), **(environment or {})},
    )


def surroundings() -> dict[str, str]:
    """The environment without what would be a setting: it would win, and mean a person's own stack."""
    own = {*settings.load(environment={}).values, settings.DATANODES_VARIABLE}
    return {name: value for name, value in os.environ.items() if name not in own}
