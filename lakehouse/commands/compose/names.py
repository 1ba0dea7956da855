from pathlib import Path

import click

from lakehouse import commands, shared_options, verbs
from lakehouse.local.compose import dotenv


@commands.command()
@click.option("--forget", is_flag=True, help="remove them")
@shared_options.env_file
def command(forget: bool, env_file: Path | None) -> None:
    """Add the names of the containers to /etc/hosts of this computer, or remove them."""
    verbs.compose_names(dotenv.load(env_file), forget=forget)
