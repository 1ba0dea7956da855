"""Format a status as text and JSON. Pure: a model in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from lakehouse.maybe import Answer
from lakehouse.outcome import Result
from lakehouse.report.text import size
from lakehouse.status.judge import findings
from lakehouse.status.model import RUNNING, Engine, Hdfs, LastGood, Machine, Memory, Placed, Status
from plugins.module_utils.lakehouse.counting import counted

VERB = "status"
_UNKNOWN = "unknown"
_GAP = "  "
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def result(status: Status, seconds: float) -> Result:
    """Return the result of the verb, with its last line, exit code and JSON."""
    hosts = {machine.name: _host_json(status, machine) for machine in status.machines}
    return Result(
        verb=VERB,
        target=status.cluster,
        findings=findings(status),
        facts=(
            f"{status.answered} of {counted(len(status.machines), 'host')} answered",
            f"{status.running} of {counted(len(status.services), 'service')} run",
            _datanodes(status),
            f"backup {_last_good(status, status.backup)}",
            f"{seconds:.1f} s",
        ),
        hosts=hosts,
        healthy_next=f"make smoke INVENTORY={status.inventory}",
        details={"cluster": _cluster_json(status), "seconds": round(seconds, 1)},
    )


def screen(status: Status, ending: Result) -> str:
    """Return the text of a status, which ends with the last line."""
    stamp = datetime.fromtimestamp(status.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    blocks = [
        [f"{status.cluster}, profile {status.profile}, {status.inventory}, {stamp}"],
        aligned(
            [("HOST", "ADDRESS", "UP", "MEMORY FREE", "DISK FREE", "CLOCK"), *map(_host, status.machines)]
        ),
        aligned([("SERVICE", "RUN", "UP", "VERSION", ""), *services(status)]),
        aligned(list(areas(status))),
        [str(finding) for finding in ending.worst],
        [ending.last_line],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def age(seconds: float) -> str:
    """Return a duration in its largest unit: 12 s, 5 min, 3 h, 2 d."""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a line per row, with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _host(machine: Machine) -> tuple[str, ...]:
    if not machine.answer.known:
        return (machine.name, machine.address, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN)
    disks = [
        f"{disk.folder} {size(disk.available)} of {size(disk.size)}" for disk in machine.disks.value or ()
    ]
    return (
        machine.name,
        machine.address,
        _UNKNOWN if machine.uptime.value is None else age(machine.uptime.value),
        _memory(machine.memory),
        ", ".join(disks) or _UNKNOWN,
        clock(machine.offset),
    )


def _memory(answer: Answer[Memory]) -> str:
    memory = answer.value
    return f"{size(memory.available)} of {size(memory.total)}" if memory else _UNKNOWN


def clock(answer: Answer[float]) -> str:
    """Return the difference of a clock as text."""
    if answer.value is None:
        return _UNKNOWN
    return f"{answer.value:+.1f} s" if answer.value else "right"


def services(status: Status) -> Iterator[tuple[str, ...]]:
    """Yield a row per service: running units, age of the newest, version, and stopped units."""
    for name in dict.fromkeys(placed.service for placed in status.services):
        placements = [placed for placed in status.services if placed.service == name]
        running = [placed for placed in placements if word(placed) == RUNNING]
        since = [
            placed.state.value.since for placed in running if placed.state.value and placed.state.value.since
        ]
        yield (
            name,
            f"{len(running)} of {len(placements)}",
            age(status.at - max(since)) if since else "-",
            _version(status, placements),
            ", ".join(f"{placed.host} {word(placed)}" for placed in placements if word(placed) != RUNNING),
        )


def word(placed: Placed) -> str:
    """Return the state of a service on a host in a word, such as running or unknown."""
    return placed.state.value.word if placed.state.value else _UNKNOWN


def _version(status: Status, placements: Sequence[Placed]) -> str:
    if placements[0].service == "postgresql":
        return status.database.value.version if status.database.value else _UNKNOWN
    hosts, release = {placed.host for placed in placements}, placements[0].release
    if not release:
        return "of Debian"
    versions = [
        (machine.releases.value or {}).get(release, _UNKNOWN)
        for machine in status.machines
        if machine.name in hosts
    ]
    return ", ".join(dict.fromkeys(versions))


def _datanodes(status: Status) -> str:
    return "; ".join(_live(status, status.hdfs.value)) if status.hdfs.value else "DataNodes unknown"


def _live(status: Status, hdfs: Hdfs) -> list[str]:
    """Return the number of live DataNodes, and the hosts in maintenance."""
    placed = status.datanodes + len(status.resting)
    facts = [f"{hdfs.live} of {counted(placed, 'DataNode')} live"]
    verb = "is" if len(status.resting) == 1 else "are"
    return [*facts, f"{', '.join(status.resting)} {verb} in maintenance"] if status.resting else facts


def areas(status: Status) -> Iterator[tuple[str, str]]:
    """Yield a name and a line of text per area."""
    yield "HDFS", _hdfs(status)
    yield "Metastore", "answers" if status.metastore.known else f"unknown: {status.metastore.why}"
    yield (
        "Database",
        f"PostgreSQL {status.database.value.version} answers"
        if status.database.value
        else f"unknown: {status.database.why}",
    )
    yield "Tables", _tables(status)
    for name, answer in status.engines.items():
        yield name.capitalize(), _engine(answer)
    yield "Verified", _verified(status)
    yield "Backup", _last_good(status, status.backup)
    yield "History", f"{_last_good(status, status.history)}; {_snapshots(status.snapshots)}"


def _hdfs(status: Status) -> str:
    hdfs = status.hdfs.value
    if hdfs is None:
        return f"unknown: {status.hdfs.why}"
    live, *resting = _live(status, hdfs)
    return "; ".join(
        (
            f"{live}, {hdfs.dead} dead",
            *resting,
            f"{size(hdfs.used)} used, {size(hdfs.remaining)} left of {size(hdfs.capacity)}",
            f"{counted(hdfs.blocks, 'block')}, {hdfs.missing} missing, {hdfs.corrupt} corrupt",
            f"{hdfs.low} short of replicas",
            f"safe mode {'on' if hdfs.safemode else 'off'}",
        )
    )


def _tables(status: Status) -> str:
    if status.database.value is None:
        return f"unknown: {status.database.why}"
    texts = [
        f"{row.count} {row.format}"
        + (f" (last commit {age(status.at - row.committed)} ago)" if row.committed else "")
        for row in status.database.value.tables
    ]
    return ", ".join(texts) or "none"


def _engine(answer: Answer[Engine]) -> str:
    engine = answer.value
    if engine is None:
        return f"unknown: {answer.why}"
    counts = [f"{count} {name}" for name, count in engine.counts.items()]
    return ", ".join([f"{engine.members} of {counted(engine.placed, 'worker')}", *counts])


def _last_good(status: Status, answer: Answer[LastGood | None]) -> str:
    """Return the age of the last good backup or commit."""
    if not answer.known:
        return f"unknown: {answer.why}"
    last = answer.value
    if last is None or last.good is None:
        return f"none good, {len(last.damaged)} damaged" if last and last.damaged else "none"
    newer = f", {len(last.damaged)} newer damaged" if last.damaged else ""
    return f"{age(status.at - last.good)} old{newer}"


def _snapshots(answer: Answer[int]) -> str:
    if answer.value is None:
        return f"deleted files in snapshots: unknown: {answer.why}"
    return (
        f"deleted files in snapshots take {size(answer.value)}" if answer.value else "no deleted files kept"
    )


def _verified(status: Status) -> str:
    if not status.verified.known:
        return f"unknown: {status.verified.why}"
    report = status.verified.value
    if report is None:
        return "never from here"
    ago = age(status.at - datetime.fromisoformat(report.generated).timestamp())
    return f"{report.result} {ago} ago, {counted(report.passed, 'test passed', 'tests passed')}"


def _answer(answer: Answer[Any]) -> dict[str, Any]:
    """Return a value for programs: `known`, and `value` or `why`."""
    if not answer.known:
        return {"known": False, "why": answer.why}
    return {"known": True, "value": _plain(answer.value)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def _host_json(status: Status, machine: Machine) -> dict[str, Any]:
    services = {
        placed.service: {"unit": placed.unit, "state": word(placed), **_answer(placed.state)}
        for placed in status.services
        if placed.host == machine.name
    }
    return {
        "address": machine.address,
        "answered": machine.answer.known,
        "why": machine.answer.why,
        "services": services,
        **{
            name: _answer(getattr(machine, name))
            for name in ("uptime", "memory", "disks", "offset", "releases")
        },
    }


def _cluster_json(status: Status) -> dict[str, Any]:
    return {
        "inventory": status.inventory,
        "profile": status.profile,
        "hdfs": _answer(status.hdfs),
        "metastore": _answer(status.metastore),
        "database": _answer(status.database),
        "engines": {name: _answer(answer) for name, answer in status.engines.items()},
        "verified": _answer(status.verified),
        "backup": _answer(status.backup),
        "history": _answer(status.history),
        "snapshots": _answer(status.snapshots),
    }
