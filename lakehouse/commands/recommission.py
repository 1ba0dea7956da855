import click

from lakehouse import commands, shared_options
from lakehouse.rolling import departure, run
from lakehouse.shared_options import ChangeOptions


@commands.command()
@click.argument("node")
@shared_options.change
def command(node: str, options: ChangeOptions) -> int:
    """Return a decommissioned host to the cluster."""
    return run.carry_out(options, departure.BACK, departure.prepare_back, {"node": node})
