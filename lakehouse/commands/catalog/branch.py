import click

from lakehouse import commands, shared_options
from lakehouse.cluster_catalog import references
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("name", required=False)
@click.argument("commit", default="HEAD")
@click.option("--delete", metavar="NAME", help="delete a branch; the commit stays")
@shared_options.catalog
def command(name: str | None, commit: str, delete: str | None, options: CatalogOptions) -> int:
    """Create a branch at a commit, delete one, or list all.

    Without NAME, all are listed.
    """
    return references.edit("branch", "heads", name, commit, delete, options)
