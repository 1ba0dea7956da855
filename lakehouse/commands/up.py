from lakehouse import commands, shared_options, verbs


@commands.command()
@shared_options.inventory
def command(inventory: str) -> None:
    """Start the local nodes."""
    verbs.up(verbs.start(), inventory)
