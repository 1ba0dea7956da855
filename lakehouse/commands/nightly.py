from lakehouse import commands, shared_options, verbs


@commands.command()
@shared_options.started
def command(started: float | None) -> int:
    """Run both suites on docker compose, and keep the report."""
    return verbs.nightly(verbs.start(started))
