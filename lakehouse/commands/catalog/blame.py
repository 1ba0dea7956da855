import click

from lakehouse import commands, shared_options
from lakehouse.catalog import objects
from lakehouse.catalog import text as screen
from lakehouse.cluster_catalog.repository import end, opened, say
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("name")
@click.argument("commit", default="HEAD")
@shared_options.catalog
def command(name: str, commit: str, options: CatalogOptions) -> int:
    """Show which commit set each value of an object.

    NAME is db, db.table or db.table/partition.
    """
    with opened(options) as (store, target):
        entry = store.resolve(commit)
        scope, _ = objects.resolve(store, entry, name)
        values = objects.blame(store, store.history(entry.id), scope)
        if not options.as_json:
            say(
                f"{origin.short} {screen.when(origin.time)} {field}: {screen.value(field, value)}"
                for field, value, origin in values
            )
        details = {
            "fields": [
                {
                    "field": field,
                    "value": value,
                    "commit": origin.id,
                    "time": origin.time,
                    "event": origin.facts.get("Event"),
                }
                for field, value, origin in values
            ]
        }
        facts = (str(scope), screen.many(len(values), "value"))
        return end(options, "blame", target, facts, details, "catalog log")
