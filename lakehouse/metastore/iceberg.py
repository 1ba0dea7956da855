"""Commits of Iceberg, as the kit's metastore accepts them."""

from __future__ import annotations

from copy import copy
from typing import Any

LOCATION, PREVIOUS = "metadata_location", "previous_metadata_location"


def iceberg_requests(table: Any, current: Any) -> list[Any]:
    """Return the requests, in order, that alter the table `current` to `table`, whatever its metadata is.

    The metastore refuses metadata that does not name the current one as its predecessor
    (`GuardedStore.requireCurrent`). So the first request names it; the second writes the recorded one.
    """
    location = (current.parameters or {}).get(LOCATION)
    parameters = table.parameters or {}
    if location is None or location in {parameters.get(LOCATION), parameters.get(PREVIOUS)}:
        return [table]
    commit = copy(table)
    commit.parameters = {**parameters, PREVIOUS: location}
    return [commit, table]
