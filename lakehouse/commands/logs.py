import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence

import click

from lakehouse import commands, durations, shared_options
from lakehouse.errors import UsageError
from lakehouse.maybe import Answer
from lakehouse.model import inventory as inventories
from lakehouse.model import placement, selectors
from lakehouse.model.inventory import Host
from lakehouse.model.services import Service
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.remote import openssh, output
from lakehouse.remote.openssh import Line
from plugins.module_utils.lakehouse.counting import counted

VERB = "logs"
# Of reading a journal that is as large as it may become, on a busy machine.
LIMIT_SECONDS = 60.0
# Begins each line of the journal, in UTC and to the microsecond: such text sorts by time.
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:?\d\d")
# As `tail` shows them.
_FILE = re.compile(r"==> (.+) <==")


@commands.command(failure=commands.NOT_KNOWN, exclusive=[("as_json", "follow")])
@click.argument("service")
@click.option("--host", metavar="HOST", help="on this host only")
@click.option("--since", metavar="TIME", help="10m, 2h, 1d, or 2026-01-31T10:00 (UTC)")
@click.option("--lines", type=int, default=200, help="last lines of each host and file")
@click.option("--follow", is_flag=True, help="wait for new lines until Ctrl-C")
@shared_options.as_json
@shared_options.inventory
def command(
    service: str, host: str | None, since: str | None, lines: int, follow: bool, as_json: bool, inventory: str
) -> int:
    """Show the logs of a service on all its hosts, ordered by time.

    SERVICE is a key of services.yml, such as namenode.

    Exit code: 1 if a host does not answer, 2 if none does.
    """
    began = time.monotonic()
    if lines < 0:
        raise UsageError(f"--lines {lines}: a number that is not negative")
    row = selectors.service(service)
    start = instant(since) if since else None
    cluster = placement.read(inventories.load(inventory))
    chosen: Sequence[Host] = selectors.running(cluster, row)
    if host:
        chosen = (selectors.host(cluster, host, chosen),)
    names = [place.name for place in chosen]
    output.progress(f"{row.name}: {placement.unit(row)} on {', '.join(names)}")
    scripts = {place.name: script(place, row, start, lines, follow=follow) for place in chosen}
    collected, printed = output.CapturedLines(names), output.Lines(names)
    ended = openssh.run(scripts, chosen, printed if follow else collected, None if follow else LIMIT_SECONDS)
    short = cut(inventory, row.name, ended)
    texts = {name: collected.of(name, wrong=False) for name in names}
    if not as_json:
        for line in ordered(texts):
            printed(line)
    seconds, answered = time.monotonic() - began, sum(answer.known for answer in ended.values())
    ending = Result(
        verb=VERB,
        target=f"{row.name} of {cluster.variable('lakehouse_cluster')}",
        findings=(*output.silent(VERB, inventory, ended), *short),
        facts=(
            f"{answered - len(short)} of {counted(len(ended), 'host')} answered",
            counted(sum(map(len, texts.values())), "line"),
            f"{seconds:.1f} s",
        ),
        hosts={
            name: {"answered": answer.known, "why": answer.why, "lines": texts[name]}
            for name, answer in ended.items()
        },
        healthy_next=next_command("doctor", inventory),
        details={"unit": placement.unit(row), "seconds": round(seconds, 1)},
    )
    return output.end(ending, as_json=as_json)


def cut(path: str, service: str, ended: Mapping[str, Answer[int]]) -> tuple[Finding, ...]:
    """Return a finding for each host whose lines were cut off by the time that it had."""
    following = next_command(f"logs {service} --since 10m", path)
    fact = f"its lines were cut off after {LIMIT_SECONDS:g} s"
    return tuple(
        Finding(f"{VERB}.cut", Outcome.DEGRADED, host, fact, following)
        for host, answer in ended.items()
        if answer.value == openssh.TIMED_OUT
    )


def instant(text: str) -> str:
    """Return journalctl's word for a time: `10m` ago on the host's clock, or a date in UTC; or UsageError."""
    if (span := durations.seconds(text)) is not None:
        return f"-{span}s"
    if (moment := durations.moment(text)) is None:
        raise UsageError(f"--since {text}: such as 10m, 2h, 1d, 2026-01-31 or 2026-01-31T10:00 (UTC)")
    return f"@{moment.timestamp():.0f}"


def script(host: Host, service: Service, since: str | None, lines: int, *, follow: bool) -> str:
    """Return what shows the journal of a service's unit, and the last lines of its files if there are any.

    Of a file it is unknown when a line was written: `since` leaves those out that have not changed since.
    The service's account reads its own files: it may have linked one of them, or a folder, to root's.
    """
    unit = shlex.quote(f"{placement.unit(service)}.service")
    journal = f"journalctl --quiet --no-pager --utc --no-hostname -o short-iso-precise -n {lines} -u {unit}"
    journal += f" --since={shlex.quote(since)}" if since else ""
    newer = f" -newermt {shlex.quote(_dated(since))}" if since else ""
    globs = [shlex.quote(path).replace("*", "'*'") for path in placement.logs(service, host)]
    # A service's account names its files: any name is one word.
    files = f"find {' '.join(globs)} -maxdepth 0 -type f -size +0{newer} -print0 2>/dev/null | sort -z"
    if not globs:
        return f"exec {journal} --follow" if follow else f"exec {journal}"
    tail = f"tail -v -n {lines}"
    read = f"{files} | xargs -r -0 {tail} " + ("-F -- 2>/dev/null" if follow else "--")
    as_owner = shlex.join(["runuser", "-u", placement.account(service, host), "--", "sh", "-c", read])
    return f"cd /; {as_owner} & {journal} --follow; wait" if follow else f"cd /; {journal}; {as_owner}"


def _dated(since: str) -> str:
    """Return the same time in find's words."""
    return since if since.startswith("@") else f"{since[1:-1]} seconds ago"


def ordered(said: Mapping[str, Iterable[str]]) -> list[Line]:
    """Return the journals' lines of all hosts by time, and below them each host's files.

    What has no time of its own, such as a stack trace, stays below the line that it follows.
    """
    journal: list[tuple[str, Line]] = []
    files: list[Line] = []
    for host, lines in said.items():
        in_file, stamp = False, ""
        for text in lines:
            in_file = in_file or _FILE.fullmatch(text) is not None
            if not in_file:
                stamp = stamped[0] if (stamped := _STAMP.match(text)) else stamp
                journal.append((stamp, Line(host, text)))
            elif text:
                files.append(Line(host, text))
    return [line for _, line in sorted(journal, key=lambda pair: pair[0])] + files
