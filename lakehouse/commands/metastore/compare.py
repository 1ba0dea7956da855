import click

from lakehouse import commands, shared_options
from lakehouse.catalog.diff import Look
from lakehouse.cluster_catalog import other_metastore
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("uri", metavar="URI")
@click.option("--commit", metavar="COMMIT", help="compare a commit of the history, not the metastore")
@click.option("--ignore", metavar="PATTERN", multiple=True, help="ignore parameters that match")
@shared_options.no_data
@shared_options.catalog
def command(
    uri: str, commit: str | None, ignore: tuple[str, ...], no_data: bool, options: CatalogOptions
) -> int:
    """Show differences between the metastore and another one.

    URI is the other one's address, such as thrift://node1:9083; it is only read, by Thrift.

    Exit code: 1 if there are differences, 2 if a metastore cannot be read.
    """
    return other_metastore.compare(uri, commit, Look(ignore, data=not no_data), options)
