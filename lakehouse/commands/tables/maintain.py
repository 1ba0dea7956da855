import time

import click

from lakehouse import commands, shared_options
from lakehouse.errors import UsageError
from lakehouse.model import inventory as inventories
from lakehouse.model import placement
from lakehouse.remote import output
from lakehouse.tables import census_program, upkeep_program
from lakehouse.upkeep import policies


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("pattern", default="*.*")
@click.option("--dry-run", is_flag=True, help="show the plan and change nothing")
@click.option("--scan", is_flag=True, help="time a scan of each table before and after")
@shared_options.limit(6 * 3600.0)
@shared_options.as_json
@shared_options.inventory
def command(pattern: str, dry_run: bool, scan: bool, limit: float, as_json: bool, inventory: str) -> int:
    """Maintain tables by the policies of the inventory, the worst ones first.

    PATTERN selects tables, such as `sales.*`. A dry run plans from the last census; otherwise a census runs
    first. After `upkeep_minutes` no further action begins.

    Exit code: 1 if an action failed or was refused, 2 if the metastore or HDFS does not answer or another run
    is at work, 124 after the timeout.
    """
    if limit < 1:
        raise UsageError(f"--limit {limit:g}: seconds, 1 or more")
    if not policies.is_pattern(pattern):
        raise UsageError(f"{pattern}: a pattern of tables such as sales.orders, sales.* or *.*")
    start = time.monotonic()
    cluster = placement.read(inventories.load(inventory))
    verb = upkeep_program.PLAN if dry_run else upkeep_program.MAINTAIN
    program = upkeep_program.maintainer(cluster, verb, pattern, scan=scan)
    output.progress(f"{verb} on {program.host.name} as {program.account}")
    reply = census_program.run(program, limit)
    return output.end(upkeep_program.result(program, reply, time.monotonic() - start), as_json=as_json)
