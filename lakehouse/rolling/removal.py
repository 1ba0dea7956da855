"""`lakehouse remove`: uninstall a component that the inventory no longer places on any host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.model import placement, services
from lakehouse.model.inventory import Host
from lakehouse.model.services import Service
from lakehouse.next_command import command
from lakehouse.remote import operations
from lakehouse.remote.operations import Operation
from lakehouse.rolling import run
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Refusal, Stopped
from lakehouse.rolling.run import Request, Running, Work
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.nearest import did_you_mean

VERB = "remove"
# A Trino worker drains first.
_STOP_SECONDS = 900.0
_SECONDS = 30.0
# The first line of every file that the kit writes.
_OURS = "Managed by the lakehouse kit"
_UNITS = "/etc/systemd/system"
# Programs of a host that start from a release.
_PROGRAMS = "/usr/local/bin"
# Further releases of a component, such as its command line on hosts without the service.
_MORE = {"trino": ("trino-cli",)}
# Folders of configuration and code that do not have the component's name, which may be a person's.
_FOLDERS = {"monitoring": ("{config}/lakehouse-monitoring", "/usr/local/lib/lakehouse-monitoring")}


@dataclass(frozen=True)
class Places:
    """Units, folders, releases and data of a component on a host; programs start from a release."""

    units: tuple[str, ...]
    folders: tuple[str, ...]
    releases: tuple[str, ...]
    data: str

    def removed_folders(self, *, data: bool) -> tuple[str, ...]:
        """Return the folders to remove, with or without the data."""
        return (*self.folders, *self.releases, *((self.data,) if data else ()))


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: the hosts where files of the component are left.

    Raises UsageError for a required or unknown component, LakehouseError for a host that does not answer.
    """
    component, data, path = str(request.arguments["component"]), bool(request.arguments["data"]), request.path
    components = services.load().removable()
    if component not in components:
        raise UsageError(
            f"{component} is nothing that a cluster can do without{did_you_mean(component, components)}",
            f"one of: {', '.join(components)}",
        )
    hosts = [
        host.name for host in living.cluster.hosts if placed(living.cluster.services[host.name], component)
    ]
    places_by_host = {
        host.name: places(host, component, components[component]) for host in living.cluster.hosts
    }
    rows = [] if hosts else [{"host": name} for name in _having(living, places_by_host, path, data=data)]
    suffix = "with its data" if data else "its data stays"
    refusal = Refusal(
        f"the inventory has {component} on {', '.join(hosts)}", f"take these out of its groups in {path}"
    )
    return Work(
        target=component,
        arguments=request.arguments,
        plan=rows,
        lines=[
            f"{VERB} {component}: units, releases and configuration, {suffix}",
            *(f"  {row['host']}: {', '.join(places_by_host[row['host']].units)}" for row in rows),
        ],
        question=f"Remove {component} from {counted(len(rows), 'host')}?",
        do=partial(_do, places_by_host, [row["host"] for row in rows], request),
        danger=f"What {component} has written to the disks of its hosts is lost." if data else "",
        following=f".venv/bin/ansible-playbook -i {path} playbooks/site.yml",
        refusal=refusal if hosts else None,
        words=run.typed(component, {"--data": data}),
    )


def placed(rows: Iterable[Service], component: str) -> bool:
    """Return whether a component is among the services of a host."""
    return any(row.role == component for row in rows)


def places(host: Host, component: str, rows: Iterable[Service]) -> Places:
    """Return the paths and units that roles create for a component on a host."""
    install, config, data = (
        host.variables[f"lakehouse_{name}_dir"] for name in ("install", "config", "data")
    )
    return Places(
        units=tuple(dict.fromkeys(placement.unit(row) for row in rows)),
        folders=tuple(
            folder.format(config=config) for folder in _FOLDERS.get(component, (f"{{config}}/{component}",))
        ),
        releases=tuple(
            f"{install}/{name}"
            for name in (component, *_MORE.get(component, ()))
            if any(row.release for row in rows)
        ),
        data=f"{data}/{component}",
    )


def _having(living: Living, places_by_host: Mapping[str, Places], path: str, *, data: bool) -> list[str]:
    """Return the hosts where something of the component is left."""
    hosts = []
    for name, places in places_by_host.items():
        answer = living.bring(name, removing(places, data=data), _SECONDS, check=True)
        if answer.value is None:
            raise LakehouseError(f"{name} does not say what it has: {answer.why}", command("doctor", path))
        hosts += [name] if answer.value else []
    return hosts


def removing(places: Places, *, data: bool) -> tuple[Operation, ...]:
    """Return the operations that uninstall a component from a host; units end before their files go."""
    return (
        *(operations.stopped(f"{unit}.service", enabled=False) for unit in places.units),
        *(operations.no_file(f"{_UNITS}/{unit}.service") for unit in places.units),
        *(operations.no_folder(f"{_UNITS}/{unit}.service.d") for unit in places.units),
        *(operations.reread(f"{unit}.service") for unit in places.units),
        *(operations.no_files_with(_PROGRAMS, f"{release}/", _OURS) for release in places.releases),
        *(operations.no_folder(folder) for folder in places.removed_folders(data=data)),
    )


def _do(
    places_by_host: Mapping[str, Places], hosts: Sequence[str], request: Request, running: Running
) -> tuple[str, ...]:
    component, data = str(request.arguments["component"]), bool(request.arguments["data"])
    for host in hosts:
        running.begins(host, component)
        running.say(f"{component} on {host}: stops, and goes")
        answer = running.living.bring(host, removing(places_by_host[host], data=data), _STOP_SECONDS)
        if not answer.known:
            raise Stopped(Ending.HALFWAY, f"{component} on {host}: {answer.why}", "")
        running.done(host, component)
    return (f"{component} is gone from {counted(len(hosts), 'host')}",)
