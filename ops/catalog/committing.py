"""Keeps the catalog of a cluster as a commit: where the cluster has a history of its own, there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse.catalog import commits
from lakehouse.catalog.store import Store
from ops import output
from ops.catalog import sync as sharing
from ops.catalog.targets import Target


def commit(target: Target, store: Store, asked: Mapping[str, Any], *, shared: bool) -> dict[str, Any]:
    """Return what `Kept.json` says of the commit with the catalog as it is now, which `store` has at the end.

    `asked` is `author`, `message` and `full`. With `shared` the repository is a copy of the cluster's
    history, if the cluster has one: then the commit is made there, by the program that the timer starts.
    """
    node = target.node if shared else None
    if node is None:
        with store.locked():
            return commits.keep(target.source(), store, **asked).json()
    # What this checkout has from before the timer is the beginning, where no commit was made yet.
    sharing.synchronize(store, node, output.progress)
    kept = sharing.told(node, "commit", asked)
    sharing.synchronize(store, node, output.progress)
    return kept
