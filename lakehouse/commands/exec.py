import shlex
import time
from collections.abc import Iterator, Mapping, Sequence

import click

from lakehouse import commands, shared_options
from lakehouse.errors import UsageError
from lakehouse.maybe import Answer
from lakehouse.model import inventory as inventories
from lakehouse.model import placement, selectors
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.remote import openssh, output
from plugins.module_utils.lakehouse.counting import counted

VERB = "exec"


class Exec(commands.Command):
    """Passes what follows after -- to the function as `line`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what stands before --."""
        end = args.index("--") if "--" in args else len(args)
        ctx.params["line"] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])


@commands.command(failure=commands.NOT_KNOWN, exclusive=[("host", "group")], cls=Exec)
@click.argument("service", required=False)
@click.option("--host", metavar="HOST", help="on this host only")
@click.option("--group", metavar="GROUP", help="on the hosts of this group of the inventory")
@shared_options.limit(60.0)
@shared_options.as_json
@shared_options.inventory
def command(
    line: Sequence[str],
    service: str | None,
    host: str | None,
    group: str | None,
    limit: float,
    as_json: bool,
    inventory: str,
) -> int:
    """Run a command as root on hosts, all at once.

    SERVICE runs on its hosts (default: all hosts). The command follows after --: one word is a line for the
    shell, several are a program and its arguments.

    Exit code: 1 if it fails on a host, 2 if no host answers, 124 after the timeout.
    """
    began = time.monotonic()
    if not line:
        raise UsageError("nothing to run; name it after --, for example: .venv/bin/lakehouse exec -- uptime")
    if limit <= 0:
        raise UsageError(f"--limit {limit:g}: seconds, more than 0")
    if service and (host or group):
        raise UsageError(f"{service} and --host or --group: name the hosts once")
    cluster = placement.read(inventories.load(inventory))
    if service in {place.name for place in cluster.hosts}:
        raise UsageError(f"{service} is a host, and no service; --host {service} runs it there")
    chosen = selectors.hosts(cluster, name=host, group=group, of=service)
    names, text = [place.name for place in chosen], shell_line(line)
    output.progress(f"on {len(chosen)} of {counted(len(cluster.hosts), 'host')} ({', '.join(names)}): {text}")
    lines = output.CapturedLines(names)
    ended = openssh.run(dict.fromkeys(names, text), chosen, lines if as_json else output.Lines(names), limit)
    ending = Result(
        verb=VERB,
        target=str(cluster.variable("lakehouse_cluster")),
        findings=(*output.silent(VERB, inventory, ended), *failures(inventory, limit, ended)),
        facts=facts(ended, len(cluster.hosts), time.monotonic() - began),
        hosts={
            name: {
                "answered": answer.known,
                "why": answer.why,
                "code": answer.value,
                "stdout": lines.of(name, wrong=False),
                "stderr": lines.of(name, wrong=True),
            }
            for name, answer in ended.items()
        },
        healthy_next=next_command("status", inventory),
        details={"command": text, "seconds": round(time.monotonic() - began, 1)},
    )
    return output.end(ending, as_json=as_json)


def shell_line(words: Sequence[str]) -> str:
    """Return the line for the shell: one word is such a line, several are a program and its arguments."""
    return words[0] if len(words) == 1 else shlex.join(words)


def failures(path: str, limit: float, ended: Mapping[str, Answer[int]]) -> Iterator[Finding]:
    """Give a finding for each host on which the command failed, or was ended by the limit."""
    for host, answer in ended.items():
        retry = f".venv/bin/lakehouse exec -i {path} --host {host} -- ..."
        if answer.value == openssh.TIMED_OUT:
            yield Finding("exec.limit", Outcome.LIMIT, host, f"ended after {limit:g} s (--limit)", retry)
        elif answer.value:
            yield Finding("exec.failed", Outcome.DEGRADED, host, f"exit code {answer.value}", retry)


def facts(ended: Mapping[str, Answer[int]], hosts: int, seconds: float) -> tuple[str, ...]:
    """Return what the last line counts: every host that was chosen is in it."""
    codes = [answer.value for answer in ended.values() if answer.known]
    return (
        f"{len(ended)} of {counted(hosts, 'host')} chosen",
        f"{len(codes)} answered",
        f"{codes.count(0)} succeeded",
        f"{seconds:.1f} s",
    )
