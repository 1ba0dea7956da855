import time
from contextlib import closing

import click

from lakehouse import commands, shared_options
from lakehouse.remote.probing import Prober

# From the start of the command to its last line.
LIMIT_SECONDS = 5.0


@commands.command(failure=commands.NOT_KNOWN)
@click.option(
    "--watch",
    type=float,
    is_flag=False,
    flag_value=5.0,
    metavar="[SECONDS]",
    help="repeat until Ctrl-C, by default every 5 seconds",
)
@shared_options.as_json
@shared_options.inventory
def command(watch: float | None, as_json: bool, inventory: str) -> int:
    """Show units, storage and faults of a cluster.

    Exit code: 1 for a fault, 2 for an outage or if no host answers.
    """
    while True:
        began = time.monotonic()
        with closing(Prober()) as prober:
            # Ansible takes a second to load, in which the worker loads pyinfra.
            from lakehouse.status import look  # noqa: PLC0415

            status = look.look(prober, inventory, began + LIMIT_SECONDS)
        code = look.show(status, began, as_json=as_json, clear=bool(watch))
        if not watch:
            return code
        time.sleep(max(0.0, began + watch - time.monotonic()))
