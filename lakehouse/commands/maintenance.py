import time

import click

from lakehouse import commands, durations, shared_options
from lakehouse.errors import UsageError
from lakehouse.next_command import PROGRAM
from lakehouse.rolling import maintenance, run
from lakehouse.shared_options import ChangeOptions

_EXAMPLE = f"{PROGRAM} maintenance NODE --for 2h"


@commands.command(exclusive=[("duration", "end")])
@click.argument("node")
@click.option(
    "--for", "duration", metavar="TIME", help="stop the units of the host, for example for 30m or 2h"
)
@click.option("--end", is_flag=True, help="start them again")
@shared_options.wait
@shared_options.change
def command(node: str, duration: str | None, end: bool, wait: float, options: ChangeOptions) -> int:
    """Put a host into maintenance mode, or end it."""
    if not duration and not end:
        raise UsageError("--for or --end is required", _EXAMPLE)
    arguments = {
        "node": node,
        "end": end,
        "for": duration,
        "until": time.time() + seconds(duration) if duration else 0.0,
        "wait": wait,
    }
    return run.carry_out(options, maintenance.VERB, maintenance.prepare, arguments)


def seconds(text: str) -> float:
    """Read a time such as 30m, 2h or 1d; UsageError for other text."""
    if not (number := durations.seconds(text)):
        raise UsageError(f"--for {text} is no time", _EXAMPLE)
    return float(number)
