"""Drift: what a host has otherwise than its manifest, which `site.yml` keeps."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.validation.finding import Level
from ops.doctor.model import Case, Check, Fault, Seen, judged
from ops.status import reading
from plugins.module_utils.lakehouse import host_state


def _drift(seen: Seen) -> Iterator[Case]:
    """Each host is as its manifest says."""

    def differing(lines: tuple[str, ...]) -> Iterator[Fault]:
        for line in lines:
            if line.startswith(host_state.NO_MANIFEST):
                yield Fault(line, seen.site, "the one of the last run of site.yml", Level.WARNING)
            else:
                yield Fault(line, seen.site)

    for host in seen.cluster.hosts:
        lines = seen.part(host.name, "manifest").then(reading.listed)
        yield Case(host.name, judged(lines, differing))


CHECKS = (Check("host.drift", "a host differs from what the last run of site.yml has put there", _drift),)
