"""Puts releases beside those in use, switches them host by host behind the gate, and takes that back."""

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
from ops.change import journal, restart
from ops.change.result import Ending, Stopped, cause
from ops.change.run import Request, Running
from ops.upgrade import hdfs, proof
from ops.upgrade.planner import Row
from ops.upgrade.proof import Proof
from plugins.module_utils.lakehouse.counting import counted


@dataclass(frozen=True)
class Upgrade:
    """The bill of materials, its path, and what the verb is asked."""

    bill: Manifest
    path: str
    request: Request

    @property
    def ready(self) -> float:
        """Seconds in which a unit has to answer, or its component goes back."""
        return float(self.request.arguments["ready"])


@dataclass(frozen=True)
class Task:
    """A plan and what of it is left; `begun` are those rows that a run before this one has touched.

    `back` are the components that it was taking back.
    """

    every: Sequence[Row]
    left: Sequence[Row]
    begun: Sequence[Row]
    back: Collection[str]

    def of(self, component: str) -> list[Row]:
        """Return what is left of a component."""
        return [row for row in self.left if row.component == component]

    def touched(self, component: str) -> list[Row]:
        """Return what was done or begun of a component before."""
        done = [row for row in self.every if row not in self.left]
        return [row for row in dict.fromkeys([*done, *self.begun]) if row.component == component]


def carry_out(upgrade: Upgrade, task: Task, running: Running) -> tuple[str, ...]:
    """Do what is left of a plan; facts for the last line. Stopped with BACK where a component went back."""
    for component in task.back:
        _back(upgrade, task.touched(component), "it was on its way back", running)
    components = list(dict.fromkeys(row.component for row in task.left))
    proofs = {one: proof.made(running.living.cluster, one) for one in components}
    # One that was begun may be down for that.
    fresh = [proofs[one] for one in components if not task.touched(one)]
    if silent := next((one for one in fresh if one and one.complaint), None):
        raise Stopped(Ending.REFUSED, silent.complaint, command("doctor", upgrade.request.path))
    # Of nothing it would be the playbook on all hosts.
    if task.left:
        _beside(upgrade, task.left, running)
    facts = []
    for component in components:
        touched = task.touched(component)
        try:
            facts.append(_forward(upgrade, task.of(component), touched, proofs[component], running))
        except (Stopped, LakehouseError) as error:
            # The run that has broken the lock goes on with it.
            if not touched or (isinstance(error, Stopped) and error.ending is Ending.LOCKED):
                raise
            _back(upgrade, touched, cause(error), running)
    if any(row.returns for row in task.every):
        hdfs.finish(running)
    return tuple(facts)


def _beside(upgrade: Upgrade, left: Sequence[Row], running: Running) -> None:
    """Have every new release on its hosts; what serves does not notice."""
    components = list(dict.fromkeys(row.component for row in left))
    running.say(f"{', '.join(components)}: fetched, verified and put beside what runs")
    cache = artifacts.cache_dir()
    artifacts.fetch(upgrade.bill, components, cache, running.say)
    for component in components:
        releases.ensure(upgrade.bill, component, cache, running.say)
    _playbook(upgrade, left, "beside", running)


def _forward(
    upgrade: Upgrade, own: Sequence[Row], touched: list[Row], proved: Proof | None, running: Running
) -> str:
    """Switch a component host by host; `touched` grows by each. Stopped where one does not serve in time."""
    component, began = own[0].component, time.monotonic()
    noticed = []
    for number, row in enumerate(own, 1):
        where = f"{component} {number}/{len(own)} on {row.host}"
        for step in row.units:
            restart.wait_for_gate(running, step, where, upgrade.request)
        running.begins(row.host, component)
        if row.prepares:
            noticed.append(hdfs.prepare(running, row.old))
        if row not in touched:
            touched.append(row)
        _switch(upgrade, row, row.new, "switch", running)
        for step in row.units:
            running.holds()
            alone = row.mixed and number < len(own)
            took = restart.restart_unit(running, step, f"{where}: {step.service}", upgrade.ready, alone=alone)
            if step.service == "namenode":
                noticed.append(f"HDFS did not answer for {took:.1f} s")
        running.say(f"{where}: runs {row.new}")
    restart.settle(running, [step for row in own for step in row.units], upgrade.ready)
    found = proved.again(running.living.cluster) if proved else ""
    for row in own:
        running.done(row.host, component)
    shown = "".join(f", {each}" for each in (found, *noticed) if each)
    return (
        f"{component} {own[0].new} on {counted(len(own), 'host')} in {time.monotonic() - began:.0f} s{shown}"
    )


def _back(upgrade: Upgrade, touched: Sequence[Row], why: str, running: Running) -> NoReturn:
    """Switch hosts back to what they had, the last one first, and end the run with why."""
    component = touched[0].component
    running.say(f"{component}: goes back: {why}")
    running.journal.write(journal.BACK, what=component)
    over = any(row.rolling and not row.returns for row in touched)
    if over and (refusal := hdfs.unreadable(running.living)):
        raise Stopped(Ending.HALFWAY, f"{component}: {why}; {refusal.fact}", refusal.next)
    try:
        for row in reversed(touched):
            where = f"{component} back on {row.host}"
            _switch(upgrade, row, row.old, "back", running)
            for step in reversed(row.units):
                running.holds()
                alone = row.mixed and row is not touched[0]
                restart.restart_unit(
                    running, step, f"{where}: {step.service}", restart.READY_SECONDS, alone=alone
                )
            running.say(f"{where}: runs {row.old}")
            running.done(row.host, f"{component} back")
        if over:
            hdfs.finish(running)
    except (Stopped, LakehouseError) as error:
        what = f"{component}: {why}; and on the way back: {cause(error)}"
        raise Stopped(Ending.HALFWAY, what, "") from error
    old = " and ".join(sorted({row.old for row in touched}))
    following = f"{command(_look(touched), upgrade.request.path)}, then {upgrade.path}"
    raise Stopped(
        Ending.BACK, f"{component} serves {old} again on {counted(len(touched), 'host')}: {why}", following
    )


def _look(touched: Sequence[Row]) -> str:
    """Return the verb that shows why it does not serve: what has no unit has no log."""
    return next((f"logs {step.service}" for row in touched for step in row.units), "doctor")


def _switch(upgrade: Upgrade, row: Row, release: str, what: str, running: Running) -> None:
    _playbook(upgrade, [row], what, running, lakehouse_switch=True, lakehouse_pinned={row.component: release})


def _playbook(upgrade: Upgrade, those: Sequence[Row], what: str, running: Running, **told: object) -> None:
    running.holds()
    variables = {"lakehouse_run": running.journal.id, "lakehouse_bill": upgrade.path, **told}
    tags = ",".join(sorted({row.component for row in those}))
    hosts = ",".join(sorted({row.host for row in those}))
    options = ["--tags", tags, "--limit", hosts, "--extra-vars", json.dumps(variables)]
    name = f"upgrade-{what}"
    try:
        programs.playbook("releases", upgrade.request.path, *options, log=name)
    except LakehouseError as error:
        log = (programs.LOGS / f"{name}.log").relative_to(programs.ROOT)
        ending = Ending.HALFWAY if running.changed else Ending.FAILED
        raise Stopped(ending, f"playbooks/releases.yml failed on {hosts}", f"less {log}") from error
