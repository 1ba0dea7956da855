import time
from contextlib import closing

import click

from lakehouse import commands, shared_options
from lakehouse.remote.probing import Prober

# From the start of the command to its last line.
LIMIT_SECONDS = 15.0


@commands.command(failure=commands.NOT_KNOWN)
@shared_options.as_json
@click.option("--export", is_flag=True, help="write the counts of findings for Prometheus")
@shared_options.inventory
def command(as_json: bool, export: bool, inventory: str) -> int:
    """List faults, a line each with the command to run next.

    Exit code: 1 for warnings, 2 for errors and for facts that hosts do not report.
    """
    began = time.monotonic()
    with closing(Prober()) as prober:
        # Ansible takes a second to load, in which the worker loads pyinfra.
        from lakehouse.doctor import look  # noqa: PLC0415

        answers = look.look(prober, inventory, began + LIMIT_SECONDS)
    return look.show(answers, began, as_json=as_json, to_prometheus=export)
