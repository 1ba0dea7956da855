import time
from pathlib import Path

import click

from lakehouse import commands, shared_options
from lakehouse.census.report import Limits
from lakehouse.errors import UsageError
from lakehouse.model import inventory as inventories
from lakehouse.model import placement
from lakehouse.remote import output
from lakehouse.tables import census_page, census_program


@commands.command(failure=commands.NOT_KNOWN)
@click.option("--idle-days", type=click.IntRange(1), default=Limits.idle_days, help="days without a commit")
@click.option("--out", type=click.Path(path_type=Path), help="write a page for a browser into this file")
@shared_options.limit(600.0)
@shared_options.as_json
@shared_options.inventory
def command(idle_days: int, out: Path | None, limit: float, as_json: bool, inventory: str) -> int:
    """Report tables that need work, from the units of the last census.

    Each finding has its files and bytes, and the command that fixes it.

    Exit code: 1 for a finding of severity warning, 2 if the units cannot be read, 124 after the timeout.
    """
    if limit < 1:
        raise UsageError(f"--limit {limit:g}: seconds, 1 or more")
    start = time.monotonic()
    program = census_program.reporter(placement.read(inventories.load(inventory)), idle_days)
    output.progress(f"report on {program.host.name} as {program.account}")
    reply = census_program.run(program, limit)
    if out and census_program.is_whole(program, reply):
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(census_page.render(program, reply.document), encoding="utf-8")
        output.progress(str(out))
    return output.end(census_program.result(program, reply, time.monotonic() - start), as_json=as_json)
