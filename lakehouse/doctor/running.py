"""Checks that a process runs with the settings of its configuration file."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from xml.etree import ElementTree as ET

from lakehouse.doctor.daemons import waits
from lakehouse.doctor.model import Case, Check, Fault, Snapshot, settings
from lakehouse.doctor.probes import METASTORE_KEY
from lakehouse.maybe import both
from lakehouse.remote.probing import Reply
from lakehouse.status.model import Placed
from lakehouse.validation.finding import Level

# Settings that the kit never prints, and placeholders of components for them.
_SECRET = re.compile(r"password|secret|token|credential|access.?key", re.IGNORECASE)
_HIDDEN = {"<redacted>", "******", "*********(redacted)"}
# Settings that Flink changes at its start: it resolves names, and chooses defaults.
_FLINKS_OWN = re.compile(
    r"^(jobmanager\.(rpc\.(address|port)|bind-host)|rest\.(address|port|bind-.*)|blob\.server\.port|io\.tmp\.dirs"
    r"|jobmanager\.memory\..*|web\.tmpdir)$"
)
# A setting on the page of Spark's master.
_ROW = re.compile(r"<td>(spark\.[^<]+)</td><td>([^<]*)</td>")
# Such as 60m, which is 60.00m to Trino.
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-zA-Z]*)")

Settings = Mapping[str, str]


@dataclass(frozen=True)
class Pair:
    """A file, from a `part` of a host's reply, and the `answer` of the service that reads it.

    Keys that only one of the two has are not compared; `key` maps a key of the file to one of the service.
    With `any_host` any host of the service may be needed for the answer, and a silent one explains its lack.
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


def _compared(*pairs: Pair) -> Callable[[Snapshot], Iterator[Case]]:
    """Return the check of these files."""

    def cases(snapshot: Snapshot) -> Iterator[Case]:
        for pair in pairs:
            placed = _where(snapshot, pair)
            # Another check reports that a service needs a restart.
            if placed and not waits(snapshot, placed):
                process_settings = snapshot.answers[pair.answer].then(_text_of).then(pair.running)
                file_settings = snapshot.part(placed.host, pair.part).then(pair.written)
                silent = (
                    candidate
                    for candidate in snapshot.placed(pair.service)
                    if pair.any_host and not candidate.state.known
                )
                faults = both(file_settings, process_settings, partial(_differing, snapshot, pair, placed))
                yield Case(placed.host, faults, next(silent, placed))

    return cases


def _text_of(reply: Reply) -> str:
    return reply.text


def _where(snapshot: Snapshot, pair: Pair) -> Placed | None:
    """Return the service on a host of the group; None where no host runs it."""
    hosts = {host.name for host in snapshot.cluster.running(pair.group)}
    return next((placed for placed in snapshot.placed(pair.service) if placed.host in hosts), None)


def _differing(
    snapshot: Snapshot, pair: Pair, placed: Placed, written: Settings, running: Settings
) -> tuple[Fault, ...]:
    faults = []
    for name, expected in sorted(written.items()):
        actual = running.get(pair.key(name), expected).strip()
        # Placeholders of secrets differ.
        hidden = actual in _HIDDEN or _SECRET.search(name)
        if not _same(expected, actual) and "${" not in expected and not hidden:
            fact = f"{name} of {pair.file} is {actual} in the process"
            faults.append(Fault(fact, snapshot.restart(placed), expected, Level.WARNING))
    return tuple(faults)


def _same(value: str, other_value: str) -> bool:
    """Return whether two values are equal, also such as 4 and 4.0, or 60m and 60.00m."""
    quantity, other_quantity = _QUANTITY.fullmatch(value), _QUANTITY.fullmatch(other_value)
    if quantity and other_quantity:
        return (float(quantity[1]), quantity[2]) == (float(other_quantity[1]), other_quantity[2])
    return value == other_value


def _xml(text: str) -> Settings:
    """Parse a configuration file of Hadoop or Hive."""
    try:
        root = ET.fromstring(text)  # noqa: S314 -- the kit's own file
    except ET.ParseError as error:
        raise ValueError(f"no XML: {error}") from error
    return {
        element.findtext("name", "").strip(): element.findtext("value", "").strip()
        for element in root.iter("property")
    }


def _lines(text: str) -> Settings:
    """Parse a properties file."""
    rows = [line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#")]
    if not rows or any(len(row) < 2 for row in rows):  # noqa: PLR2004 -- a key and a value
        raise ValueError("no properties")
    return {key.strip(): value.strip() for key, value in rows}


def _of_namenode(file: str, text: str) -> Settings:
    """Return the settings that the NameNode has read from a file."""
    properties = (row for row in json.loads(text)["properties"] if str(row.get("resource")).endswith(file))
    return {row["key"]: str(row["value"]) for row in properties}


def _of_jobmanager(text: str) -> Settings:
    return {row["key"]: str(row["value"]) for row in json.loads(text) if not _FLINKS_OWN.match(row["key"])}


def _flink_file(text: str) -> Settings:
    items = settings(text).items()
    return {key: _text(value) for key, value in items if not isinstance(value, list)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _of_master(text: str) -> Settings:
    """Parse the page with the settings of Spark's master."""
    rows = {html.unescape(key): html.unescape(value) for key, value in _ROW.findall(text)}
    if not rows:
        raise ValueError("the page of Spark's master shows no settings")
    return rows


def _of_coordinator(text: str) -> Settings:
    """Return the defaults of Trino's session properties, the third column of a row."""
    return {str(row[0]): str(row[2]) for row in json.loads(text)}


def _of_sessions(key: str) -> str:
    """Return the session property of a setting: query_max_run_time for query.max-run-time."""
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
