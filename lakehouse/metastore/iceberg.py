"""Commits of Iceberg, as the kit's metastore accepts them."""

from __future__ import annotations

from copy import copy
from typing import Any

LOCATION, PREVIOUS = "metadata_location", "previous_metadata_location"


def iceberg_requests(table: Any, current: Any) -> list[Any]:
    """Return the tables to alter to, in order, so that `current` becomes `table`, at whatever metadata it is.

    The metastore refuses metadata that does not name the current one as what it replaces
    (`GuardedStore.requireCurrent`). So the first request does; the second writes what the table has recorded.
    """
    location = (current.parameters or {}).get(LOCATION)
    parameters = table.parameters or {}
    if location is None or location in {parameters.get(LOCATION), parameters.get(PREVIOUS)}:
        return [table]
    commit = copy(table)
    commit.parameters = {**parameters, PREVIOUS: location}
    return [commit, table]
