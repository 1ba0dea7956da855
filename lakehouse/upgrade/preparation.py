"""Plan `lakehouse upgrade`: the releases of versions.yml in place of those in use, or a rollback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from lakehouse import run as programs
from lakehouse import yamlfile
from lakehouse.artifacts import manifest, parts, releases
from lakehouse.artifacts.manifest import Manifest
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import PROGRAM, command
from lakehouse.remote import host_manifest
from lakehouse.rolling import marker, restart, run
from lakehouse.rolling.facts import Living
from lakehouse.rolling.journal import Run
from lakehouse.rolling.result import Refusal, Stopped
from lakehouse.rolling.run import Prepare, Request, Work
from lakehouse.status import reading
from lakehouse.tables import features, risky
from lakehouse.upgrade import finalizing, hdfs, installed, planner, postgresql, release_switch
from lakehouse.upgrade.planner import Reason, Release, Row
from lakehouse.upgrade.release_switch import Task, Upgrade
from plugins.module_utils.lakehouse.counting import counted

VERB = "upgrade"


# Verbs without a switch of releases, by component and --finalize.
_SPECIAL: Mapping[tuple[str, bool], Prepare] = {
    ("hadoop", True): finalizing.prepare,
    (postgresql.COMPONENT, False): postgresql.prepare,
}


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: of a resumed run its remaining rows, forward or back, by the state of the hosts.

    Raises UsageError for a wrong name, LakehouseError for a wrong bill of materials.
    """
    arguments, path, stopped = request.arguments, request.path, request.stopped
    if prepare_special := _SPECIAL.get(_special_key(arguments)):
        return prepare_special(living, request)
    place, target = str(arguments["bill"]), str(arguments["component"])
    raw = _raw(place)
    unlocked = manifest.load(programs.ROOT / place, locked=False, root=programs.ROOT)
    names = parts.names(raw)
    components = planner.select(target, names)
    # Checked before files are locked for the version.
    if version_refusal := _version_refusal(unlocked, arguments):
        return _work(
            Upgrade(unlocked, place, request), Task((), (), (), ()), [f"{VERB} {target}"], version_refusal
        )
    if arguments["to"] is not None:
        planner.require_version(target, str(arguments["to"]), unlocked.versions, place)
    bill = manifest.load(programs.ROOT / place, root=programs.ROOT)
    answers = installed.read(living, raw)
    upgrade = Upgrade(bill, place, request)
    if silent := next((name for name, answer in answers.items() if not answer.known), ""):
        fact = f"{silent} does not say what it has: {answers[silent].why}"
        no_answer = Refusal(fact, command("doctor", path))
        return _work(upgrade, Task((), (), (), ()), [f"{VERB} {target}"], no_answer)
    installed_releases = {name: answer.value or {} for name, answer in answers.items()}
    absent = partial(marker.absent, living.cluster, path=path)
    if stopped:
        task = _remaining(living, stopped, installed_releases)
        text = planner.lines(task.remaining, {}) if task.remaining else [f"{VERB} {target}: rolls back"]
        return _work(upgrade, task, text, absent(row.host for row in (*task.remaining, *task.begun_rows)))
    new_releases = {
        name: Release(
            releases.release_id(component),
            {key: bill.versions[key] for key in names[name] & bill.versions.keys()},
        )
        for name, component in bill.components.items()
    }
    planned = _with_invocations(
        living, planner.rows(living.cluster, components, installed_releases, new_releases)
    )
    changed = _changes(planned, installed_releases, new_releases)
    root = str(living.cluster.variable("lakehouse_install_dir"))
    reasons = planner.damaged(planned, root, _differences(living, planned), upgrade.path)
    reasons += _reasons(upgrade, changed)
    if any(row.rolling for row in planned):
        planned, reason = _ordered_for_hdfs(living, planned, installed_releases, path)
        reasons += [reason] if reason else []
    blocking = next((reason for reason in reasons if not (reason.forced and arguments["force"])), None)
    task = Task(planned, planned, (), ())
    refusal = absent(row.host for row in planned) or (blocking if planned else None)
    return _work(upgrade, task, planner.lines(planned, changed), refusal)


def _version_refusal(bill: Manifest, arguments: Mapping[str, Any]) -> Reason | None:
    """Return why the versions of a bill, or that of `--to`, are not allowed; None if they are."""
    target, requested = str(arguments["component"]), arguments["to"]
    reasons = [
        Reason(line, _other_version(arguments), forced=True)
        for line in manifest.pair_findings(bill.pairs, bill.versions)
    ]
    if requested is not None and target in bill.versions:
        old, new = bill.versions[target], str(requested)
        fixed = bool(planner.fixed(target))
        reasons += [
            Reason(line, f"keep {target} {old}" if fixed else _other_version(arguments), forced=not fixed)
            for line in planner.forbidden(target, old, new, bill.pairs, bill.versions)
        ]
    return next((reason for reason in reasons if not (reason.forced and arguments["force"])), None)


def _other_version(arguments: Mapping[str, Any]) -> str:
    return f"another version in {arguments['bill']}, or --force"


def _special_key(arguments: Mapping[str, Any]) -> tuple[str, bool]:
    component, final = str(arguments["component"]), bool(arguments.get("finalize"))
    if final and (component, final) not in _SPECIAL:
        raise UsageError(f"{component} has nothing to finalize", f"{PROGRAM} upgrade hadoop --finalize")
    return component, final


