from pathlib import Path

import click

from lakehouse import artifacts, commands, run, shared_options, verbs
from lakehouse.artifacts.airgap import writing
from lakehouse.model import profile


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
    phases, materials, kind = verbs.start(started), verbs.bill(), profile.of(inventory)
    every = materials.components.items()
    names = [name for name, part in every if kind != profile.CORE or part.profile == profile.CORE]
    path = output or run.BUILD / f"lakehouse-{kind}.bundle.tar"
    with phases.phase("bundle"):
        line = writing.write(materials, names, artifacts.cache_dir(), path.absolute(), phases.log)
    phases.log(f"bundle: {line}; next: make lakehouse BUNDLE={path}")
