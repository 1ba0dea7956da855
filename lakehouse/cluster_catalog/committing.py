"""Commit the catalog of a cluster: in the cluster's own history, if it has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse.catalog import commits
from lakehouse.catalog.store import Store
from lakehouse.cluster_catalog import sync
from lakehouse.cluster_catalog.targets import Target
from lakehouse.remote import output


def commit(target: Target, store: Store, request: Mapping[str, Any], *, shared: bool) -> dict[str, Any]:
    """Commit the current catalog, and return `CommitResult.json`; `store` has the commit at the end.

    `request` has `author`, `message` and `full`. With `shared` the repository is a copy of the cluster's
    history, if the cluster has one: then the commit is made there, by the program that the timer starts.
    """
    node = target.node if shared else None
    if node is None:
        with store.locked():
            return commits.keep(target.source(), store, **request).json()
    # An empty history on the cluster begins with the commits that this checkout has.
    sync.synchronize(store, node, output.progress)
    result = sync.call(node, "commit", request)
    sync.synchronize(store, node, output.progress)
    return result
