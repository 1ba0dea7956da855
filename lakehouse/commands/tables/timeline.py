import sys
import time

import click

from lakehouse import commands, shared_options
from lakehouse.model import inventory as inventories
from lakehouse.model import placement
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Result
from lakehouse.remote import output
from lakehouse.tables import timeline
from lakehouse.terminal import printable
from plugins.module_utils.lakehouse.counting import counted


@commands.command(failure=commands.NOT_KNOWN, exclusive=[("at", "since"), ("at", "until")])
@click.argument("pattern", required=False, metavar="[DB.TABLE]")
@click.option("--since", metavar="TIME", help="commits since a time, or a duration such as 2h")
@click.option("--until", metavar="TIME", help="commits before a time")
@click.option("--at", metavar="TIME", help="the last commit of each table at a time")
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=50, help="number of commits")
@shared_options.limit(60.0)
@shared_options.as_json
@shared_options.inventory
def command(
    pattern: str | None,
    since: str | None,
    until: str | None,
    at: str | None,
    count: int,
    limit: float,
    as_json: bool,
    inventory: str,
) -> int:
    """List the commits of all tables, the newest last.

    In DB.TABLE, * stands for any letters. A TIME is that of the writer, such as 2026-11-28T14:05 (UTC).

    Exit code: 1 where a table cannot be read, a commit is abandoned or a subscriber does not answer, 2 where
    the timeline does not answer.
    """
    cluster = placement.read(inventories.load(inventory))
    moments = {"since_ms": since, "until_ms": until, "at_ms": at}
    request = {
        "pattern": pattern or "",
        "most": count,
        **{name: timeline.milliseconds(text) for name, text in moments.items() if text is not None},
    }
    reply = timeline.ask(cluster, request, limit)
    if not as_json:
        for commit in reversed(reply["commits"]) if at is None else reply["commits"]:
            sys.stdout.write(f"{printable(timeline.line(commit))}\n")
    noun = "table" if at else "commit"
    result = Result(
        verb="tables timeline",
        target=str(cluster.variable("lakehouse_cluster")),
        findings=tuple(timeline.findings(cluster, reply, time.time())),
        facts=(f"{counted(len(reply['commits']), noun)} shown",),
        hosts={},
        healthy_next=next_command("tables report", cluster.inventory.path),
        details=reply,
    )
    return output.end(result, as_json=as_json)
