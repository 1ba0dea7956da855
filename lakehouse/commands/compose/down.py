from pathlib import Path

import click

from lakehouse import commands, shared_options, verbs
from lakehouse.local.compose import dotenv


@commands.command()
@click.option("--volumes", is_flag=True, help="remove the data too")
@shared_options.env_file
def command(volumes: bool, env_file: Path | None) -> None:
    """Remove the containers and keep their data."""
    settings = dotenv.load(env_file)
    verbs.compose_down(settings, volumes=volumes)
    data = "its data, its passwords and its history went with it" if volumes else "its data stays"
    click.echo(f"{settings.project} is removed; {data}")
