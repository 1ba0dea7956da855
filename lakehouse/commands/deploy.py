from lakehouse import commands, shared_options, verbs


@commands.command()
@shared_options.inventory
@shared_options.started
def command(inventory: str, started: float | None) -> int:
    """Deploy and verify a lakehouse on fresh machines."""
    return verbs.deploy(verbs.start(started), inventory)
