import click

from lakehouse import commands, shared_options
from lakehouse.rolling import joining, run
from lakehouse.shared_options import ChangeOptions


@commands.command()
@click.argument("node")
@click.option(
    "--bandwidth",
    type=click.IntRange(min=1),
    default=100,
    metavar="MIB",
    help="MiB/s that each DataNode may move to it",
)
@click.option("--no-balance", is_flag=True, help="move no blocks")
@shared_options.change
def command(node: str, bandwidth: int, no_balance: bool, options: ChangeOptions) -> int:
    """Add a host of the inventory to the cluster."""
    arguments = {"node": node, "balance": not no_balance, "bandwidth": bandwidth}
    return run.carry_out(options, joining.VERB, joining.prepare, arguments)
