from lakehouse import commands, verbs


@commands.command()
def command() -> None:
    """Fill the cache."""
    verbs.fetch(verbs.start())
