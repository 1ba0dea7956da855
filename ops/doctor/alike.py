"""Checks of what has to be the same on all hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from lakehouse.validation.finding import Level
from ops.doctor.model import Case, Check, Fault, Seen, judged
from ops.maybe import Answer
from ops.status import reading

Read = Callable[[Seen, str], Answer[Mapping[str, str]]]


def _differ(read: Read, what: str, level: Level) -> Callable[[Seen], Iterator[Case]]:
    """Return a check that every host has of a thing what most of them have."""

    def cases(seen: Seen) -> Iterator[Case]:
        answers = {host.name: read(seen, host.name) for host in seen.cluster.hosts}
        values: dict[str, Counter[str]] = {}
        for answer in answers.values():
            for name, value in (answer.value or {}).items():
                values.setdefault(name, Counter())[value] += 1
        usual = {name: found.most_common(1)[0][0] for name, found in values.items()}

        def other(own: Mapping[str, str]) -> Iterator[Fault]:
            for name, value in own.items():
                if value != usual[name]:
                    yield Fault(
                        f"{what} {name} is {value[:24]}", seen.site, f"{usual[name][:24]} as elsewhere", level
                    )

        for host, answer in answers.items():
            yield Case(host, judged(answer, other))

    return cases


def _releases(seen: Seen, host: str) -> Answer[Mapping[str, str]]:
    prefix = str(seen.variable(host, "lakehouse_install_dir"))
    return seen.part(host, "releases").then(lambda text: reading.builds(text, prefix))


def _packages(seen: Seen, host: str) -> Answer[Mapping[str, str]]:
    rows = seen.part(host, "packages").then(lambda text: [line.split() for line in text.splitlines() if line])
    return rows.then(lambda found: {name: version for _, name, version in found})


def _catalogs(seen: Seen) -> Iterator[Case]:
    hosts = {placed.host for placed in seen.placed("trino")}
    nothing: Answer[Mapping[str, str]] = Answer({})

    def read(there: Seen, host: str) -> Answer[Mapping[str, str]]:
        return there.part(host, "catalogs").then(_digests) if host in hosts else nothing

    yield from (
        case for case in _differ(read, "the digest of catalog", Level.FAULT)(seen) if case.host in hosts
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
