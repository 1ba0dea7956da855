"""A stack that is to be smaller has nothing left of what it was, works, and keeps what was written."""

from __future__ import annotations

from contextlib import closing

import pytest

from lakehouse.local.compose import running
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.compose.labels import SERVICE_LABEL
from lakehouse.local.nodes import docker_api
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.trino import Trino
from tests.compose.conftest import BIRDS, ENV_FILE, connect, succeed, up

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

# What `make compose-up` says of images that are there: its phases, what it removes, and the addresses.
MOST_LINES = 30
IN_ORDER = "SELECT name, wings FROM {} ORDER BY name"


def services(meant: Settings) -> set[str]:
    with docker_api.connect() as client:
        return {found.labels[SERVICE_LABEL] for found in running.containers(client, meant)}


def flink(meant: Settings, query: str) -> None:
    address = f"http://127.0.0.1:{meant.values['FLINK_SQL_GATEWAY_PORT']}"
    with closing(Flink.connect(address)) as session:
        session.expect(query, BIRDS)


def trino(meant: Settings, query: str) -> None:
    Trino.connect(f"http://127.0.0.1:{meant.values['TRINO_HTTP_PORT']}", "trino").expect(query, BIRDS)


def spark(meant: Settings, query: str) -> None:
    spark = connect(meant)
    spark.expect(query, BIRDS)
    spark.session.stop()


def test_an_engine_runs_alone_and_the_core_stays(everything: Settings, birds: str) -> None:
    # The drill before this one may have left the core alone.
    up(everything)
    assert services(everything) == running.wanted(everything)
    # Flink runs already; the last is what the next file finds.
    for profile, ask in (("flink", flink), ("trino", trino), ("core", spark)):
        smaller = everything.with_values(COMPOSE_PROFILES=profile)
        said = succeed(
            "compose", "up", "--env-file", str(ENV_FILE), environment={"COMPOSE_PROFILES": profile}
        )
        assert f"sc://127.0.0.1:{smaller.values['SPARK_CONNECT_PORT']}" in said
        assert len(said.splitlines()) <= MOST_LINES, said
        assert services(smaller) == running.wanted(smaller)
        ask(smaller, IN_ORDER.format(birds))
