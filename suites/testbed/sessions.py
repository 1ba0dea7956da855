"""The one way to open a session of an engine of a cluster; who asks for one that it lacks is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import pytest

from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.spark import Settings, Spark
from suites.testbed.engines.trino import Trino


def spark(endpoints: Endpoints, *, user: str = "", settings: Settings | None = None) -> Spark:
    """Open a session of the Spark Connect server, which must run; `user` is who the client says it is."""
    identity = f"/;user_id={user}" if user else ""
    return Spark.connect(f"{endpoints.spark.connect_url}{identity}", settings)


def trino(endpoints: Endpoints, *, user: str = "") -> Trino:
    """Open a session of Trino as a user; as Trino's own user unless one is named."""
    if endpoints.trino is None:
        not_deployed("trino")
    return Trino.connect(endpoints.trino.http, user or endpoints.users["trino"])


def flink(endpoints: Endpoints, *, properties: Mapping[str, str | None] | None = None) -> Flink:
    """Open a session of Flink's SQL gateway."""
    if endpoints.flink is None:
        not_deployed("flink")
    return Flink.connect(endpoints.flink.sql_gateway, properties=properties)


def not_deployed(engine: str) -> NoReturn:
    """Skip the test."""
    pytest.skip(f"{engine} is not deployed")
