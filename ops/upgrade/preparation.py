"""Plan `lakehouse upgrade`: the releases of versions.yml in place of those in use, or a rollback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from lakehouse import features, risky, yamlfile
from lakehouse import run as programs
from lakehouse.artifacts import manifest, parts, releases
from lakehouse.artifacts.manifest import Manifest
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import PROGRAM, command
from ops import host_manifest
from ops.change import marker, restart, run
from ops.change.facts import Living
from ops.change.journal import Run
from ops.change.result import Refusal, Stopped
from ops.change.run import Prepare, Request, Work
from ops.status import reading
from ops.upgrade import finalizing, hdfs, installed, planner, postgresql, release_switch
from ops.upgrade.planner import Reason, Release, Row
from ops.upgrade.release_switch import Task, Upgrade
from plugins.module_utils.lakehouse.counting import counted

VERB = "upgrade"


# What is no release that is switched: by the component, and whether an upgrade is to be final.
_OWN: Mapping[tuple[str, bool], Prepare] = {
    ("hadoop", True): finalizing.prepare,
    (postgresql.COMPONENT, False): postgresql.prepare,
}


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: of a run that was stopped, what the hosts show that it has not done, forward or back.

    Raises UsageError where a name, LakehouseError where the bill of materials is wrong.
    """
    arguments, path, stopped = request.arguments, request.path, request.stopped
    if own := _OWN.get(_way(arguments)):
        return own(living, request)
    place, target = str(arguments["bill"]), str(arguments["component"])
    raw = _raw(place)
    wished = manifest.load(programs.ROOT / place, locked=False, root=programs.ROOT)
    names = parts.names(raw)
    components = planner.chosen(target, names)
    # Before files are locked for it.
    if never := _never(wished, arguments):
        return _work(Upgrade(wished, place, request), Task((), (), (), ()), [f"{VERB} {target}"], never)
    if arguments["to"] is not None:
        planner.demanded(target, str(arguments["to"]), wished.versions, place)
    bill = manifest.load(programs.ROOT / place, root=programs.ROOT)
    answers = installed.read(living, raw)
    upgrade = Upgrade(bill, place, request)
    if silent := next(((name, one.why) for name, one in answers.items() if not one.known), None):
        unknown = Refusal(f"{silent[0]} does not say what it has: {silent[1]}", command("doctor", path))
        return _work(upgrade, Task((), (), (), ()), [f"{VERB} {target}"], unknown)
    there = {name: one.value or {} for name, one in answers.items()}
    away = partial(marker.absent, living.cluster, path=path)
    if stopped:
        task = _left(living, stopped, there)
        shown = planner.lines(task.left, {}) if task.left else [f"{VERB} {target}: goes back"]
        return _work(upgrade, task, shown, away(row.host for row in (*task.left, *task.begun)))
    wanted = {
        name: Release(
            releases.release_id(one), {key: bill.versions[key] for key in names[name] & bill.versions.keys()}
        )
        for name, one in bill.components.items()
    }
    planned = _with_invocations(living, planner.rows(living.cluster, components, there, wanted))
    changed = _changes(planned, there, wanted)
    root = str(living.cluster.variable("lakehouse_install_dir"))
    reasons = planner.damaged(planned, root, _differences(living, planned), upgrade.path)
    reasons += _reasons(upgrade, changed)
    if any(row.rolling for row in planned):
        planned, reason = _rolled(living, planned, there, path)
        reasons += [reason] if reason else []
    shut = next((one for one in reasons if not (one.forced and arguments["force"])), None)
    task = Task(planned, planned, (), ())
    refusal = away(row.host for row in planned) or (shut if planned else None)
    return _work(upgrade, task, planner.lines(planned, changed), refusal)


def _never(bill: Manifest, arguments: Mapping[str, Any]) -> Reason | None:
    """Return why the versions of a bill, or the one of `--to`, must not come in; None if they may."""
    target, wanted = str(arguments["component"]), arguments["to"]
    found = [
        Reason(line, _otherwise(arguments), forced=True)
        for line in manifest.pair_findings(bill.pairs, bill.versions)
    ]
    if wanted is not None and target in bill.versions:
        old, new = bill.versions[target], str(wanted)
        fixed = bool(planner.fixed(target))
        found += [
            Reason(line, f"keep {target} {old}" if fixed else _otherwise(arguments), forced=not fixed)
            for line in planner.forbidden(target, old, new, bill.pairs, bill.versions)
        ]
    return next((one for one in found if not (one.forced and arguments["force"])), None)


def _otherwise(arguments: Mapping[str, Any]) -> str:
    return f"another version in {arguments['bill']}, or --force"


def _way(arguments: Mapping[str, Any]) -> tuple[str, bool]:
    component, final = str(arguments["component"]), bool(arguments.get("finalize"))
    if final and (component, final) not in _OWN:
        raise UsageError(f"{component} has nothing to finalize", f"{PROGRAM} upgrade hadoop --finalize")
    return component, final


