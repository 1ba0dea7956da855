"""Two stacks under different names run at once, and neither sees what the other has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dotenv import dotenv_values

from lakehouse.compose import settings
from lakehouse.compose.settings import Settings
from smoke.lake import Lake
from tests.compose.conftest import ENV_FILE, connect, lakehouse

pytestmark = pytest.mark.cluster

# Where the ports of the second stack begin, counted from those of the first.
APART = 100
NAMESPACE = "iceberg.side_by_side"


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Settings]:
    """Another small stack, as a person starts one: a copy of the settings with other names and ports."""
    values = {
        name: str(int(value or 0) + APART) if name.endswith("_PORT") else value
        for name, value in dotenv_values(ENV_FILE).items()
    } | {"COMPOSE_PROJECT_NAME": "kit-test-second"}
    file = tmp_path / "second.env"
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()), encoding="utf-8")
    try:
        done = lakehouse("compose", "up", "--env-file", str(file))
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        yield settings.load(file, environment={})
    finally:
        done = lakehouse("compose", "down", "--volumes", "--env-file", str(file))
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def test_each_has_its_own_tables(lake: Lake, second: Settings) -> None:
    other = connect(second)
    try:
        for number, one in enumerate((lake, other)):
            one.sql(f"CREATE NAMESPACE {NAMESPACE}")
            one.sql(f"CREATE TABLE {NAMESPACE}.birds USING iceberg AS SELECT {number} AS stack")
        for number, one in enumerate((lake, other)):
            assert one.sql(f"TABLE {NAMESPACE}.birds") == [(number,)]
    finally:
        lake.sql(f"DROP TABLE IF EXISTS {NAMESPACE}.birds PURGE")
        lake.sql(f"DROP NAMESPACE IF EXISTS {NAMESPACE}")
        other.session.stop()
