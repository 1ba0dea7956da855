"""`lakehouse restart`: one unit of one host after the other, each behind the gate."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import partial

from lakehouse import readiness, services
from lakehouse.next_command import command
from lakehouse.services import Announce
from ops.change import gate, marker, run, steps
from ops.change.facts import Living
from ops.change.result import Ending, Stopped
from ops.change.run import Request, Running, Work
from ops.change.steps import Step
from ops.maybe import Answer
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.hdfs_gate import Reason

VERB = "restart"
# A gate that is shut before anything was changed is looked at again for so long: blocks that were just
# written may be on their way to a third host.
_FIRST_SECONDS = 20.0
_PAUSE_SECONDS = 1.0
# Trino's worker may be draining.
_RESTART_SECONDS = 900.0
READY_SECONDS = 240.0
# A start takes its time; what is not there after so long is said.
_QUIET_SECONDS = 20.0
# A process that was told so says it to its clients, and ends; systemd ends one that does not.
_TELL_SECONDS, _LEAVE_SECONDS = 30, 20


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: of a run that was stopped, what the cluster shows that it has not done."""
    arguments, stopped = request.arguments, request.stopped
    planned = (
        tuple(map(steps.read, stopped.plan))
        if stopped
        else noted(
            living, ordered(living, steps.plan(living.cluster, arguments["service"], arguments["host"]))
        )
    )
    # What has left since is none of the cluster's.
    names = {host.name for host in living.cluster.hosts}
    there = tuple(step for step in planned if step.host in names)
    left = tuple(step for step in there if not is_done(living, step)) if stopped else planned
    hosts = {step.host for step in left}
    width = max((len(str(step)) for step in left), default=0)
    where = next(iter(hosts)) if len(hosts) == 1 else f"{counted(len(hosts), 'host')}"
    return Work(
        target=arguments["service"],
        arguments=arguments,
        plan=[asdict(step) for step in left],
        lines=[
            f"{VERB} {arguments['service']}: {counted(len(left), 'unit')} on {where}, one after the other",
            *(
                f"  {number:>2} {str(step).ljust(width)}  {step.noticed}".rstrip()
                for number, step in enumerate(left, 1)
            ),
        ],
        question=f"Restart {counted(len(left), 'unit')}?",
        do=partial(_do, left, len(planned), request),
        words=run.typed(arguments["service"], {"--host": arguments["host"], "--force": arguments["force"]}),
        refusal=marker.absent(living.cluster, (step.host for step in left), request.path),
    )


def ordered(living: Living, planned: Iterable[Step]) -> tuple[Step, ...]:
    """Return steps with the hosts that lead a service now after its others."""
    found, rows = tuple(planned), services.load().services
    led = {step.service for step in found if rows[step.service].leads}
    return steps.leaders_last(found, {name: living.leaders(name) for name in led})


def noted(living: Living, planned: Iterable[Step]) -> tuple[Step, ...]:
    """Note which process each step is to replace: the next one has another name."""
    steps = tuple(planned)
    known = {step.service: living.units(step.service, step.unit) for step in steps}
    found = ((step, known[step.service][step.host].value) for step in steps)
    return tuple(replace(step, invocation=unit.invocation if unit else None) for step, unit in found)


def is_done(living: Living, step: Step) -> bool:
    """Tell whether another process runs than the one that the plan was to replace, where that is known."""
    unit = living.units(step.service, step.unit)[step.host].value
    if unit is None or step.invocation is None:
        return False
    return unit.active and unit.invocation != step.invocation


def _do(left: tuple[Step, ...], planned: int, request: Request, running: Running) -> tuple[str, ...]:
    for number, step in enumerate(left, 1):
        where = f"{number}/{len(left)} {step}"
        wait_for_gate(running, step, where, request)
        running.begins(step.host, step.service)
        took = replaced(running, step, where, READY_SECONDS)
        running.say(f"{where}: answers after {took:.1f} s")
        running.done(step.host, step.service, seconds=round(took, 1))
    settle(running, left, READY_SECONDS)
    before = planned - len(left)
    return (
        f"{before} of {planned} were done, {len(left)} now"
        if before
        else f"{len(left)} of {planned} restarted",
    )


def wait_for_gate(running: Running, step: Step, where: str, request: Request, *, back: bool = True) -> None:
    """Return once nothing is lost by the step; Stopped where that is not so in time. The reason is said.

    The arguments say how many seconds that is (`wait`), and may have it forced (`force`). Without `back` the
    unit stays away.
    """
    wait, forced = request.arguments["wait"], request.arguments.get("force")
    until = time.monotonic() + (wait if running.changed else min(_FIRST_SECONDS, wait))
    said: tuple[Reason, ...] = ()
    while True:
        found = gate.reasons(step, running.living.facts(step, back=back))
        shut = tuple(one for one in found if not (one.forced and forced))
        if not shut:
            return
        if shut != said:
            running.say(f"{where}: waits: {'; '.join(one.what for one in shut)}")
            said = shut
        if time.monotonic() > until:
            following = "" if running.changed else command("doctor", request.path)
            raise Stopped(Ending.REFUSED, f"at {step}: {shut[0].what}", following)
        time.sleep(_PAUSE_SECONDS)


def replaced(running: Running, step: Step, where: str, ready: float, *, alone: bool = False) -> float:
    """Restart a unit and return after how many seconds it answers; Stopped where it does not in `ready`.

    Its leader is not asked where it is to answer `alone`.
    """
    living, before = running.living, running.living.members(step)
    [now] = noted(living, [step])
    began = time.monotonic()
    running.say(f"{where}: restarts")
    done: Answer[str] = living.do(step.host, script(living, step), _RESTART_SECONDS)
    if not done.known:
        raise Stopped(Ending.HALFWAY, f"at {step}: systemctl restart: {done.why}", "")
    serves = partial(living.serves, now, before, alone=alone)
    running.wait(where, serves, ready, _QUIET_SECONDS)
    return time.monotonic() - began


def settle(running: Running, done: Iterable[Step], ready: float) -> None:
    """Return once the services of steps are as they have to be at the end; Stopped after `ready` seconds."""
    for step in {step.service: step for step in done}.values():
        running.wait(str(step), partial(running.living.settled, step), ready, _QUIET_SECONDS)


def script(living: Living, step: Step) -> str:
    """Return what restarts a unit, once another host leads, and once it was told where its row names a way.

    Who writes to a DataNode on the same host, or to it alone, waits for it then. Without that a file that
    stays open loses a replica with every host, and its last writer fails.
    """
    service = services.load().services[step.service]
    restart = f"systemctl restart {shlex.quote(f'{step.unit}.service')}"
    lines = [restart]
    if service.announce:
        lines = [
            f"pid=$(systemctl show --property=MainPID --value {step.unit})",
            f"({_command(living, step, service.announce)})"
            f' && timeout {_LEAVE_SECONDS} tail --pid="$pid" -f /dev/null',
            restart,
        ]
    # Where it fails, the process goes on: who uses it loses nothing.
    if service.hands_over and step.host in living.leaders(step.service) and living.having(step.service)[1:]:
        lines.insert(0, f"({_command(living, step, service.hands_over)}) || exit")
    return "\n".join(lines)


def _command(living: Living, step: Step, announce: Announce) -> str:
    """Return what runs a command of a service before its unit stops, as its user."""
    user = services.load().services[step.service].user
    words = readiness.before_stop(announce, living.host(step.host))
    return living.as_user(str(user), f"timeout {_TELL_SECONDS} {shlex.join(words)}")
