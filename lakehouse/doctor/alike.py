"""Checks of values that must be the same on all hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from lakehouse.doctor.model import Case, Check, Fault, Snapshot, judged
from lakehouse.maybe import Answer
from lakehouse.status import reading
from lakehouse.validation.finding import Level

Read = Callable[[Snapshot, str], Answer[Mapping[str, str]]]


def _differ(read: Read, noun: str, level: Level) -> Callable[[Snapshot], Iterator[Case]]:
    """Return a check that each host has the value that most hosts have."""

    def cases(snapshot: Snapshot) -> Iterator[Case]:
        answers = {host.name: read(snapshot, host.name) for host in snapshot.cluster.hosts}
        values: dict[str, Counter[str]] = {}
        for answer in answers.values():
            for name, value in (answer.value or {}).items():
                values.setdefault(name, Counter())[value] += 1
        usual = {name: counter.most_common(1)[0][0] for name, counter in values.items()}

        def differing(host_values: Mapping[str, str]) -> Iterator[Fault]:
            for name, value in host_values.items():
                if value != usual[name]:
                    yield Fault(
                        f"{noun} {name} is {value[:24]}",
                        snapshot.site,
                        f"{usual[name][:24]} as elsewhere",
                        level,
                    )

        for host, answer in answers.items():
            yield Case(host, judged(answer, differing))

    return cases


def _releases(snapshot: Snapshot, host: str) -> Answer[Mapping[str, str]]:
    prefix = str(snapshot.variable(host, "lakehouse_install_dir"))
    return snapshot.part(host, "releases").then(lambda text: reading.builds(text, prefix))


def _packages(snapshot: Snapshot, host: str) -> Answer[Mapping[str, str]]:
    rows = snapshot.part(host, "packages").then(
        lambda text: [line.split() for line in text.splitlines() if line]
    )
    return rows.then(lambda packages: {name: version for _, name, version in packages})


def _catalogs(snapshot: Snapshot) -> Iterator[Case]:
    hosts = {placed.host for placed in snapshot.placed("trino")}
    no_catalogs: Answer[Mapping[str, str]] = Answer({})

    def read(snapshot: Snapshot, host: str) -> Answer[Mapping[str, str]]:
        return snapshot.part(host, "catalogs").then(_digests) if host in hosts else no_catalogs

    yield from (
        case for case in _differ(read, "the digest of catalog", Level.FAULT)(snapshot) if case.host in hosts
    )


def _digests(text: str) -> dict[str, str]:
    return {name: digest for digest, name in (line.split() for line in text.splitlines() if line)}


CHECKS = (
    Check(
        "versions.releases",
        "hosts run different releases",
        _differ(_releases, "the release of", Level.WARNING),
    ),
    Check(
        "versions.java",
        "hosts have different packages of Java",
        _differ(_packages, "package", Level.WARNING),
        "upgrade the package where it is older, and restart the services of that host",
    ),
    Check("trino.catalogs", "a catalog is not the same on every node of Trino", _catalogs),
)
