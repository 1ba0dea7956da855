"""Open the repository of the history; print the result of a command."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from lakehouse.catalog.store import COMMIT, Entry, Store
from lakehouse.cluster_catalog import sync, targets
from lakehouse.cluster_catalog.targets import Target
from lakehouse.errors import LakehouseError
from lakehouse.outcome import Finding, Result
from lakehouse.remote import output
from lakehouse.shared_options import CatalogOptions
from lakehouse.terminal import LINES, printable


@contextmanager
def opened(options: CatalogOptions, *, writes: bool = False) -> Iterator[tuple[Store, str]]:
    """Open the repository of a path, or of a cluster; give it with its name.

    A copy of the cluster's own history is synchronized before, and after writing.
    """
    first = command(options, "catalog commit")
    if options.store:
        with closing(Store(options.store, first)) as store:
            yield store, str(options.store)
        return
    chosen = targets.choose(options)
    with history(chosen, first, writes=writes) as store:
        yield store, chosen.name


@contextmanager
def history(chosen: Target, first: str = COMMIT, *, writes: bool = False) -> Iterator[Store]:
    """Open the repository of this checkout; `first` is the command that makes its first commit."""
    node, where = chosen.node, chosen.place
    with closing(Store.made(where) if node else Store(where, first)) as store:
        if node:
            _synchronize(store, node, required=writes)
        yield store
        if node and writes:
            sync.synchronize(store, node, output.progress)
        if writes:
            chosen.written()


def _synchronize(store: Store, node: sync.Node, *, required: bool) -> None:
    """Synchronize a copy with the cluster's history; unless `required`, an old copy is enough to read."""
    try:
        sync.synchronize(store, node, output.progress)
    except LakehouseError as error:
        if required or not store.head():
            raise
        output.progress(f"DEGRADED catalog.copy {store.path} may be old: {error}")


def say(lines: Iterable[str]) -> None:
    """Print lines; a terminal gets no control characters, a file or pipe the lines unchanged."""
    clean = sys.stdout.isatty()
    for line in lines:
        sys.stdout.write(f"{printable(line, keep=LINES) if clean else line}\n")
    sys.stdout.flush()


def command(options: CatalogOptions, verb: str) -> str:
    """Return the command of a verb for the same repository."""
    where = f"--store {options.store}" if options.store else targets.option(options)
    return f".venv/bin/lakehouse {verb} {where}"


def end(  # noqa: PLR0913, PLR0917 -- the parts of a result
    options: CatalogOptions,
    verb: str,
    target: str,
    facts: tuple[str, ...],
    details: Mapping[str, Any],
    after: str,
    findings: tuple[Finding, ...] = (),
) -> int:
    """Print the result of a verb; return its exit code. `after` is the verb to run next."""
    result = Result(
        verb=f"catalog {verb}", target=target, findings=findings, facts=facts, hosts={},
        healthy_next=command(options, after), details=details,
    )  # fmt: skip
    return output.end(result, as_json=options.as_json)


def document(entry: Entry, labels: Sequence[str]) -> dict[str, Any]:
    """Return a commit as JSON."""
    return {
        "id": entry.id, "parents": list(entry.parents), "author": entry.author, "time": entry.time,
        "message": entry.message, "facts": entry.facts, "names": list(labels),
    }  # fmt: skip
