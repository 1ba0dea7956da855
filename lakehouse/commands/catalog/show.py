import json

import click

from lakehouse import commands, shared_options
from lakehouse.catalog import diff, objects
from lakehouse.catalog import text as screen
from lakehouse.cluster_catalog.repository import document, end, opened, say
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("commit", default="HEAD")
@click.argument("name", required=False)
@shared_options.catalog
def command(commit: str, name: str | None, options: CatalogOptions) -> int:
    """Show the changes of a commit, or an object in it.

    COMMIT is an id, tag, branch or HEAD~2; NAME is db, db.table, db.table/partition or db.function().
    """
    with opened(options) as (store, target):
        entry = store.resolve(commit)
        if name:
            scope, values = objects.resolve(store, entry, name)
            if not options.as_json:
                say([json.dumps(values, ensure_ascii=False, sort_keys=True, indent=2)])
            facts = (str(scope), f"in {entry.short}")
            return end(options, "show", target, facts, {"document": values}, "catalog log")
        parent = store.commit(entry.parents[0]) if entry.parents else None
        changes = list(diff.changes(store, parent.tree if parent else None, entry.tree))
        if not options.as_json:
            say([*screen.head(entry), *map(screen.change, changes)])
        details = {"commit": document(entry, ()), "changes": [change.json() for change in changes]}
        facts = (entry.short, screen.many(len(changes), "change"))
        return end(options, "show", target, facts, details, "catalog log")
