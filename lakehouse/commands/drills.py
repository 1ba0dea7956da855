import click

from lakehouse import commands, shared_options, verbs


@commands.command()
@click.argument("names", metavar="[DRILL]...", nargs=-1)
@shared_options.cluster
@shared_options.inventory
@shared_options.started
def command(names: tuple[str, ...], confirm: str | None, inventory: str, started: float | None) -> int:
    """Run long tests that stop hosts of a cluster of their own.

    DRILL is a name of docs/drills.md, with _ for spaces, or due: those with changed tests (default: all).
    """
    return verbs.drill(verbs.start(started), inventory, names, confirm)
