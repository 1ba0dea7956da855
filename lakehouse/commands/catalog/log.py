from itertools import islice

import click

from lakehouse import commands, shared_options
from lakehouse.catalog import names, objects
from lakehouse.catalog import text as screen
from lakehouse.catalog.store import Store
from lakehouse.cluster_catalog.repository import document, end, opened, say
from lakehouse.errors import UsageError
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("name", required=False)
@click.option("-n", "--count", type=int, default=20, help="number of commits")
@click.option(
    "--branch",
    default="HEAD",
    show_default="main",
    metavar="BRANCH",
    help="branch, or the commit to start at",
)
@shared_options.catalog
def command(name: str | None, count: int, branch: str, options: CatalogOptions) -> int:
    """List commits, the newest first.

    NAME lists the commits of an object: db, db.table, db.table/partition or db.function().
    """
    if count < 1:
        raise UsageError(f"--count {count}: 1 or more")
    with opened(options) as (store, target):
        entries = store.history(store.resolve(branch).id)
        scope = names.parse(name) if name else None
        listed = list(islice(objects.versions(store, entries, scope) if scope else entries, count))
        if scope and not listed:
            raise UsageError(f"{scope} is in no commit of {store.path}")
        labels = _labels(store)
        if not options.as_json:
            say(screen.entry(entry, labels.get(entry.id, ())) for entry in listed)
        facts = (f"{screen.many(len(listed), 'commit')} shown", *([f"of {scope}"] if scope else []))
        details = {"commits": [document(entry, labels.get(entry.id, ())) for entry in listed]}
        return end(options, "log", target, facts, details, "catalog show")


def _labels(store: Store) -> dict[str, list[str]]:
    """Return the branches and tags of each commit, by its id."""
    labels: dict[str, list[str]] = {}
    for folder in ("heads", "tags"):
        for label, commit in store.references.names(folder).items():
            labels.setdefault(commit, []).append(label)
    return labels
