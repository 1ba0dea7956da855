import click

from lakehouse import commands, shared_options, verbs


@commands.command()
@click.option("--keep", is_flag=True, help="leave the cluster running")
@shared_options.cluster
@shared_options.inventory
@shared_options.started
def command(keep: bool, confirm: str | None, inventory: str, started: float | None) -> int:
    """Run linters, unit tests, and all tests of a cluster of their own."""
    return verbs.test(verbs.start(started), inventory, keep=keep, typed=confirm)
