from concurrent.futures import ThreadPoolExecutor

import click

from lakehouse import commands, shared_options
from lakehouse.catalog import objects, readable
from lakehouse.catalog import text as screen
from lakehouse.catalog.names import Name
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.cluster_catalog import targets
from lakehouse.cluster_catalog.repository import end, opened, say
from lakehouse.outcome import Finding, Outcome
from lakehouse.shared_options import CatalogOptions

_AT_ONCE = 16


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("commit", default="HEAD")
@click.argument("name", required=False)
@shared_options.catalog
def command(commit: str, name: str | None, options: CatalogOptions) -> int:
    """List tables of a commit with missing files.

    COMMIT is an id, tag or branch; NAME is db or db.table (default: all).

    Exit code: 1 if files are missing, 2 if they cannot be checked.
    """
    with opened(options) as (store, target):
        entry = store.resolve(commit)
        scope = objects.resolve(store, entry, name)[0] if name else Name()
        tables = list(SnapshotReader(store, entry.tree).tables_in(scope))
    chosen = targets.choose(options)
    files = chosen.files()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        reasons = list(pool.map(lambda table: readable.why_unreadable(table[1], files), tables))
    findings = tuple(
        Finding("catalog.lost", Outcome.DEGRADED, str(table), why, chosen.recover)
        for (table, _), why in zip(tables, reasons, strict=True)
        if why
    )
    if not options.as_json:
        say(map(str, findings))
    facts = (entry.short, screen.many(len(tables), "table"), f"{len(findings)} lost")
    return end(
        options, "check", target, facts, {"commit": entry.id}, f"catalog serve {entry.short}", findings
    )
