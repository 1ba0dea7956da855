from pathlib import Path

import click

from lakehouse import commands, run, shared_options
from lakehouse.local import targets
from lakehouse.tables import features, risky


@commands.command()
@shared_options.target
@shared_options.inventory
def command(target: str, env_file: Path | None, inventory: str) -> int:
    """List tables with wrong results in another engine, or a shared location.

    Exit code: 1 if an engine would return wrong rows.
    """
    chosen = targets.choose(target, inventory, env_file)
    chosen.check()
    run.playbook("endpoints", chosen.inventory, environment=chosen.environment)
    findings = risky.find(run.BUILD / "endpoints.json")
    for line in risky.summary(findings):
        click.echo(line)
    return int(any(finding.risk.effect in features.SERIOUS for finding in findings))
