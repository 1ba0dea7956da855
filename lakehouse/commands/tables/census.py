import time

import click

from lakehouse import commands, shared_options
from lakehouse.census.contents import LEVELS
from lakehouse.errors import UsageError
from lakehouse.model import inventory as inventories
from lakehouse.model import placement
from lakehouse.remote import output
from lakehouse.tables import census_program


@commands.command(failure=commands.NOT_KNOWN)
@click.option(
    "--level",
    type=click.Choice([level.lower() for level in LEVELS]),
    default=LEVELS[-1].lower(),
    help="deepest units to collect; deeper ones of earlier runs are removed",
)
@shared_options.limit(3600.0)
@shared_options.as_json
@shared_options.inventory
def command(level: str, limit: float, as_json: bool, inventory: str) -> int:
    """Write metadata units of all tables to lakehouse_meta.units.

    A table without a change is skipped.

    Exit code: 1 if a table cannot be described or the findings cannot be written, 2 if the metastore or HDFS
    does not answer or another census writes, 124 after the timeout.
    """
    if limit < 1:
        raise UsageError(f"--limit {limit:g}: seconds, 1 or more")
    start = time.monotonic()
    cluster = placement.read(inventories.load(inventory))
    program = census_program.collector(cluster, level.upper())
    output.progress(f"census on {program.host.name} as {program.account}")
    reply = census_program.run(program, limit)
    return output.end(census_program.result(program, reply, time.monotonic() - start), as_json=as_json)
