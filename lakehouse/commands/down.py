from lakehouse import commands, shared_options, verbs


@commands.command()
@shared_options.inventory
def command(inventory: str) -> None:
    """Remove the local nodes and their data."""
    verbs.down(inventory)
