"""The repository that a verb is about, and how such a verb ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from lakehouse import inventory, state
from lakehouse.catalog.store import Store
from lakehouse.errors import LakehouseError
from ops import tell
from ops.catalog import shared
from ops.outcome import Finding, Result
from ops.status import placement
from ops.status.placement import Cluster

_STORE = "catalog.git"


def path(arguments: argparse.Namespace, cluster: Cluster) -> Path:
    """Return where the repository of a cluster's catalog is."""
    return Path(arguments.store) if arguments.store else place(cluster)


def place(cluster: Cluster) -> Path:
    """Return where this checkout has the repository of a cluster's catalog."""
    return state.folder(cluster.inventory.path, str(cluster.variable("lakehouse_cluster"))) / _STORE


@contextmanager
def opened(arguments: argparse.Namespace, *, writes: bool = False) -> Iterator[tuple[Store, str]]:
    """Open the repository, for what is said of a cluster, or of a path.

    A copy of the cluster's own history has what that has; what is written is there at the end, too.
    """
    if arguments.store:
        with closing(Store(Path(arguments.store))) as store:
            yield store, str(arguments.store)
        return
    cluster = placement.read(inventory.load(arguments.inventory))
    with history(cluster, writes=writes) as store:
        yield store, str(cluster.variable("lakehouse_cluster"))


@contextmanager
def history(cluster: Cluster, *, writes: bool = False) -> Iterator[Store]:
    """Open the repository of a cluster that this checkout has."""
    node, where = shared.node(cluster), place(cluster)
    with closing(Store.made(where) if node else Store(where)) as store:
        if node:
            _current(store, node, needed=writes)
        yield store
        if node and writes:
            shared.synchronize(store, node, tell.progress)


def _current(store: Store, node: shared.Node, *, needed: bool) -> None:
    """Have a copy hold what the cluster's history holds; without it, what is here may be enough to read."""
    try:
        shared.synchronize(store, node, tell.progress)
    except LakehouseError as error:
        if needed or not store.head():
            raise
        tell.progress(f"DEGRADED catalog.copy {store.path} may be old: {error}")


def say(lines: Iterable[str]) -> None:
    """Print lines for people."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def command(arguments: argparse.Namespace, verb: str) -> str:
    """Return the command of a verb, about the same repository."""
    where = f"--store {arguments.store}" if arguments.store else f"-i {arguments.inventory}"
    return f".venv/bin/lakehouse {verb} {where}"


def end(  # noqa: PLR0913, PLR0917 -- what a last line has
    arguments: argparse.Namespace,
    verb: str,
    target: str,
    facts: tuple[str, ...],
    details: Mapping[str, Any],
    after: str,
    findings: tuple[Finding, ...] = (),
) -> int:
    """Say how a verb ended; return its exit code. `after` is the verb to run next."""
    result = Result(
        verb=f"catalog {verb}", target=target, findings=findings, facts=facts, hosts={},
        healthy_next=command(arguments, after), details=details,
    )  # fmt: skip
    return tell.end(result, as_json=arguments.json)
