"""`lakehouse remove`: what hosts still have of a component that the inventory places nowhere any more."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lakehouse import services
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.inventory import Host
from lakehouse.nearest import did_you_mean
from lakehouse.next_command import command
from lakehouse.services import Service
from ops.change import run
from ops.change.facts import Living
from ops.change.result import Ending, Refusal, Stopped
from ops.change.run import Request, Running, Work
from ops.status import placement
from plugins.module_utils.lakehouse.counting import counted

VERB = "remove"
# A worker of Trino ends its queries first.
_STOP_SECONDS = 900.0
_SECONDS = 30.0
# The first line of every file that the kit writes.
_OURS = "Managed by the lakehouse kit"
# Programs of a host that start from a release.
_PROGRAMS = "/usr/local/bin"
# What else has the component's name before it: its command line, on hosts without the service.
_MORE = {"trino": ("trino-cli",)}


@dataclass(frozen=True)
class Places:
    """What a component has on a host: units, folders, releases that programs start from, and data."""

    units: tuple[str, ...]
    folders: tuple[str, ...]
    releases: tuple[str, ...]
    data: str

    def gone(self, *, data: bool) -> tuple[str, ...]:
        """Return the folders that go, with their data or without."""
        return (*self.folders, *self.releases, *((self.data,) if data else ()))


def removable() -> dict[str, tuple[Service, ...]]:
    """Return the services of each component that a cluster can do without, by the component's name."""
    catalogue, found = services.load(), dict[str, tuple[Service, ...]]()
    for row in catalogue.services.values():
        found[row.role] = (*found.get(row.role, ()), row)
    optional = {*catalogue.sized(*services.DISPENSABLE)}
    return {role: own for role, own in found.items() if all(set(row.groups) <= optional for row in own)}


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: the hosts that still have something of it.

    Raises UsageError for a component that no cluster can do without, LakehouseError for a host that does not
    answer.
    """
    component, data, path = str(request.arguments["component"]), bool(request.arguments["data"]), request.path
    known = removable()
    if component not in known:
        raise UsageError(
            f"{component} is nothing that a cluster can do without{did_you_mean(component, known)}",
            f"one of: {', '.join(known)}",
        )
    here = [
        host.name for host in living.cluster.hosts if placed(living.cluster.services[host.name], component)
    ]
    there = {host.name: places(host, component, known[component]) for host in living.cluster.hosts}
    rows = [] if here else [{"host": name} for name in _having(living, there, path, data=data)]
    kept = "with its data" if data else "its data stays"
    refusal = Refusal(
        f"the inventory has {component} on {', '.join(here)}", f"take these out of its groups in {path}"
    )
    return Work(
        target=component,
        arguments=request.arguments,
        plan=rows,
        lines=[
            f"{VERB} {component}: units, releases and configuration, {kept}",
            *(f"  {row['host']}: {', '.join(there[row['host']].units)}" for row in rows),
        ],
        question=f"Remove {component} from {counted(len(rows), 'host')}?",
        do=partial(_do, there, [row["host"] for row in rows], request),
        danger=f"What {component} has written to the disks of its hosts is lost." if data else "",
        following=f".venv/bin/ansible-playbook -i {path} playbooks/site.yml",
        refusal=refusal if here else None,
        words=run.typed(component, {"--data": data}),
    )


def placed(rows: Iterable[Service], component: str) -> bool:
    """Tell whether a component is among the services of a host."""
    return any(row.role == component for row in rows)


def places(host: Host, component: str, rows: Iterable[Service]) -> Places:
    """Return where a component is on a host, by what the roles do."""
    install, config, data = (
        host.variables[f"lakehouse_{name}_dir"] for name in ("install", "config", "data")
    )
    return Places(
        units=tuple(dict.fromkeys(placement.unit(row) for row in rows)),
        folders=(f"{config}/{component}",),
        releases=tuple(f"{install}/{name}" for name in (component, *_MORE.get(component, ()))),
        data=f"{data}/{component}",
    )


def _having(living: Living, there: Mapping[str, Places], path: str, *, data: bool) -> list[str]:
    """Return the hosts that have something of it."""
    found = []
    for name, own in there.items():
        answer = living.do(name, looks(own, data=data), _SECONDS)
        if answer.value is None:
            raise LakehouseError(f"{name} does not say what it has: {answer.why}", command("doctor", path))
        found += [name] if answer.value.strip() else []
    return found


def looks(own: Places, *, data: bool) -> str:
    """Return what prints the paths that a component still has on a host."""
    units = [f"/etc/systemd/system/{unit}.service" for unit in own.units]
    paths = " ".join(map(shlex.quote, [*units, *own.gone(data=data)]))
    return f'for path in {paths}; do [ ! -e "$path" ] || echo "$path"; done'


def removes(own: Places, *, data: bool) -> str:
    """Return what takes a component off a host; what is gone already does not matter to it."""
    lines = [
        f"! [ -e /etc/systemd/system/{unit}.service ] || systemctl disable --now --quiet {unit}.service"
        for unit in own.units
    ]
    lines += [
        f"rm -rf /etc/systemd/system/{unit}.service /etc/systemd/system/{unit}.service.d"
        for unit in own.units
    ]
    lines += ["systemctl daemon-reload"]
    lines += [
        f"for program in $(grep -lsF {shlex.quote(f'{release}/')} {_PROGRAMS}/*); do"
        f' ! grep -qF "{_OURS}" "$program" || rm -f "$program"; done'
        for release in own.releases
    ]
    folders = " ".join(map(shlex.quote, own.gone(data=data)))
    return "\n".join(["set -e", *lines, f"rm -rf {folders}"])


def _do(
    there: Mapping[str, Places], hosts: Sequence[str], request: Request, running: Running
) -> tuple[str, ...]:
    component, data = str(request.arguments["component"]), bool(request.arguments["data"])
    for host in hosts:
        running.begins(host, component)
        running.say(f"{component} on {host}: stops, and goes")
        done = running.living.do(host, removes(there[host], data=data), _STOP_SECONDS)
        if not done.known:
            raise Stopped(Ending.HALFWAY, f"{component} on {host}: {done.why}", "")
        running.done(host, component)
    return (f"{component} is gone from {counted(len(hosts), 'host')}",)
