"""`lakehouse catalog picture`: the last commits as a page for a browser."""

from __future__ import annotations

import argparse
from itertools import islice

from lakehouse.catalog import diff, names, objects
from lakehouse.catalog import text as screen
from lakehouse.errors import UsageError
from lakehouse.report import history
from lakehouse.report.history import Step
from ops.catalog.repository import end, opened


def main(arguments: argparse.Namespace) -> int:
    """Write the page; return 0."""
    if arguments.count < 1:
        raise UsageError(f"--count {arguments.count}: 1 or more")
    wanted = names.parse(arguments.name) if arguments.name else names.Name()
    with opened(arguments) as (store, target):
        entries = store.history(store.resolve("HEAD").id)
        chosen = objects.versions(store, entries, wanted) if arguments.name else entries
        steps = []
        for entry in reversed(list(islice(chosen, arguments.count))):
            parent = store.commit(entry.parents[0]) if entry.parents else None
            changes = list(diff.changes(store, parent.tree, entry.tree)) if parent else None
            steps.append(Step(entry, changes and [one for one in changes if wanted.holds(one.name)]))
        picture = history.draw(steps)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(history.render(target, picture), encoding="utf-8")
        facts = (
            screen.many(len(steps), "commit"),
            screen.many(len(picture.lines) + picture.left_out, "object"),
            str(arguments.out),
        )
        return end(arguments, "picture", target, facts, {"page": str(arguments.out)}, "catalog log")
