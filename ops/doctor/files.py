"""Checks of files on the hosts: those of releases, and those that the kit has written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from lakehouse import yamlfile
from lakehouse.run import ROOT
from lakehouse.validation.finding import Level
from ops.doctor.model import Case, Check, Fault, Seen, judged
from ops.doctor.probes import NO_LIST
from ops.status import reading

_MODULE = "lakehouse_release"


@cache
def _samples() -> frozenset[str]:
    """Return the releases that `playbooks/load.yml` installs: sample data, which is read once."""
    plays = yamlfile.read(ROOT / "playbooks" / "load.yml")
    tasks = [task for play in plays for task in play.get("tasks", ())]
    return frozenset(str(task[_MODULE]["component"]) for task in tasks if _MODULE in task)


def _releases(seen: Seen) -> Iterator[Case]:
    """Each release that is in use has the files of its list, by name and size."""

    def lacking(lines: tuple[str, ...]) -> Iterator[Fault]:
        missing: dict[str, list[str]] = {}
        without_list = []
        for line in lines:
            link, rest = line.split(" ", 1)
            component = link.split("/")[-2]
            if component in _samples():
                continue
            if rest == NO_LIST:
                without_list.append(component)
            else:
                missing.setdefault(component, []).append(rest.split(" ", 1)[1])
        for component, names in missing.items():
            fact = f"{_counted(names)} of the release of {component}: missing, or of another size"
            yield Fault(fact, seen.site)
        if without_list:
            fact = f"no list of the files of the release of {', '.join(without_list)}"
            yield Fault(fact, seen.site, "one from when it was unpacked", Level.WARNING)

    for host in seen.cluster.hosts:
        lines = seen.part(host.name, "release_files").then(reading.listed)
        yield Case(host.name, judged(lines, lacking))


def _written(seen: Seen) -> Iterator[Case]:
    """Each file of the kit is as the kit has written it."""

    def differing(lines: tuple[str, ...]) -> Iterator[Fault]:
        if lines == (NO_LIST,):
            fact = "no record of the files that the kit has written"
            yield Fault(fact, seen.site, "one from the last run of site.yml", Level.WARNING)
        elif lines:
            names = [line.rpartition(": ")[0] for line in lines]
            yield Fault(f"{_counted(names)}: changed or gone since the kit has written it", seen.site)

    for host in seen.cluster.hosts:
        lines = seen.part(host.name, "written_files").then(reading.listed)
        yield Case(host.name, judged(lines, differing))


def _counted(names: list[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if names[1:] else "")


CHECKS = (
    Check("files.release", "a release lacks a file, or has one of another size", _releases),
    Check("files.written", "a file of configuration is not what the kit has written", _written),
)
