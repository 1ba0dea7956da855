"""Commit the catalog of a cluster, or read its current state."""

from __future__ import annotations

import getpass
import re
import socket
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog import build, checksums, diff, hooks, source
from lakehouse.catalog import text as screen
from lakehouse.catalog.build import Built
from lakehouse.catalog.overlay import Batch, Overlay
from lakehouse.catalog.source import Source
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError, UsageError

_AUTHOR = re.compile(r"[^<>\n]+ <[^<>\n]*>")


@dataclass(frozen=True)
class CommitResult:
    """The commit that has the catalog, whether it is new, and how many objects were written."""

    entry: Entry
    new: bool
    built: Built
    written: int = 0

    def json(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "commit": self.entry.id,
            "new": self.new,
            "written": self.written,
            "identity": self.built.identity,
            "event": self.built.event,
            "counts": dict(self.built.counts),
            "strangers": [[stranger.name, stranger.why] for stranger in self.built.strangers],
            "unversioned": list(self.built.unversioned),
        }


def keep(
    catalog: Source, store: Store, *, author: str, message: str | None = None, full: bool = False
) -> CommitResult:
    """Commit the current catalog, or return the last commit if nothing has changed. `store` is locked."""
    parent = store.head()
    batch = Batch(store)
    base = None if full or not parent else checksums.base(store, parent)
    built = source.read(catalog.ask, batch, base, catalog.versions)
    if parent and store.tree(parent.tree)[build.CATALOG] == built.identity:
        return CommitResult(parent, new=False, built=built)
    batch.flush()
    changes = list(diff.changes(store, parent.tree, built.tree)) if parent else []

    def details() -> dict[str, Any]:
        # All objects of the first commit are new: they are listed for a hook alone.
        all_changes = changes if parent else diff.changes(store, None, built.tree)
        return {
            "cluster": catalog.cluster,
            "author": author,
            "parent": parent.id if parent else None,
            "changes": [change.json() for change in all_changes],
        }

    hooks.run(store.path, hooks.PRE_COMMIT, details)
    summary = screen.summary(changes) or "the same in another form"
    subject = message or (summary if parent else "the first commit")
    # The retention goes by the time of commits, which must not decrease when the clock was set back.
    moment = max(int(built.about["time"]), parent.time if parent else 0)
    full_message = f"{subject}\n\n{_facts(built, catalog.cluster)}"
    commit = store.record(built.tree, parent, author, moment, full_message)
    checksums.keep(store, commit, built)
    try:
        hooks.run(store.path, hooks.POST_COMMIT, lambda: {**details(), "commit": commit.id})
    except LakehouseError as error:
        raise LakehouseError(f"commit {commit.short} is made; {error.message}", error.next_command) from None
    return CommitResult(commit, new=True, built=built, written=batch.written)


def current(catalog: Source, store: Store) -> tuple[Overlay, Built]:
    """Return the current catalog in memory, without a commit."""
    last, overlay = store.head(), Overlay(store)
    base = checksums.base(store, last) if last else None
    return overlay, source.read(catalog.ask, overlay, base, catalog.versions)


def author(option: str | None = None) -> str:
    """Return the author as git writes it, the current user by default; UsageError for an invalid name."""
    if option is None:
        return f"{getpass.getuser()} <{getpass.getuser()}@{socket.gethostname()}>"
    name = option if "<" in option else f"{option} <>"
    if not _AUTHOR.fullmatch(name):
        raise UsageError(f"--author {option}: as in 'Ann <ann@example.org>'")
    return name


def _facts(built: Built, cluster: str) -> str:
    """Return the end of a commit message: the cluster, and the state of its database."""
    lines = {
        "Cluster": cluster,
        "Catalog": built.identity,
        "Event": built.event or "none",
        "Snapshot": built.about["snapshot"],
        "Schema": built.about["schema"],
    }
    return "".join(f"{label}: {value}\n" for label, value in lines.items())
