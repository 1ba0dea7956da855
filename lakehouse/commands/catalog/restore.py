from pathlib import Path

import click

from lakehouse import commands, shared_options
from lakehouse.cluster_catalog import restoring, targets
from lakehouse.rolling import run
from lakehouse.shared_options import CatalogOptions, ChangeOptions


@commands.command()
@click.argument("commit")
@click.argument("name", required=False)
@click.option("--drop", is_flag=True, help="drop objects that the commit does not have; files stay")
@click.option("--as", "new_name", metavar="NAME", help="restore a database as another one, on the same files")
@click.option(
    "--rewrite",
    "rules",
    metavar="FROM=TO",
    multiple=True,
    help="replace a prefix of locations, for files that were copied to another cluster",
)
@shared_options.target
@shared_options.store
@shared_options.change
def command(
    commit: str,
    name: str | None,
    drop: bool,
    new_name: str | None,
    rules: tuple[str, ...],
    target: str,
    env_file: Path | None,
    store: Path | None,
    options: ChangeOptions,
) -> int:
    """Restore the metastore, or a part of it, from a commit.

    COMMIT is an id, tag, branch or HEAD~2; NAME is db, db.table, db.table/partition or db.f() (default: all).
    Files stay as they are.
    """
    catalog_options = CatalogOptions(options.inventory, target, env_file)
    alternative = f".venv/bin/lakehouse catalog serve {commit} {targets.option(catalog_options)}"
    targets.only_machines(catalog_options, restoring.VERB, alternative)
    # `resume` may run in another folder.
    store_path = str(store.resolve()) if store else ""
    arguments = {
        "commit": commit, "name": name or "", "drop": drop, "store": store_path, "other": new_name or "",
        "rules": list(rules),
    }  # fmt: skip
    return run.carry_out(options, restoring.VERB, restoring.prepare, arguments)
