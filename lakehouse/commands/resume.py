import click

from lakehouse import commands, runs, shared_options
from lakehouse.model import inventory, placement
from lakehouse.rolling import journal, run
from lakehouse.shared_options import ChangeOptions


@commands.command()
@click.argument("name", metavar="[RUN]", required=False)
@shared_options.change
def command(name: str | None, options: ChangeOptions) -> int:
    """Continue an interrupted run.

    RUN is the id of a run, such as r17 (default: the last one).
    """
    cluster = placement.read(inventory.load(options.inventory))
    stopped = journal.find(run.folder(cluster), name, options.inventory)
    return run.carry_out(options, stopped.verb, runs.VERBS[stopped.verb], stopped.arguments, stopped)
