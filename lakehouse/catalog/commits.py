"""Keeps the catalog of a cluster as a commit, or reads it as it is now."""

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
class Kept:
    """The commit that has the catalog, whether it is a new one, and how much was written."""

    entry: Entry
    new: bool
    built: Built
    written: int = 0

    def json(self) -> dict[str, Any]:
        """For the caller, which may be another machine."""
        return {
            "commit": self.entry.id,
            "new": self.new,
            "written": self.written,
            "identity": self.built.identity,
            "event": self.built.event,
            "counts": dict(self.built.counts),
            "strangers": [[one.where, one.what] for one in self.built.strangers],
            "unversioned": list(self.built.unversioned),
        }


def keep(asked: Source, store: Store, *, author: str, message: str | None = None, full: bool = False) -> Kept:
    """Return the commit with the catalog as it is now; a new one where it has changed. `store` is locked."""
    parent = store.head()
    batch = Batch(store)
    base = None if full or not parent else checksums.base(store, parent)
    built = source.read(asked.ask, batch, base, asked.versions)
    if parent and store.tree(parent.tree)[build.CATALOG] == built.identity:
        return Kept(parent, new=False, built=built)
    batch.flush()
    found = list(diff.changes(store, parent.tree, built.tree)) if parent else []

    def about() -> dict[str, Any]:
        # Of the first commit everything is new, and no person is shown that.
        every = found if parent else diff.changes(store, None, built.tree)
        return {
            "cluster": asked.cluster,
            "author": author,
            "parent": parent.id if parent else None,
            "changes": [one.json() for one in every],
        }

    hooks.run(store.path, hooks.PRE_COMMIT, about)
    told = screen.summary(found) or "the same in another form"
    said = f"{message or (told if parent else 'the first commit')}\n\n{_facts(built, asked.cluster)}"
    # The clock may have been set back since: what is kept, and for how long, goes by the time of commits.
    moment = max(int(built.about["time"]), parent.time if parent else 0)
    made = store.record(built.tree, parent, author, moment, said)
    checksums.keep(store, made, built)
    try:
        hooks.run(store.path, hooks.POST_COMMIT, lambda: {**about(), "commit": made.id})
    except LakehouseError as error:
        raise LakehouseError(f"commit {made.short} is made; {error.message}", error.next_command) from None
    return Kept(made, new=True, built=built, written=batch.written)


def now(asked: Source, store: Store) -> tuple[Overlay, Built]:
    """Return the catalog as it is now, of which nothing is kept."""
    last, overlay = store.head(), Overlay(store)
    base = checksums.base(store, last) if last else None
    return overlay, source.read(asked.ask, overlay, base, asked.versions)


def author(given: str | None = None) -> str:
    """Return who commits, as git writes it; UsageError for what is no such name."""
    if given is None:
        return f"{getpass.getuser()} <{getpass.getuser()}@{socket.gethostname()}>"
    found = given if "<" in given else f"{given} <>"
    if not _AUTHOR.fullmatch(found):
        raise UsageError(f"--author {given}: as in 'Ann <ann@example.org>'")
    return found


def _facts(built: Built, cluster: str) -> str:
    """Return the end of a message: what the commit corresponds to."""
    lines = {
        "Cluster": cluster,
        "Catalog": built.identity,
        "Event": built.event or "none",
        "Snapshot": built.about["snapshot"],
        "Schema": built.about["schema"],
    }
    return "".join(f"{word}: {value}\n" for word, value in lines.items())
