import click

from lakehouse import commands, shared_options
from lakehouse.local import nodes


@commands.command()
@shared_options.inventory
def command(inventory: str) -> None:
    """List the local nodes."""
    for node in nodes.status(inventory):
        click.echo(node)
