import click

from lakehouse import commands, shared_options
from lakehouse.local import nodes


@commands.command()
@click.argument("cluster")
@shared_options.inventory
def command(cluster: str, inventory: str) -> None:
    """Take over the local nodes of another checkout.

    CLUSTER is the name of their cluster.
    """
    nodes.take_over(inventory, cluster, click.echo)
