"""Checks that a process runs with what its file says, setting by setting."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from xml.etree import ElementTree as ET

from lakehouse.validation.finding import Level
from ops.doctor.daemons import waits
from ops.doctor.model import Case, Check, Fault, Seen, settings
from ops.doctor.probes import METASTORE_KEY
from ops.maybe import both
from ops.probing import Reply
from ops.status.model import Placed

# What the kit never prints, and what a component says in place of it.
_SECRET = re.compile(r"password|secret|token|credential|access.?key", re.IGNORECASE)
_HIDDEN = {"<redacted>", "******", "*********(redacted)"}
# What Flink sets itself when it starts: names become addresses, and what was left open is chosen.
_FLINKS_OWN = re.compile(
    r"^(jobmanager\.(rpc\.(address|port)|bind-host)|rest\.(address|port|bind-.*)|blob\.server\.port|io\.tmp\.dirs"
    r"|jobmanager\.memory\..*|web\.tmpdir)$"
)
# A row of Spark's page.
_ROW = re.compile(r"<td>(spark\.[^<]+)</td><td>([^<]*)</td>")
# Such as 60m, which is 60.00m to Trino.
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-zA-Z]*)")

Settings = Mapping[str, str]


@dataclass(frozen=True)
class Pair:
    """A file, in a `part` of what a host says, and the `answer` of the service that has read it.

    Keys that only one of the two has are not compared; `key` is how the service calls that of a file. Where
    `any_host` of the service may make the answer, one that is silent is why there is none.
    """

    group: str
    service: str
    file: str
    part: str
    answer: str
    written: Callable[[str], Settings]
    running: Callable[[str], Settings]
    key: Callable[[str], str] = str
    any_host: bool = False


def _compared(*pairs: Pair) -> Callable[[Seen], Iterator[Case]]:
    """Return a check of each of these files."""

    def cases(seen: Seen) -> Iterator[Case]:
        for pair in pairs:
            placed = _where(seen, pair)
            # Of one that waits for a restart that was said.
            if placed and not waits(seen, placed):
                said = seen.answers[pair.answer].then(_text_of).then(pair.running)
                text = seen.part(placed.host, pair.part).then(pair.written)
                silent = (one for one in seen.placed(pair.service) if pair.any_host and not one.state.known)
                found = both(text, said, partial(_differing, seen, pair, placed))
                yield Case(placed.host, found, next(silent, placed))

    return cases


def _text_of(reply: Reply) -> str:
    return reply.text


def _where(seen: Seen, pair: Pair) -> Placed | None:
    """Return the service on the group's host, which others may have too; None where no host runs it."""
    hosts = {host.name for host in seen.cluster.running(pair.group)}
    return next((placed for placed in seen.placed(pair.service) if placed.host in hosts), None)


def _differing(
    seen: Seen, pair: Pair, placed: Placed, written: Settings, running: Settings
) -> tuple[Fault, ...]:
    found = []
    for name, now in sorted(written.items()):
        then = running.get(pair.key(name), now).strip()
        # A reference was resolved, a secret was hidden.
        hidden = then in _HIDDEN or _SECRET.search(name)
        if not _same(now, then) and "${" not in now and not hidden:
            fact = f"{name} of {pair.file} is {then} in the process"
            found.append(Fault(fact, seen.restart(placed), now, Level.WARNING))
    return tuple(found)


def _same(one: str, other: str) -> bool:
    """Tell whether two settings say the same, such as 4 and 4.0, or 60m and 60.00m."""
    first, second = _QUANTITY.fullmatch(one), _QUANTITY.fullmatch(other)
    if first and second:
        return (float(first[1]), first[2]) == (float(second[1]), second[2])
    return one == other


def _xml(text: str) -> Settings:
    """Read a file of Hadoop's or Hive's."""
    try:
        root = ET.fromstring(text)  # noqa: S314 -- the kit's own file
    except ET.ParseError as error:
        raise ValueError(f"no XML: {error}") from error
    return {
        one.findtext("name", "").strip(): one.findtext("value", "").strip() for one in root.iter("property")
    }


def _lines(text: str) -> Settings:
    """Read a file of properties, a key and its value on each line."""
    rows = [line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#")]
    if not rows or any(len(row) < 2 for row in rows):  # noqa: PLR2004 -- a key and a value
        raise ValueError("no properties")
    return {key.strip(): value.strip() for key, value in rows}


def _of_namenode(file: str, text: str) -> Settings:
    """Return what the NameNode took from a file; what its code has set since is its own."""
    taken = (one for one in json.loads(text)["properties"] if str(one.get("resource")).endswith(file))
    return {one["key"]: str(one["value"]) for one in taken}


def _of_jobmanager(text: str) -> Settings:
    return {one["key"]: str(one["value"]) for one in json.loads(text) if not _FLINKS_OWN.match(one["key"])}


def _flink_file(text: str) -> Settings:
    found = settings(text).items()
    return {key: _text(value) for key, value in found if not isinstance(value, list)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _of_master(text: str) -> Settings:
    """Read the page on which Spark's master shows its settings."""
    found = {html.unescape(key): html.unescape(value) for key, value in _ROW.findall(text)}
    if not found:
        raise ValueError("the page of Spark's master shows no settings")
    return found


def _of_coordinator(text: str) -> Settings:
    """Return what sessions of Trino begin with: name, value, default, type, about."""
    return {str(row[0]): str(row[2]) for row in json.loads(text)}


def _of_sessions(key: str) -> str:
    """Return what sessions call it: query.max-run-time is their query_max_run_time."""
    return re.sub(r"[.-]", "_", key)


def _of_metastore(text: str) -> Settings:
    return {METASTORE_KEY: text}


CHECKS = (
    Check(
        "config.namenode",
        "the NameNode runs with other settings than its files have",
        _compared(
            *(
                Pair("namenode", "namenode", file, part, "namenode_conf", _xml, partial(_of_namenode, file))
                for part, file in (("hdfs_site", "hdfs-site.xml"), ("core_site", "core-site.xml"))
            )
        ),
    ),
    Check(
        "config.metastore",
        "the metastore runs with another setting than its file has",
        _compared(
            Pair(
                "metastore", "metastore", "hive-site.xml", "hive_site", "metastore_conf", _xml, _of_metastore
            )
        ),
    ),
    Check(
        "config.spark",
        "Spark's master runs with other settings than its file has",
        _compared(
            Pair(
                "spark_master", "spark_master", "spark-master.conf",
                "spark_master_conf", "spark_environment", _lines, _of_master,
            )
        ),
    ),
    Check(
        "config.trino",
        "sessions of Trino begin with another setting than the coordinator's file has",
        _compared(
            Pair(
                "trino_coordinator", "trino", "config.properties",
                "trino_config", "trino_session", _lines, _of_coordinator, _of_sessions, any_host=True,
            )
        ),
    ),
    Check(
        "config.flink",
        "the JobManager runs with other settings than its file has",
        _compared(
            Pair(
                "flink_jobmanager", "flink_jobmanager", "config.yaml",
                "flink_config", "flink_config", _flink_file, _of_jobmanager,
            )
        ),
    ),
)  # fmt: skip
