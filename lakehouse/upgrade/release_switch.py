"""Install releases beside those in use, switch to them host by host after the gate, and roll back."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NoReturn

from lakehouse import artifacts
from lakehouse import run as programs
from lakehouse.artifacts import releases
from lakehouse.artifacts.manifest import Manifest
from lakehouse.errors import LakehouseError
from lakehouse.next_command import command
from lakehouse.rolling import journal, restart
from lakehouse.rolling.result import Ending, Stopped, cause
from lakehouse.rolling.run import Request, Running
from lakehouse.upgrade import hdfs, proof
from lakehouse.upgrade.planner import Row
from lakehouse.upgrade.proof import Proof
from plugins.module_utils.lakehouse.counting import counted


@dataclass(frozen=True)
class Upgrade:
    """The bill of materials, its path, and the request."""

    bill: Manifest
    path: str
    request: Request

    @property
    def ready(self) -> float:
        """Seconds to wait for readiness before rolling back."""
        return float(self.request.arguments["ready"])


@dataclass(frozen=True)
class Task:
    """The rows of a plan, and the remaining ones; `begun_rows` are those that an earlier process has begun.

    `rolled_back` are the components that it was rolling back.
    """

    rows: Sequence[Row]
    remaining: Sequence[Row]
    begun_rows: Sequence[Row]
    rolled_back: Collection[str]

    def of(self, component: str) -> list[Row]:
        """Return the remaining rows of a component."""
        return [row for row in self.remaining if row.component == component]

    def touched(self, component: str) -> list[Row]:
        """Return the rows of a component that were done or begun before."""
        done = [row for row in self.rows if row not in self.remaining]
        return [row for row in dict.fromkeys([*done, *self.begun_rows]) if row.component == component]


def carry_out(upgrade: Upgrade, task: Task, running: Running) -> tuple[str, ...]:
    """Do the remaining rows, and return facts for the last line; Stopped with BACK after a rollback."""
    for component in task.rolled_back:
        _roll_back(upgrade, task.touched(component), "it was on its way back", running)
    components = list(dict.fromkeys(row.component for row in task.remaining))
    proofs = {component: proof.find(running.living.cluster, component) for component in components}
    # A begun component may be down for that reason.
    unbegun = [proofs[component] for component in components if not task.touched(component)]
    if complaint := next((first.complaint for first in unbegun if first and first.complaint), ""):
        raise Stopped(Ending.REFUSED, complaint, command("doctor", upgrade.request.path))
    # Without rows the playbook would run on all hosts.
    if task.remaining:
        _install(upgrade, task.remaining, running)
    facts = []
    for component in components:
        touched = task.touched(component)
        try:
            facts.append(_forward(upgrade, task.of(component), touched, proofs[component], running))
        except (Stopped, LakehouseError) as error:
            # The run that has broken the lock continues.
            if not touched or (isinstance(error, Stopped) and error.ending is Ending.LOCKED):
                raise
            _roll_back(upgrade, touched, cause(error), running)
    if any(row.returns for row in task.rows):
        hdfs.finish(running)
    return tuple(facts)


def _install(upgrade: Upgrade, rows: Sequence[Row], running: Running) -> None:
    """Install each new release on its hosts, without effect on running services."""
    components = list(dict.fromkeys(row.component for row in rows))
    running.say(f"{', '.join(components)}: fetched, verified and put beside what runs")
    cache = artifacts.cache_dir()
    artifacts.fetch(upgrade.bill, components, cache, running.say)
    for component in components:
        releases.ensure(upgrade.bill, component, cache, running.say)
    _playbook(upgrade, rows, "beside", running)


def _forward(
    upgrade: Upgrade, rows: Sequence[Row], touched: list[Row], proof_before: Proof | None, running: Running
) -> str:
    """Switch a component host by host, and add each row to `touched`; Stopped on a timeout."""
    component, began = rows[0].component, time.monotonic()
    notices = []
    for number, row in enumerate(rows, 1):
        where = f"{component} {number}/{len(rows)} on {row.host}"
        for step in row.units:
            restart.wait_for_gate(running, step, where, upgrade.request)
        running.begins(row.host, component)
        if row.prepares:
            notices.append(hdfs.prepare(running, row.old))
        if row not in touched:
            touched.append(row)
        _switch(upgrade, row, row.new, "switch", running)
        for step in row.units:
            running.holds()
            skip_leader = row.mixed and number < len(rows)
            outage = restart.restart_unit(
                running, step, f"{where}: {step.service}", upgrade.ready, alone=skip_leader
            )
            if step.service == "namenode":
                notices.append(f"HDFS did not answer for {outage:.1f} s")
        running.say(f"{where}: runs {row.new}")
    restart.settle(running, [step for row in rows for step in row.units], upgrade.ready)
    proof_after = proof_before.repeat(running.living.cluster) if proof_before else ""
    for row in rows:
        running.done(row.host, component)
    suffix = "".join(f", {notice}" for notice in (proof_after, *notices) if notice)
    seconds = time.monotonic() - began
    return f"{component} {rows[0].new} on {counted(len(rows), 'host')} in {seconds:.0f} s{suffix}"


def _roll_back(upgrade: Upgrade, touched: Sequence[Row], why: str, running: Running) -> NoReturn:
    """Switch hosts back to their old release, the last one first, and raise Stopped with the reason."""
    component = touched[0].component
    running.say(f"{component}: rolls back: {why}")
    running.journal.write(journal.BACK, what=component)
    ends_upgrade = any(row.rolling and not row.returns for row in touched)
    if ends_upgrade and (refusal := hdfs.unreadable(running.living)):
        raise Stopped(Ending.HALFWAY, f"{component}: {why}; {refusal.fact}", refusal.next)
    try:
        for row in reversed(touched):
            where = f"{component} back on {row.host}"
            _switch(upgrade, row, row.old, "back", running)
            for step in reversed(row.units):
                running.holds()
                skip_leader = row.mixed and row is not touched[0]
                restart.restart_unit(
                    running, step, f"{where}: {step.service}", restart.READY_SECONDS, alone=skip_leader
                )
            running.say(f"{where}: runs {row.old}")
            running.done(row.host, f"{component} back")
        if ends_upgrade:
            hdfs.finish(running)
    except (Stopped, LakehouseError) as error:
        fact = f"{component}: {why}; and on the way back: {cause(error)}"
        raise Stopped(Ending.HALFWAY, fact, "") from error
    old = " and ".join(sorted({row.old for row in touched}))
    next_command = f"{command(_look(touched), upgrade.request.path)}, then {upgrade.path}"
    raise Stopped(
        Ending.BACK, f"{component} serves {old} again on {counted(len(touched), 'host')}: {why}", next_command
    )


def _look(touched: Sequence[Row]) -> str:
    """Return the verb that shows why a component does not serve: `doctor` for one without units."""
    return next((f"logs {step.service}" for row in touched for step in row.units), "doctor")


def _switch(upgrade: Upgrade, row: Row, release: str, action: str, running: Running) -> None:
    _playbook(
        upgrade, [row], action, running, lakehouse_switch=True, lakehouse_pinned={row.component: release}
    )


def _playbook(
    upgrade: Upgrade, rows: Sequence[Row], action: str, running: Running, **extra_variables: object
) -> None:
    running.holds()
    variables = {"lakehouse_run": running.journal.id, "lakehouse_bill": upgrade.path, **extra_variables}
    tags = ",".join(sorted({row.component for row in rows}))
    hosts = ",".join(sorted({row.host for row in rows}))
    options = ["--tags", tags, "--limit", hosts, "--extra-vars", json.dumps(variables)]
    name = f"upgrade-{action}"
    try:
        programs.playbook("releases", upgrade.request.path, *options, log=name)
    except LakehouseError as error:
        log = (programs.LOGS / f"{name}.log").relative_to(programs.ROOT)
        ending = Ending.HALFWAY if running.changed else Ending.FAILED
        raise Stopped(ending, f"playbooks/releases.yml failed on {hosts}", f"less {log}") from error
