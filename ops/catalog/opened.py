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
from ops import tell
from ops.outcome import Finding, Result
from ops.status.placement import Cluster

_STORE = "catalog.git"


def path(arguments: argparse.Namespace, cluster: Cluster) -> Path:
    """Return where the repository of a cluster's catalog is."""
    if arguments.store:
        return Path(arguments.store)
    return state.folder(cluster.inventory.path, str(cluster.variable("lakehouse_cluster"))) / _STORE


@contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[tuple[Store, str]]:
    """Open the repository, for what is said of a cluster, or of a path."""
    if arguments.store:
        place, target = Path(arguments.store), str(arguments.store)
    else:
        known = inventory.load(arguments.inventory)
        target = str(known.hosts[0].variables["lakehouse_cluster"])
        place = state.folder(known.path, target) / _STORE
    with closing(Store(place)) as store:
        yield store, target


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
