from pathlib import Path

import click

from lakehouse import commands, report, run, shared_options, verbs
from lakehouse.local import targets


@commands.command()
@click.argument("selection", metavar="[PYTEST ARGUMENTS]...", nargs=-1)
@shared_options.target
@shared_options.inventory
@shared_options.started
def command(
    selection: tuple[str, ...], target: str, env_file: Path | None, inventory: str, started: float | None
) -> int:
    """Run every engine on every table format and write the report."""
    phases, chosen = verbs.start(started), targets.choose(target, inventory, env_file)
    chosen.check()
    verbs.matrix(phases, chosen.inventory, *selection, environment=chosen.environment)
    return report.build(run.BUILD, verbs.bill().versions)
