import click

from lakehouse import commands, nodes, shared_options


@commands.command()
@shared_options.inventory
def command(inventory: str) -> None:
    """List the local nodes."""
    for node in nodes.status(inventory):
        click.echo(node)
