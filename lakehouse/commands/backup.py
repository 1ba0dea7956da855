import json
import sys

import click

from lakehouse import commands, shared_options
from lakehouse.backup import create, inspection
from lakehouse.errors import UsageError
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Result
from lakehouse.rolling import run
from lakehouse.shared_options import ChangeOptions


@commands.command()
@click.argument("work", type=click.Choice(["run", "verify", "list"]), default="run")
@click.argument("backup", required=False)
@shared_options.change
def command(work: str, backup: str | None, options: ChangeOptions) -> int:
    """Make a backup, verify one without restoring it, or list all.

    BACKUP is the one to verify (default: the newest).
    """
    if work == "verify":
        return _show(inspection.verify(options.inventory, backup), as_json=options.as_json)
    if backup:
        raise UsageError(
            f"{backup}: a backup gets its name by itself", next_command("backup", options.inventory)
        )
    if work == "list":
        return _show(inspection.listed(options.inventory), as_json=options.as_json)
    return run.carry_out(options, create.VERB, create.prepare, {})


def _show(result: Result, *, as_json: bool) -> int:
    """Print findings and the last line, or all of it as JSON; return the exit code."""
    lines = [*map(str, result.worst), result.last_line]
    text = json.dumps(result.json()) if as_json else "\n".join(lines)
    sys.stdout.write(f"{text}\n")
    return int(result.outcome)
