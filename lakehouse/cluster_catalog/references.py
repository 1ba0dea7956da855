"""Add, delete and list the tags or branches of a history."""

from __future__ import annotations

from lakehouse.catalog import text as screen
from lakehouse.cluster_catalog.repository import end, opened, say
from lakehouse.errors import UsageError
from lakehouse.shared_options import CatalogOptions


def edit(  # noqa: PLR0913, PLR0917 -- what the command line has
    verb: str, folder: str, name: str | None, commit: str, delete: str | None, options: CatalogOptions
) -> int:
    """Add a name to a commit, or delete one, and list all; return 0."""
    if delete and name:
        raise UsageError(f"{name} and --delete: one of them")
    writes = bool(delete or name)
    with opened(options, writes=writes) as (store, target):
        if writes:
            with store.locked():
                if delete:
                    store.references.remove(f"{folder}/{delete}")
                else:
                    store.references.add(f"{folder}/{name}", store.resolve(commit).id)
        names = store.references.names(folder)
        if not options.as_json:
            say(f"{label} {screen.entry(store.commit(number))}" for label, number in names.items())
        facts = (screen.many(len(names), "name"),)
        return end(options, verb, target, facts, {"names": names}, "catalog log")