def _ordered_for_hdfs(
    living: Living,
    planned: tuple[Row, ...],
    installed_releases: Mapping[str, Mapping[str, Release]],
    path: str,
) -> tuple[tuple[Row, ...], Reason | None]:
    """Return the plan in the order for HDFS, forward or back, and a refusal."""
    upgrade = hdfs.pending_upgrade(living)
    if not upgrade.known:
        why = f"the NameNode does not tell whether an upgrade goes on: {upgrade.why}"
        return planned, Reason(why, command("doctor", path))
    if upgrade.value is None:
        return planner.leader_first(planned), None
    host = living.cluster.active("namenode")
    current = installed_releases[host.name]["hadoop"].name
    new = next(row.new for row in planned if row.rolling)
    if refusal := hdfs.refusal(upgrade.value, current, new, path):
        return planned, Reason(refusal.fact, refusal.next)
    if new != upgrade.value.before or current == new:
        return planner.leader_first(planned), None
    try:
        refusal = hdfs.layout_change(upgrade.value.layouts, hdfs.layouts(living))
    except Stopped as error:
        return planned, Reason(error.fact, error.next)
    return planner.returning(planned), Reason(refusal.fact, refusal.next) if refusal else None


def _words(arguments: Mapping[str, Any]) -> str:
    """Return the words after the verb on the command line."""
    bill = arguments["bill"] if arguments["bill"] != programs.BILL else None
    options = {"--to": arguments["to"], "--bill": bill, "--force": arguments["force"]}
    return run.typed(str(arguments["component"]), options)


def _work(upgrade: Upgrade, task: Task, lines: list[str], refusal: Refusal | None) -> Work:
    rows, path = task.remaining or task.begun_rows, upgrade.request.path
    is_pending = any(row.rolling and not row.returns for row in rows)
    next_verb = "upgrade hadoop --finalize" if is_pending else "doctor"
    refusal_lines = [f"refused: {refusal.fact}"] if refusal else []
    return Work(
        target=str(upgrade.request.arguments["component"]),
        arguments=upgrade.request.arguments,
        plan=[planner.written(row) for row in rows],
        lines=[*lines, *refusal_lines],
        question=f"Switch {counted(len(rows), 'release')}, and restart what runs from them?",
        do=partial(release_switch.carry_out, upgrade, task),
        following=command(next_verb, path),
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
        message = " ".join(str(error).split())
        raise LakehouseError(f"{place} is no YAML: {message}", f"less {place}") from None


def _with_invocations(living: Living, planned: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return rows whose units have the invocation ID of the process that each is to replace."""
    steps = iter(restart.with_invocations(living, [step for row in planned for step in row.units]))
    return tuple(replace(row, units=tuple(islice(steps, len(row.units)))) for row in planned)


def _remaining(living: Living, stopped: Run, installed_releases: Mapping[str, Mapping[str, Release]]) -> Task:
    """Return the remaining task of a run, by the releases and processes of the hosts."""
    # Hosts that have left since are skipped.
    rows = tuple(row for row in map(planner.read, stopped.plan) if row.host in installed_releases)
    begun_rows = tuple(row for row in rows if (row.host, row.component) in stopped.begun_steps)
    if stopped.rolled_back:
        rolled_back_rows = tuple(row for row in begun_rows if row.component in stopped.rolled_back)
        return Task(rolled_back_rows, (), rolled_back_rows, sorted(stopped.rolled_back))

    def done(row: Row) -> bool:
        release = installed_releases[row.host].get(row.component)
        switched = release is not None and release.name == row.new
        return switched and all(restart.is_done(living, step) for step in row.units)

    return Task(rows, tuple(row for row in rows if not done(row)), begun_rows, ())


def _changes(
    planned: tuple[Row, ...],
    installed_releases: Mapping[str, Mapping[str, Release]],
    new_releases: Mapping[str, Release],
) -> dict[str, dict[str, tuple[str, str]]]:
    """Return the changed versions by component; where hosts differ, those of the last one."""
    return {
        row.component: planner.changes(
            installed_releases[row.host][row.component].versions, new_releases[row.component].versions
        )
        for row in planned
    }


def _reasons(upgrade: Upgrade, changed: Mapping[str, Mapping[str, tuple[str, str]]]) -> list[Reason]:
    inventory, reasons = upgrade.request.path, list[Reason]()
    for component, versions in changed.items():
        for name in planner.FORMATS:
            down = name in versions and planner.older(versions[name][1], versions[name][0])
            newer, unknown = _beyond(inventory, name) if down else ((), ())
            format_change = {name: versions[name]} if name in versions else {}
            reasons += planner.refusals(component, format_change, newer, upgrade.path, unknown)
        other_changes = {name: change for name, change in versions.items() if name not in planner.FORMATS}
        reasons += planner.refusals(component, other_changes, (), upgrade.path)
    return reasons


def _differences(living: Living, planned: tuple[Row, ...]) -> dict[str, tuple[str, ...]]:
    """Return the differences of each host from its manifest; none for a host without one."""
    hosts = {row.host for row in planned}
    script = host_manifest.script(str(living.cluster.variable("lakehouse_config_dir")))
    answers = living.everywhere(script, among=hosts) if hosts else {}
    return {
        host: answer.then(lambda reply: reading.parse_list(reply.text)).value or ()
        for host, answer in answers.items()
    }


def _beyond(inventory: str, form: str) -> tuple[list[str], list[str]]:
    """Return the tables of a format that an older library cannot read, and unknown cases."""
    programs.playbook("endpoints", inventory, log="upgrade-endpoints")
    risky_tables = [table for table in risky.find(programs.BUILD / "endpoints.json") if table.format == form]
    newer = {table.table for table in risky_tables if table.risk.newer}
    unknown = {table.table for table in risky_tables if table.risk.effect == features.UNKNOWN}
    return sorted(newer), sorted(unknown - newer)
