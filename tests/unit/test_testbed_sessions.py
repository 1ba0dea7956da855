"""A session is opened where the endpoints say, and an engine that is not there skips who asks for it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from suites.testbed import sessions
from suites.testbed.endpoints import Endpoints

SPARK_ALONE = cast("Endpoints", SimpleNamespace(trino=None, flink=None))


@pytest.mark.parametrize(("engine", "opened"), [("trino", sessions.trino), ("flink", sessions.flink)])
def test_an_engine_that_is_not_there_skips_who_asks_for_it(
    engine: str, opened: Callable[[Endpoints], object]
) -> None:
    with pytest.raises(pytest.skip.Exception, match=f"^{engine} is not deployed$"):
        opened(SPARK_ALONE)


@pytest.mark.parametrize(("user", "asks"), [("", "presto"), ("ada", "ada")])
def test_trino_is_asked_by_its_own_user_or_by_whom_is_named(user: str, asks: str) -> None:
    trino = SimpleNamespace(http="http://10.1.0.1:8080")
    endpoints = cast("Endpoints", SimpleNamespace(trino=trino, users={"trino": "presto"}))
    session = sessions.trino(endpoints, user=user)
    assert (session.url, session.user) == ("http://10.1.0.1:8080", asks)
