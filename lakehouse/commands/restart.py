import click

from lakehouse import commands, shared_options
from lakehouse.rolling import restart, run
from lakehouse.shared_options import ChangeOptions


@commands.command()
@click.argument("service", default="all")
@click.option("--host", metavar="HOST", help="on this host only")
@shared_options.force("restart although blocks lack replicas; refused where data would be lost")
@shared_options.wait
@shared_options.change
def command(service: str, host: str | None, force: bool, wait: float, options: ChangeOptions) -> int:
    """Restart units one after the other, each behind a gate.

    SERVICE is a key of services.yml, such as datanode (default: all).
    """
    arguments = {"service": service, "host": host, "force": force, "wait": wait}
    return run.carry_out(options, restart.VERB, restart.prepare, arguments)
