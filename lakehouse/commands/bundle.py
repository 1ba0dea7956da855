from pathlib import Path

import click

from lakehouse import commands, shared_options, verbs


@commands.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    show_default="build/lakehouse-<profile>.bundle.tar",
    help="file to write",
)
@shared_options.inventory
@shared_options.started
def command(output: Path | None, inventory: str, started: float | None) -> None:
    """Write a bundle for an installation without a network."""
    verbs.bundle(verbs.start(started), inventory, output)
