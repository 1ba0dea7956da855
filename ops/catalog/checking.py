"""`lakehouse catalog check`: which tables of a commit can no longer be read as they were."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor

from lakehouse.catalog import objects, readable
from lakehouse.catalog import text as screen
from lakehouse.catalog.names import Name
from lakehouse.catalog.snapshot_reader import Past
from ops.catalog import targets
from ops.catalog.repository import end, opened, say
from ops.outcome import Finding, Outcome

_AT_ONCE = 16


def main(arguments: argparse.Namespace) -> int:
    """Look for the files of a commit's tables; return 0, 1 if any are gone, 2 if it could not look."""
    with opened(arguments) as (store, target):
        entry = store.resolve(arguments.commit)
        wanted = objects.found(store, entry, arguments.name)[0] if arguments.name else Name()
        found = list(Past(store, entry.tree).every(wanted))
    chosen = targets.choose(arguments)
    files = chosen.files()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        lost = list(pool.map(lambda one: readable.lost(one[1], files), found))
    findings = tuple(
        Finding("catalog.lost", Outcome.DEGRADED, str(name), why, chosen.recover)
        for (name, _), why in zip(found, lost, strict=True)
        if why
    )
    if not arguments.json:
        say(map(str, findings))
    facts = (entry.short, screen.many(len(found), "table"), f"{len(findings)} lost")
    return end(
        arguments, "check", target, facts, {"commit": entry.id}, f"catalog serve {entry.short}", findings
    )
