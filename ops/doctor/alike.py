"""Checks of what has to be the same: on all hosts, and in a file and the process that has read it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from xml.etree import ElementTree as ET

from lakehouse.validation.finding import Level
from ops.answer import Answer, both
from ops.doctor.daemons import waits
from ops.doctor.model import Case, Check, Fault, Seen, judged, settings
from ops.status import reading

# What the kit never prints.
_SECRET = re.compile(r"password|secret|token|credential|access.?key", re.IGNORECASE)
# What Hadoop and Flink say in place of one.
_HIDDEN = {"<redacted>", "******"}
# What Flink sets itself when it starts: names become addresses, and what was left open is chosen.
_FLINKS_OWN = re.compile(
    r"^(jobmanager\.(rpc\.(address|port)|bind-host)|rest\.(address|port|bind-.*)|blob\.server\.port|io\.tmp\.dirs"
    r"|jobmanager\.memory\..*|web\.tmpdir)$"
)
_FILES = {"hdfs_site": "hdfs-site.xml", "core_site": "core-site.xml"}

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


def _properties(text: str) -> dict[str, str]:
    """Read a file of Hadoop's."""
    try:
        root = ET.fromstring(text)  # noqa: S314 -- the kit's own file
    except ET.ParseError as error:
        raise ValueError(f"no XML: {error}") from error
    return {
        one.findtext("name", "").strip(): one.findtext("value", "").strip() for one in root.iter("property")
    }


def _namenode(seen: Seen) -> Iterator[Case]:
    """What the NameNode took from a file is what stands there; what its code has set since is its own."""
    namenode = seen.the("namenode")

    def differs(file: str, conf: Mapping[str, Any], text: str) -> tuple[Fault, ...]:
        taken = (one for one in conf["properties"] if str(one.get("resource")).endswith(file))
        running = {one["key"]: one["value"] for one in taken}
        return tuple(_differing(seen, _properties(text), running, file))

    # Of one that waits for a restart that was said.
    if waits(seen, namenode):
        return
    for part, file in _FILES.items():
        text = seen.part(namenode.host, part)
        found = both(seen.document("namenode_conf"), text, partial(differs, file))
        yield Case(namenode.host, found, namenode)


def _flink(seen: Seen) -> Iterator[Case]:
    if "flink_config" not in seen.answers:
        return
    manager = seen.the("flink_jobmanager")
    if waits(seen, manager):
        return

    def differs(said: list[dict[str, str]], text: str) -> tuple[Fault, ...]:
        written = {key: _text(value) for key, value in settings(text).items() if not isinstance(value, list)}
        running = {one["key"]: one["value"] for one in said if not _FLINKS_OWN.match(one["key"])}
        return tuple(_differing(seen, written, running, "config.yaml"))

    found = both(seen.document("flink_config"), seen.part(manager.host, "flink_config"), differs)
    yield Case(manager.host, found, manager)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _differing(
    seen: Seen, written: Mapping[str, str], running: Mapping[str, str], file: str
) -> Iterator[Fault]:
    for key in sorted(written.keys() & running.keys()):
        now, then = written[key], str(running[key]).strip()
        # A reference was resolved, a secret was hidden.
        hidden = then in _HIDDEN or _SECRET.search(key)
        if not _same(now, then) and "${" not in now and not hidden:
            yield Fault(f"{key} of {file} is {then} in the process", seen.site, now, Level.WARNING)


def _same(one: str, other: str) -> bool:
    """Tell whether two settings say the same, such as 4 and 4.0."""
    try:
        return one == other or float(one) == float(other)
    except ValueError:
        return False


CHECKS = (
    Check(
        "versions.releases",
        "hosts run different releases",
        _differ(_releases, "the release of", Level.WARNING),
    ),
    Check(
        "versions.java", "hosts have different packages of Java", _differ(_packages, "package", Level.WARNING)
    ),
    Check("trino.catalogs", "a catalog is not the same on every node of Trino", _catalogs),
    Check("config.namenode", "the NameNode runs with other settings than its files have", _namenode),
    Check("config.flink", "the JobManager runs with other settings than its file has", _flink),
)
