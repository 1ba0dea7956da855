"""The verb `logs`: what a service says on every host of it, in the order of time."""

from __future__ import annotations

import argparse
import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from lakehouse import inventory
from lakehouse.errors import UsageError
from lakehouse.inventory import Host
from lakehouse.next_command import command
from lakehouse.services import Service
from ops import durations, output, remote, selectors
from ops.maybe import Answer
from ops.outcome import Finding, Outcome, Result
from ops.remote import Line
from ops.status import placement
from plugins.module_utils.lakehouse.counting import counted

VERB = "logs"
# Of reading a journal that is as large as it may become, on a busy machine.
LIMIT_SECONDS = 60.0
# Begins each line of the journal, in UTC and to the microsecond: such text sorts by time.
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:?\d\d")
# As `tail` shows them.
_FILE = re.compile(r"==> (.+) <==")


def main(arguments: argparse.Namespace) -> int:
    """Show the lines; return 0, 1 if a host was silent, 2 if all were. With `follow` only Ctrl-C ends it."""
    began = time.monotonic()
    if arguments.lines < 0:
        raise UsageError(f"--lines {arguments.lines}: a number that is not negative")
    wanted = selectors.service(arguments.service)
    since = instant(arguments.since) if arguments.since else None
    cluster = placement.read(inventory.load(arguments.inventory))
    chosen: Sequence[Host] = selectors.running(cluster, wanted)
    if arguments.host:
        chosen = (selectors.host(cluster, arguments.host, chosen),)
    names = [host.name for host in chosen]
    output.progress(f"{wanted.name}: {placement.unit(wanted)} on {', '.join(names)}")
    scripts = {
        host.name: script(host, wanted, since, arguments.lines, follow=arguments.follow) for host in chosen
    }
    kept, printed = output.Kept(names), output.Lines(names)
    ended = remote.run(
        scripts, chosen, printed if arguments.follow else kept, None if arguments.follow else LIMIT_SECONDS
    )
    short = cut(arguments.inventory, wanted.name, ended)
    said = {name: kept.of(name, wrong=False) for name in names}
    if not arguments.json:
        for line in ordered(said):
            printed(line)
    seconds, known = time.monotonic() - began, sum(answer.known for answer in ended.values())
    ending = Result(
        verb=VERB,
        target=f"{wanted.name} of {cluster.variable('lakehouse_cluster')}",
        findings=(*output.silent(VERB, arguments.inventory, ended), *short),
        facts=(
            f"{known - len(short)} of {counted(len(ended), 'host')} answered",
            counted(sum(map(len, said.values())), "line"),
            f"{seconds:.1f} s",
        ),
        hosts={
            name: {"answered": answer.known, "why": answer.why, "lines": said[name]}
            for name, answer in ended.items()
        },
        healthy_next=command("doctor", arguments.inventory),
        details={"unit": placement.unit(wanted), "seconds": round(seconds, 1)},
    )
    return output.end(ending, as_json=arguments.json)


def cut(path: str, service: str, ended: Mapping[str, Answer[int]]) -> tuple[Finding, ...]:
    """Return a finding for each host whose lines were cut off by the time that it had."""
    again = command(f"logs {service} --since 10m", path)
    fact = f"its lines were cut off after {LIMIT_SECONDS:g} s"
    return tuple(
        Finding(f"{VERB}.cut", Outcome.DEGRADED, host, fact, again)
        for host, answer in ended.items()
        if answer.value == remote.TIMED_OUT
    )


def instant(text: str) -> str:
    """Return journalctl's word for a time: `10m` ago on the host's clock, or a date in UTC; or UsageError."""
    if (span := durations.seconds(text)) is not None:
        return f"-{span}s"
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--since {text}: such as 10m, 2h, 1d, 2026-01-31 or 2026-01-31T10:00 (UTC)"
        ) from None
    return f"@{(found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp():.0f}"


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
        found, stamp = journal, ""
        for text in lines:
            if _FILE.fullmatch(text):
                found = []
            if found is journal:
                stamp = stamped[0] if (stamped := _STAMP.match(text)) else stamp
                journal.append((stamp, Line(host, text)))
            elif text:
                files.append(Line(host, text))
    return [line for _, line in sorted(journal, key=lambda pair: pair[0])] + files
