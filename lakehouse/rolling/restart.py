"""`lakehouse restart`: a rolling restart, one unit of one host at a time, each after its gate."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import partial

from lakehouse.maybe import Answer
from lakehouse.model import readiness, services
from lakehouse.model.services import Announce
from lakehouse.next_command import command
from lakehouse.rolling import gate, marker, run, steps
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Stopped
from lakehouse.rolling.run import Request, Running, Work
from lakehouse.rolling.steps import Step
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.hdfs_gate import Reason

VERB = "restart"
# How long the first gate is retried: blocks that were just written may not have all replicas yet.
_FIRST_SECONDS = 20.0
_PAUSE_SECONDS = 1.0
# Trino's worker may be draining.
_RESTART_SECONDS = 900.0
READY_SECONDS = 240.0
# A pending start is logged after so long.
_QUIET_SECONDS = 20.0
# An announced process tells its clients and ends; systemd stops one that does not.
_TELL_SECONDS, _LEAVE_SECONDS = 30, 20


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: of a resumed run the steps that are not done according to the cluster."""
    arguments, stopped = request.arguments, request.stopped
    planned = (
        tuple(map(steps.read, stopped.plan))
        if stopped
        else with_invocations(
            living, leaders_last(living, steps.plan(living.cluster, arguments["service"], arguments["host"]))
        )
    )
    # Hosts that have left since are skipped.
    names = {host.name for host in living.cluster.hosts}
    present = tuple(step for step in planned if step.host in names)
    remaining = tuple(step for step in present if not is_done(living, step)) if stopped else planned
    hosts = {step.host for step in remaining}
    units = counted(len(remaining), "unit")
    width = max((len(str(step)) for step in remaining), default=0)
    where = next(iter(hosts)) if len(hosts) == 1 else counted(len(hosts), "host")
    return Work(
        target=arguments["service"],
        arguments=arguments,
        plan=[asdict(step) for step in remaining],
        lines=[
            f"{VERB} {arguments['service']}: {units} on {where}, one after the other",
            *(
                f"  {number:>2} {str(step).ljust(width)}  {step.noticed}".rstrip()
                for number, step in enumerate(remaining, 1)
            ),
        ],
        question=f"Restart {units}?",
        do=partial(_do, remaining, len(planned), request),
        words=run.typed(arguments["service"], {"--host": arguments["host"], "--force": arguments["force"]}),
        refusal=marker.absent(living.cluster, (step.host for step in remaining), request.path),
    )


def leaders_last(living: Living, planned: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps with the current leaders of each service after its other hosts."""
    planned, rows = tuple(planned), services.load().services
    led_services = {step.service for step in planned if rows[step.service].leads}
    return steps.leaders_last(planned, {name: living.leaders(name) for name in led_services})


def with_invocations(living: Living, planned: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps with the invocation ID of the process that each is to replace."""
    planned_steps = tuple(planned)
    units = {step.service: living.units(step.service, step.unit) for step in planned_steps}
    pairs = ((step, units[step.service][step.host].value) for step in planned_steps)
    return tuple(replace(step, invocation=unit.invocation if unit else None) for step, unit in pairs)


def is_done(living: Living, step: Step) -> bool:
    """Return whether the process that the plan was to replace is known, and has been replaced."""
    unit = living.units(step.service, step.unit)[step.host].value
    if unit is None or step.invocation is None:
        return False
    return unit.active and unit.invocation != step.invocation


def _do(remaining: tuple[Step, ...], planned: int, request: Request, running: Running) -> tuple[str, ...]:
    for number, step in enumerate(remaining, 1):
        where = f"{number}/{len(remaining)} {step}"
        wait_for_gate(running, step, where, request)
        running.begins(step.host, step.service)
        seconds = restart_unit(running, step, where, READY_SECONDS)
        running.say(f"{where}: answers after {seconds:.1f} s")
        running.done(step.host, step.service, seconds=round(seconds, 1))
    settle(running, remaining, READY_SECONDS)
    done_before = planned - len(remaining)
    return (
        f"{done_before} of {planned} were done, {len(remaining)} now"
        if done_before
        else f"{len(remaining)} of {planned} restarted",
    )


def wait_for_gate(running: Running, step: Step, where: str, request: Request, *, back: bool = True) -> None:
    """Wait until the gate of a step opens, and log what it waits for; Stopped after a timeout.

    The request's arguments have the timeout in seconds (`wait`) and `force`. Without `back` the unit will not
    start again.
    """
    wait, forced = request.arguments["wait"], request.arguments.get("force")
    until = time.monotonic() + (wait if running.changed else min(_FIRST_SECONDS, wait))
    reported: tuple[Reason, ...] = ()
    while True:
        reasons = gate.reasons(step, running.living.facts(step, back=back))
        blocking = tuple(reason for reason in reasons if not (reason.forced and forced))
        if not blocking:
            return
        if blocking != reported:
            running.say(f"{where}: waits: {'; '.join(reason.what for reason in blocking)}")
            reported = blocking
        if time.monotonic() > until:
            following = "" if running.changed else command("doctor", request.path)
            raise Stopped(Ending.REFUSED, f"at {step}: {blocking[0].what}", following)
        time.sleep(_PAUSE_SECONDS)


def restart_unit(running: Running, step: Step, where: str, ready: float, *, alone: bool = False) -> float:
    """Restart a unit, and return the seconds until it answered; Stopped after the timeout `ready`.

    With `alone` its leader is not asked.
    """
    living, previous = running.living, running.living.members(step)
    [current] = with_invocations(living, [step])
    began = time.monotonic()
    running.say(f"{where}: restarts")
    answer: Answer[str] = living.do(step.host, script(living, step), _RESTART_SECONDS)
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"at {step}: systemctl restart: {answer.why}", "")
    serves = partial(living.serves, current, previous, alone=alone)
    running.wait(where, serves, ready, _QUIET_SECONDS)
    return time.monotonic() - began


def settle(running: Running, restarted: Iterable[Step], ready: float) -> None:
    """Wait until the services of the steps have settled; Stopped after the timeout `ready`."""
    for step in {step.service: step for step in restarted}.values():
        running.wait(str(step), partial(running.living.settled, step), ready, _QUIET_SECONDS)


def script(living: Living, step: Step) -> str:
    """Return the script that restarts a unit, after a failover and an announcement where its row has them.

    After the announcement clients that write to this DataNode alone wait for it. Otherwise an open file would
    lose a replica with each host, and its writer would fail in the end.
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
    # Where it fails, the process keeps running, and clients are not affected.
    if service.hands_over and step.host in living.leaders(step.service) and living.having(step.service)[1:]:
        lines.insert(0, f"({_command(living, step, service.hands_over)}) || exit")
    return "\n".join(lines)


def _command(living: Living, step: Step, announce: Announce) -> str:
    """Return the command that a service runs as its user before its unit stops."""
    user = services.load().services[step.service].user
    words = readiness.before_stop(announce, living.host(step.host))
    return living.as_user(str(user), f"timeout {_TELL_SECONDS} {shlex.join(words)}")
