"""A table goes back to older metadata by requests that the metastore accepts."""

from __future__ import annotations

import pytest
from hive_metastore.ttypes import Table

from lakehouse.metastore.iceberg import LOCATION, PREVIOUS, iceberg_requests


def table(location: str | None, previous: str | None = None) -> Table:
    parameters = {LOCATION: location, PREVIOUS: previous, "owner": "kit"}
    return Table(parameters={key: value for key, value in parameters.items() if value is not None})


def accepted(current: Table, request: Table) -> bool:
    """Decide as the metastore does."""
    location = current.parameters.get(LOCATION)
    return location in {None, request.parameters.get(LOCATION), request.parameters.get(PREVIOUS)}


@pytest.mark.parametrize("wanted", [("v1", None), ("v2", "v1"), ("v3", "v2"), ("v4", "v3"), (None, None)])
@pytest.mark.parametrize("now", [("v3", "v2"), (None, None)])
def test_each_request_is_accepted_and_the_last_is_the_table(
    wanted: tuple[str | None, str | None], now: tuple[str | None, str | None]
) -> None:
    current, goal = table(*now), table(*wanted)
    requests = iceberg_requests(goal, current)
    for request in requests:
        assert accepted(current, request) or wanted == (None, None) == now
        current = request
    assert requests[-1] is goal


def test_a_request_for_a_table_without_metadata_is_sent_once() -> None:
    assert len(iceberg_requests(table(None), table(None))) == 1
    assert len(iceberg_requests(table("v2", "v1"), table("v1"))) == 1
