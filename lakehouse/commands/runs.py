import json
import sys

from lakehouse import commands, runs, shared_options
from lakehouse.model import inventory as inventories
from lakehouse.model import placement
from lakehouse.rolling import journal, run
from lakehouse.terminal import LINES, printable


@commands.command()
@shared_options.as_json
@shared_options.inventory
def command(as_json: bool, inventory: str) -> None:
    """List the runs of this machine, and their results."""
    cluster = placement.read(inventories.load(inventory))
    rows = journal.runs(run.folder(cluster))
    name = str(cluster.variable("lakehouse_cluster"))
    text = json.dumps(runs.document(name, rows)) if as_json else runs.screen(name, inventory, rows)
    sys.stdout.write(f"{printable(text, keep=LINES)}\n")
