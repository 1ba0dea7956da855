"""The lists of DataNodes that the NameNode tells in its bean NameNodeInfo, by host. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LIVE, DEAD, LEAVING = "LiveNodes", "DeadNodes", "DecomNodes"
# As dfs.namenode.stale.datanode.interval; the NameNode counts one as dead only after some minutes.
STALE_SECONDS = 15


def members(bean: Mapping[str, Any], *lists: str) -> dict[str, dict[str, Any]]:
    """Return the row of each host; of one that is in several of the lists that of the last."""
    return {host(place): row for name in lists for place, row in json.loads(bean[name]).items()}


def unheard(bean: Mapping[str, Any]) -> frozenset[str]:
    """Return the DataNodes that are dead or of which the NameNode has not heard for STALE_SECONDS.

    One that it does not know yet is not among them.
    """
    live = members(bean, LIVE)
    silent = {name for name, row in live.items() if int(row["lastContact"]) >= STALE_SECONDS}
    return frozenset(silent | (members(bean, DEAD).keys() - live.keys()))


def host(place: str) -> str:
    """Return the host of a place such as `node1:9866`."""
    return place.rpartition(":")[0] or place
