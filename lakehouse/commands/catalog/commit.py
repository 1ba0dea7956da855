import time
from contextlib import closing

import click

from lakehouse import commands, shared_options
from lakehouse.catalog import commits, diff
from lakehouse.catalog import text as screen
from lakehouse.catalog.names import Name
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Store
from lakehouse.cluster_catalog import committing, other_metastore, pinning, targets
from lakehouse.cluster_catalog.repository import say
from lakehouse.errors import UsageError
from lakehouse.model import inventory, placement
from lakehouse.outcome import Finding, Result
from lakehouse.remote import output
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN, exclusive=[("uri", "pin"), ("uri", "full")])
@shared_options.message
@shared_options.author
@click.option(
    "--pin",
    type=int,
    is_flag=False,
    flag_value=30,
    metavar="[DAYS]",
    help="protect snapshots of Iceberg tables from expiry, for 30 days or DAYS",
)
@click.option("--full", is_flag=True, help="read all objects, also those that have not changed")
@click.option("--from", "uri", metavar="URI", help="commit the catalog of another metastore to a branch")
@click.option("--to", "branch", metavar="BRANCH", show_default="from-<host>", help="branch of --from")
@shared_options.catalog
def command(
    message: str | None,
    author: str | None,
    pin: int | None,
    full: bool,
    uri: str | None,
    branch: str | None,
    options: CatalogOptions,
) -> int:
    """Commit the metastore as it is now.

    Exit code: 1 if objects are left out, 2 if the metastore cannot be read.
    """
    if uri:
        return other_metastore.commit(uri, branch, message, author, options)
    if branch:
        raise UsageError(f"--to {branch}: the branch for another metastore; --from thrift://... names it")
    began = time.monotonic()
    name = commits.author(author)
    if pin is not None and pin < 1:
        raise UsageError(f"--pin {pin}: days, 1 or more")
    if pin is not None:
        targets.only_machines(options, "--pin", "the same without it")
    chosen = targets.choose(options)
    unpinned: tuple[Finding, ...] = ()
    cluster = placement.read(inventory.load(options.inventory)) if pin is not None else None
    # Where nothing can be read, nothing is made.
    source = chosen.source()
    with closing(Store.made(options.store or chosen.place)) as store:
        if cluster and pin:
            overlay, built = commits.current(source, store)
            pinned = pinning.pin(cluster, SnapshotReader(overlay, built.tree).tables_in(Name()), pin)
        details = {"author": name, "message": message, "full": full}
        result = committing.commit(chosen, store, details, shared=not options.store)
        entry = store.commit(result["commit"])
        parent = store.commit(entry.parents[0]) if result["new"] and entry.parents else None
        changes = list(diff.changes(store, parent.tree, entry.tree)) if parent else []
        if cluster and pin:
            committed = SnapshotReader(store, entry.tree).tables_in(Name())
            unpinned = pinning.pin_rest(cluster, pinned, committed, pin)
    if not options.store:
        chosen.written()
    counts, event = result["counts"], result["event"]
    seconds = time.monotonic() - began
    if not options.as_json:
        say(map(screen.change, changes))
    word = "committed" if result["new"] else "unchanged since"
    return output.end(
        Result(
            verb="catalog commit",
            target=chosen.name,
            findings=(*targets.left_out(chosen, result["strangers"], result["unversioned"]), *unpinned),
            facts=(
                f"{word} {entry.short}",
                screen.many(counts["databases"], "database"),
                f"{screen.many(counts['tables'], 'table')} ({counts['read']} read)",
                screen.many(counts["partitions"], "partition"),
                f"event {event or 'none: no listener writes any'}",
                f"{screen.many(result['written'], 'object')} written",
                f"{seconds:.1f} s",
            ),
            hosts={},
            healthy_next=f".venv/bin/lakehouse catalog show {targets.option(options)}",
            details={
                "commit": entry.id,
                "identity": result["identity"],
                "changed": result["new"],
                "counts": counts,
                "event": event,
                "changes": [change.json() for change in changes],
                "seconds": round(seconds, 1),
            },
        ),
        as_json=options.as_json,
    )
