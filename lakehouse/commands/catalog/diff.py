import time

import click

from lakehouse import commands, shared_options
from lakehouse.catalog import commits, ddl, diff
from lakehouse.catalog import text as screen
from lakehouse.catalog.diff import Look
from lakehouse.cluster_catalog import targets
from lakehouse.cluster_catalog.repository import end, opened, say
from lakehouse.errors import UsageError
from lakehouse.outcome import Finding, Outcome
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN, exclusive=[("sql", "as_json")])
@click.argument("old", metavar="[A]", required=False)
@click.argument("new", metavar="[B]", required=False)
@click.option("--expect", metavar="COMMIT", help="exit with 1 if the metastore differs from this commit")
@click.option("--ignore", metavar="PATTERN", multiple=True, help="ignore parameters that match")
@shared_options.no_data
@click.option("--statistics", is_flag=True, help="compare statistics too")
@click.option("--sql", is_flag=True, help="print statements for Spark, where Spark has them")
@shared_options.catalog
def command(
    old: str | None,
    new: str | None,
    expect: str | None,
    ignore: tuple[str, ...],
    no_data: bool,
    statistics: bool,
    sql: bool,
    options: CatalogOptions,
) -> int:
    """Show changes between two commits, or a commit and the metastore.

    A is the last commit by default, B the metastore as it is now.

    Exit code: 1 if --expect differs, 2 if the metastore cannot be read.
    """
    began = time.monotonic()
    if expect and (old or new):
        raise UsageError("--expect compares a commit with the metastore; no other one")
    look = Look(ignore, not no_data, statistics)
    findings: tuple[Finding, ...] = ()
    with opened(options) as (store, target):
        before = store.resolve(expect or old or "HEAD")
        if new:
            after = store.resolve(new)
            changes = list(diff.changes(store, before.tree, after.tree, look))
            label = after.short
        else:
            chosen = targets.choose(options)
            overlay, built = commits.current(chosen.source(), store)
            changes = list(diff.changes(overlay, before.tree, built.tree, look))
            strangers = [[fault.name, fault.why] for fault in built.strangers]
            findings = targets.left_out(chosen, strangers, built.unversioned)
            label = "now"
    if expect and changes:
        next_command = f".venv/bin/lakehouse catalog diff {before.short} {targets.option(options)}"
        fact = f"{screen.summary(changes)} since {before.short}"
        findings = (*findings, Finding("catalog.drift", Outcome.DEGRADED, target, fact, next_command))
    if not options.as_json:
        say(ddl.statements(changes) if sql else map(screen.change, changes))
    facts = (
        f"{before.short} to {label}",
        screen.many(len(changes), "change"),
        f"{time.monotonic() - began:.1f} s",
    )
    details = {"from": before.id, "to": label, "changes": [change.json() for change in changes]}
    return end(options, "diff", target, facts, details, "catalog commit", findings)
