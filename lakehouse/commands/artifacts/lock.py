import click

from lakehouse import artifacts, commands, run, shared_options
from lakehouse.artifacts import lock


@commands.command()
@shared_options.bill
def command(bill: str) -> None:
    """Resolve and record the checksum of every file."""
    lock.lock(run.ROOT / bill, artifacts.cache_dir(), click.echo, root=run.ROOT)
