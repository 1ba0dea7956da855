"""The verb `exec`: a command on the hosts that are named, all at once."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence

from lakehouse import inventory
from lakehouse.errors import UsageError
from lakehouse.next_command import command
from ops import output, remote, selectors
from ops.maybe import Answer
from ops.outcome import Finding, Outcome, Result
from ops.status import placement
from plugins.module_utils.lakehouse.counting import counted

VERB = "exec"


def main(arguments: argparse.Namespace) -> int:
    """Run it, show what hosts say; return 0, 1 if it failed somewhere, 2 if all were silent, 124 if ended."""
    began = time.monotonic()
    if not arguments.command:
        raise UsageError(
            "nothing to run; what to run follows after --, as in: .venv/bin/lakehouse exec -- uptime"
        )
    if arguments.limit <= 0:
        raise UsageError(f"--limit {arguments.limit:g}: seconds, more than 0")
    if arguments.service and (arguments.host or arguments.group):
        raise UsageError(f"{arguments.service} and --host or --group: name the hosts once")
    cluster = placement.read(inventory.load(arguments.inventory))
    if arguments.service in {host.name for host in cluster.hosts}:
        raise UsageError(
            f"{arguments.service} is a host, and no service; --host {arguments.service} runs it there"
        )
    chosen = selectors.hosts(cluster, name=arguments.host, group=arguments.group, of=arguments.service)
    names, line = [host.name for host in chosen], said(arguments.command)
    output.progress(f"on {len(chosen)} of {counted(len(cluster.hosts), 'host')} ({', '.join(names)}): {line}")
    kept = output.Kept(names)
    ended = remote.run(
        dict.fromkeys(names, line), chosen, kept if arguments.json else output.Lines(names), arguments.limit
    )
    ending = Result(
        verb=VERB,
        target=str(cluster.variable("lakehouse_cluster")),
        findings=(
            *output.silent(VERB, arguments.inventory, ended),
            *failures(arguments.inventory, arguments.limit, ended),
        ),
        facts=facts(ended, len(cluster.hosts), time.monotonic() - began),
        hosts={
            name: {
                "answered": answer.known,
                "why": answer.why,
                "code": answer.value,
                "stdout": kept.of(name, wrong=False),
                "stderr": kept.of(name, wrong=True),
            }
            for name, answer in ended.items()
        },
        healthy_next=command("status", arguments.inventory),
        details={"command": line, "seconds": round(time.monotonic() - began, 1)},
    )
    return output.end(ending, as_json=arguments.json)


def said(command: Sequence[str]) -> str:
    """Return the line for the shell: one word is such a line, several are a program and its arguments."""
    return command[0] if len(command) == 1 else shlex.join(command)


def failures(path: str, limit: float, ended: Mapping[str, Answer[int]]) -> Iterator[Finding]:
    """Give a finding for each host on which the command failed, or was ended by the limit."""
    for host, answer in ended.items():
        again = f".venv/bin/lakehouse exec -i {path} --host {host} -- ..."
        if answer.value == remote.TIMED_OUT:
            yield Finding("exec.limit", Outcome.LIMIT, host, f"ended after {limit:g} s (--limit)", again)
        elif answer.value:
            yield Finding("exec.failed", Outcome.DEGRADED, host, f"exit code {answer.value}", again)


def facts(ended: Mapping[str, Answer[int]], hosts: int, seconds: float) -> tuple[str, ...]:
    """Return what the last line counts: every host that was chosen is in it."""
    codes = [answer.value for answer in ended.values() if answer.known]
    return (
        f"{len(ended)} of {counted(hosts, 'host')} chosen",
        f"{len(codes)} answered",
        f"{codes.count(0)} succeeded",
        f"{seconds:.1f} s",
    )
