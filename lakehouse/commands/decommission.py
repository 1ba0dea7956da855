import click

from lakehouse import commands, shared_options
from lakehouse.errors import UsageError
from lakehouse.rolling import departure, offline, run
from lakehouse.shared_options import ChangeOptions


@commands.command()
@click.argument("node")
@click.option(
    "--drain",
    type=float,
    default=600.0,
    metavar="SECONDS",
    help="seconds in which executors of Spark may finish their work",
)
@click.option("--offline", "is_offline", is_flag=True, help="the host is down and will not come back")
@shared_options.force("remove it although blocks will lack replicas; refused where data would be lost")
@shared_options.wait
@shared_options.change
def command(
    node: str, drain: float, is_offline: bool, force: bool, wait: float, options: ChangeOptions
) -> int:
    """Remove a host from the cluster after its blocks have moved."""
    if force and not is_offline:
        raise UsageError(
            "--force is for a host that is offline",
            offline.give_up_command(node, options.inventory, "--force"),
        )
    arguments = {"node": node, "drain": drain, "wait": wait, "offline": is_offline, "force": force}
    return run.carry_out(options, departure.VERB, departure.prepare, arguments)
