"""Preconditions of HDFS for stopping a NameNode or a DataNode: block counts, and where replicas are.

`lakehouse restart` and other commands ask from the control machine, `lakehouse_daemon` on the host that it
restarts; the answers are judged here. Standard library only: it runs on the nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from . import fsck
from .counting import counted
from .datanode_lists import unheard
from .probes import fetch

# A row of the catalogue names one: `blocks` asks what the NameNode counts, `replicas` also how many DataNodes
# serve and whether each block has a replica elsewhere.
BLOCKS, REPLICAS = "blocks", "replicas"
GATES = (BLOCKS, REPLICAS)
_JMX = "/jmx?qry=Hadoop:service=NameNode,name="
# Beans with the same counters may be ten seconds old: FSNamesystem keeps its answers as all metrics do.
COUNTERS, INFO = f"{_JMX}*State", f"{_JMX}NameNodeInfo"
# A report of all files takes some seconds per million blocks.
REPORT_SECONDS = 120.0


@dataclass(frozen=True)
class Blocks:
    """What the NameNode counts; `placed` DataNodes are to be live, for `replication` copies of a block."""

    safemode: str
    live: int
    placed: int
    replication: int
    missing: int
    lacking: int


@dataclass(frozen=True)
class Unknown:
    """Why there is no answer. It is never read as empty, as zero or as good."""

    why: str


@dataclass(frozen=True)
class Reason:
    """Why a unit may not be stopped; --force overrules `forced` reasons, which never lose data."""

    what: str
    forced: bool = False


def blocks(counters: Mapping[str, Any], info: Mapping[str, Any], placed: int, replication: int) -> Blocks:
    """Read two answers of the NameNode: its state and its NameNodeInfo."""
    return Blocks(
        safemode=str(info["Safemode"]),
        live=int(counters["NumLiveDataNodes"]),
        placed=placed,
        replication=replication,
        missing=int(info["NumberOfMissingBlocks"]),
        lacking=lacking(counters),
    )


def lacking(counters: Mapping[str, Any]) -> int:
    """Return how many blocks have too few replicas, those that are being copied too."""
    return int(counters["LowRedundancyBlocks"]) + int(counters["PendingReconstructionBlocks"])


def beans(text: str) -> dict[str, Any]:
    """Read what Hadoop answers over JMX: the attributes of all beans together."""
    return {key: value for bean in json.loads(text)["beans"] for key, value in bean.items()}


def down(replication: int, datanodes: int) -> int:
    """Return how many DataNodes may be down at once: max(1, min(replication - 2, datanodes - 2))."""
    return max(1, min(replication - 2, datanodes - 2))


def reasons(gate: str, counts: Blocks | Unknown, last: tuple[str, ...] | Unknown = ()) -> tuple[Reason, ...]:
    """Return the reasons that close a gate of GATES; `last` are files of blocks without another replica."""
    result = (
        [Reason(f"the NameNode does not count its blocks: {counts.why}")]
        if isinstance(counts, Unknown)
        else list(_counted(gate, counts))
    )
    if isinstance(last, Unknown):
        result.append(Reason(f"where the replicas are is unknown: {last.why}"))
    elif last:
        result.append(
            Reason(
                f"{counted(len(last), 'block')} would have no live replica, such as one of {last[0]}; such"
                " files need two replicas (hdfs dfs -setrep 2), or their writer has to end"
            )
        )
    return tuple(result)


def _counted(gate: str, counts: Blocks) -> Iterator[Reason]:
    if counts.safemode:
        yield Reason("HDFS is in safe mode: no client can write, and nothing is copied", forced=True)
    if counts.missing:
        fact = counted(counts.missing, "block is missing already", "blocks are missing already")
        yield Reason(fact, forced=True)
    if counts.lacking:
        fact = counted(counts.lacking, "block lacks a replica", "blocks lack a replica")
        yield Reason(fact, forced=True)
    stopped, allowed = counts.placed - counts.live, down(counts.replication, counts.placed)
    if gate == REPLICAS and stopped + 1 > allowed:
        datanodes = f"{stopped} of {counted(counts.placed, 'DataNode')}"
        fact = f"{datanodes} {'is' if stopped == 1 else 'are'} down already"
        yield Reason(
            f"{fact}: with this one {stopped + 1} would be, and at most {allowed} may be", forced=True
        )


def report_path(user: str, path: str = "/") -> str:
    """Return the path of the NameNode's report of all files, including open ones, with their replicas."""
    parameters = {"ugi": user, "path": path, "files": 1, "blocks": 1, "locations": 1, "openforwrite": 1}
    return f"/fsck?{urlencode(parameters, safe='/')}"


def last_replicas(
    report: str, leaving: str, silent: frozenset[str] = frozenset(), *, back: bool
) -> tuple[str, ...]:
    """Return the file of each block whose replicas are all on `leaving` and `silent` addresses.

    `report` is the NameNode's response to `report_path`. With `back` the DataNode announces its restart:
    blocks under construction are excluded, because a client that writes to this DataNode alone waits for it
    (HDFS: DataStreamer.shouldWaitForRestart). Raises ValueError as `fsck` does.
    """
    return tuple(
        path
        for path, addresses in fsck.replicas(report, written=not back)
        if (places := addresses - silent) and places <= {leaving}
    )


def has_elsewhere(datanodes: int, *, back: bool) -> bool:
    """Whether replicas can be elsewhere, or need to be: a single DataNode may stop if it restarts.

    HDFS is unavailable meanwhile, as during a restart of the NameNode, and no data is lost.
    """
    return datanodes > 1 or not back


def ask(probe: dict[str, Any]) -> str | None:
    """Return what shuts the gate of this host's DataNode (``host``); None where it is open.

    The NameNode at ``url`` is asked in the name of ``user``; ``datanodes`` are the addresses by host, and a
    new file has ``replication`` replicas. A DataNode of which the NameNode does not hear may be restarted:
    nothing reads from it.
    """
    url, host, datanodes = probe["url"], probe["host"], probe["datanodes"]
    counts: Blocks | Unknown
    last: tuple[str, ...] | Unknown
    try:
        info = beans(fetch(f"{url}{INFO}").decode())
        silent = unheard(info)
        if host in silent:
            return None
        counters = beans(fetch(f"{url}{COUNTERS}").decode())
        counts = blocks(counters, info, len(datanodes), probe["replication"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        silent, counts = frozenset(), Unknown(str(error))
    is_asked = probe["gate"] == REPLICAS and has_elsewhere(len(datanodes), back=True)
    try:
        last = _last(probe, silent) if is_asked else ()
    except (OSError, ValueError) as error:
        last = Unknown(str(error))
    return "; ".join(reason.what for reason in reasons(probe["gate"], counts, last)) or None


def _last(probe: dict[str, Any], silent: frozenset[str]) -> tuple[str, ...]:
    datanodes: Mapping[str, str] = probe["datanodes"]
    url = f"{probe['url']}{report_path(probe['user'])}"
    report = fetch(url, timeout=REPORT_SECONDS, most=fsck.MOST_BYTES).decode()
    silent_addresses = frozenset(datanodes[name] for name in silent if name in datanodes)
    return last_replicas(report, datanodes[probe["host"]], silent_addresses, back=True)
