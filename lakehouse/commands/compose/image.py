from pathlib import Path

from lakehouse import commands, shared_options, verbs
from lakehouse.local.compose import dotenv


@commands.command()
@shared_options.env_file
@shared_options.started
def command(env_file: Path | None, started: float | None) -> None:
    """Build the images."""
    verbs.compose_image(verbs.start(started), dotenv.load(env_file))
