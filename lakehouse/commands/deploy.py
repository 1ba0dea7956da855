from lakehouse import commands, report, run, shared_options, verbs


@commands.command()
@shared_options.inventory
@shared_options.started
def command(inventory: str, started: float | None) -> int:
    """Deploy and verify a lakehouse on fresh machines."""
    phases = verbs.start(started)
    verbs.machines(phases, inventory)
    verbs.serve(phases, inventory)
    verbs.census(phases, inventory)
    return report.build(run.BUILD, verbs.bill().versions)