def _rolled(
    living: Living, planned: tuple[Row, ...], there: Mapping[str, Mapping[str, Release]], path: str
) -> tuple[tuple[Row, ...], Reason | None]:
    """Return the plan in the order that HDFS wants, forward or back, and why not."""
    found = hdfs.prepared(living)
    if not found.known:
        why = f"the NameNode does not tell whether an upgrade goes on: {found.why}"
        return planned, Reason(why, command("doctor", path))
    if found.value is None:
        return planner.leader_first(planned), None
    host = living.cluster.active("namenode")
    now = there[host.name]["hadoop"].name
    wanted = next(row.new for row in planned if row.rolling)
    if refused := hdfs.refusal(found.value, now, wanted, path):
        return planned, Reason(refused.fact, refused.next)
    if wanted != found.value.before or now == wanted:
        return planner.leader_first(planned), None
    try:
        refused = hdfs.otherwise(found.value.layouts, hdfs.layouts(living))
    except Stopped as silent:
        return planned, Reason(silent.fact, silent.next)
    return planner.returning(planned), Reason(refused.fact, refused.next) if refused else None


def _words(arguments: Mapping[str, Any]) -> str:
    """Return what a person typed after the verb."""
    other = arguments["bill"] if arguments["bill"] != programs.BILL else None
    options = {"--to": arguments["to"], "--bill": other, "--force": arguments["force"]}
    return run.typed(str(arguments["component"]), options)


def _work(upgrade: Upgrade, task: Task, lines: list[str], refusal: Refusal | None) -> Work:
    rows, path = task.left or task.begun, upgrade.request.path
    onward = any(row.rolling and not row.returns for row in rows)
    following = "upgrade hadoop --finalize" if onward else "doctor"
    more = [f"refused: {refusal.fact}"] if refusal else []
    return Work(
        target=str(upgrade.request.arguments["component"]),
        arguments=upgrade.request.arguments,
        plan=[planner.written(row) for row in rows],
        lines=[*lines, *more],
        question=f"Switch {counted(len(rows), 'release')}, and restart what runs from them?",
        do=partial(release_switch.carry_out, upgrade, task),
        following=command(following, path),
        refusal=refusal,
        words=_words(upgrade.request.arguments),
    )


def _raw(place: str) -> Any:
    if Path(place).is_absolute():
        raise UsageError(f"{place} is not below {programs.ROOT}", "a path from there, such as build/next.yml")
    try:
        return yamlfile.read(programs.ROOT / place)
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}", f"ls {Path(place).parent}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise LakehouseError(f"{place} is no YAML: {said}", f"less {place}") from None


def _with_invocations(living: Living, planned: tuple[Row, ...]) -> tuple[Row, ...]:
    """Note which process each unit is to replace."""
    noted = iter(restart.with_invocations(living, [step for row in planned for step in row.units]))
    return tuple(replace(row, units=tuple(islice(noted, len(row.units)))) for row in planned)


def _left(living: Living, stopped: Run, there: Mapping[str, Mapping[str, Release]]) -> Task:
    """Return what a run has not done, by what the hosts use and which processes run there."""
    # What has left since is none of the cluster's.
    every = tuple(row for row in map(planner.read, stopped.plan) if row.host in there)
    begun = tuple(row for row in every if (row.host, row.component) in stopped.begun_steps)
    if stopped.rolled_back:
        mine = tuple(row for row in begun if row.component in stopped.rolled_back)
        return Task(mine, (), mine, sorted(stopped.rolled_back))

    def done(row: Row) -> bool:
        release = there[row.host].get(row.component)
        switched = release is not None and release.name == row.new
        return switched and all(restart.is_done(living, step) for step in row.units)

    return Task(every, tuple(row for row in every if not done(row)), begun, ())


def _changes(
    planned: tuple[Row, ...], there: Mapping[str, Mapping[str, Release]], wanted: Mapping[str, Release]
) -> dict[str, dict[str, tuple[str, str]]]:
    """Return the versions that change, by component; of hosts that differ the last one's."""
    return {
        row.component: planner.changes(
            there[row.host][row.component].versions, wanted[row.component].versions
        )
        for row in planned
    }


def _reasons(upgrade: Upgrade, changed: Mapping[str, Mapping[str, tuple[str, str]]]) -> list[Reason]:
    inventory, found = upgrade.request.path, list[Reason]()
    for component, versions in changed.items():
        for name in planner.FORMATS:
            down = name in versions and planner.older(versions[name][1], versions[name][0])
            newer, unknown = _beyond(inventory, name) if down else ((), ())
            own = {name: versions[name]} if name in versions else {}
            found += planner.refused(component, own, newer, upgrade.path, unknown)
        others = {name: one for name, one in versions.items() if name not in planner.FORMATS}
        found += planner.refused(component, others, (), upgrade.path)
    return found


def _differences(living: Living, planned: tuple[Row, ...]) -> dict[str, tuple[str, ...]]:
    """Return by host how it differs from its manifest; nothing of a host that has none."""
    hosts = {row.host for row in planned}
    script = host_manifest.script(str(living.cluster.variable("lakehouse_config_dir")))
    answers = living.everywhere(script, among=hosts) if hosts else {}
    return {
        host: answer.then(lambda reply: reading.parse_list(reply.text)).value or ()
        for host, answer in answers.items()
    }


def _beyond(inventory: str, form: str) -> tuple[list[str], list[str]]:
    """Return the tables of a format that an older library does not know, and those that may be such."""
    programs.playbook("endpoints", inventory, log="upgrade-endpoints")
    found = [one for one in risky.find(programs.BUILD / "endpoints.json") if one.format == form]
    newer = {one.table for one in found if one.risk.newer}
    unknown = {one.table for one in found if one.risk.effect == features.UNKNOWN}
    return sorted(newer), sorted(unknown - newer)
