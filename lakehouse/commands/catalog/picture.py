from itertools import islice
from pathlib import Path

import click

from lakehouse import commands, shared_options
from lakehouse.catalog import diff, names, objects
from lakehouse.catalog import text as screen
from lakehouse.cluster_catalog.repository import end, opened
from lakehouse.errors import UsageError
from lakehouse.report import history
from lakehouse.report.history import Step
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("name", required=False)
@click.option("-n", "--count", type=int, default=40, help="number of commits")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("build/report/history.html"), help="file to write"
)
@shared_options.catalog
def command(name: str | None, count: int, out: Path, options: CatalogOptions) -> int:
    """Draw which commit changed which table, as a page for a browser.

    NAME is a database or a table (default: all).
    """
    if count < 1:
        raise UsageError(f"--count {count}: 1 or more")
    scope = names.parse(name) if name else names.Name()
    with opened(options) as (store, target):
        entries = store.history(store.resolve("HEAD").id)
        chosen = objects.versions(store, entries, scope) if name else entries
        steps = []
        for entry in reversed(list(islice(chosen, count))):
            parent = store.commit(entry.parents[0]) if entry.parents else None
            changes = list(diff.changes(store, parent.tree, entry.tree)) if parent else None
            steps.append(Step(entry, changes and [change for change in changes if scope.holds(change.name)]))
        picture = history.draw(steps)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(history.render(target, picture), encoding="utf-8")
        facts = (
            screen.many(len(steps), "commit"),
            screen.many(len(picture.lines) + picture.hidden, "object"),
            str(out),
        )
        return end(options, "picture", target, facts, {"page": str(out)}, "catalog log")
