"""Check of drift: differences between a host and its manifest, which `site.yml` writes."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.doctor.model import Case, Check, Fault, Snapshot, judged
from lakehouse.status import reading
from lakehouse.validation.finding import Level
from plugins.module_utils.lakehouse import host_state


def _drift(snapshot: Snapshot) -> Iterator[Case]:
    """Check that each host equals its manifest."""

    def differing(lines: tuple[str, ...]) -> Iterator[Fault]:
        for line in lines:
            if line.startswith(host_state.NO_MANIFEST):
                yield Fault(line, snapshot.site, "the one of the last run of site.yml", Level.WARNING)
            else:
                yield Fault(line, snapshot.site)

    for host in snapshot.cluster.hosts:
        lines = snapshot.part(host.name, "manifest").then(reading.parse_list)
        yield Case(host.name, judged(lines, differing))


CHECKS = (Check("host.drift", "a host differs from what the last run of site.yml has put there", _drift),)
