"""Derive the findings of a cluster from its status. Pure: a model in, findings out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from lakehouse.next_command import command
from lakehouse.outcome import Finding, Outcome
from lakehouse.remote import hosts
from lakehouse.status.model import RUNNING, STOPPED, Hdfs, Machine, Placed, Status
from plugins.module_utils.lakehouse import away
from plugins.module_utils.lakehouse.counting import counted

DEGRADED, DOWN = Outcome.DEGRADED, Outcome.DOWN
# Minimum of available disk space and memory.
DISK_SHARE, MEMORY_SHARE = 0.05, 0.05
# PostgreSQL's messages, for roles that may use the reserved connections and for others.
_FULL = ("too many clients already", "remaining connection slots are reserved")
_LOST = re.compile(r'database "[^"]*" does not exist')
# In the NameNode's message of a safe mode that an operator has entered.
_BY_HAND = "turned on manually"


def findings(status: Status) -> tuple[Finding, ...]:
    """Return all faults. A silent host is one, and its services are unknown, not healthy."""
    return (
        *_away(status),
        *_machines(status),
        *_units(status),
        *_storage(status),
        *_catalogue(status),
        *_engines(status),
        *_versions(status),
    )


def on(status: Status, host: str, line: str) -> str:
    """Return the command that runs another one on a host."""
    return f".venv/bin/ansible -i {shlex.quote(status.inventory)} {host} -b -a {shlex.quote(line)}"


def ping(status: Status, host: str) -> str:
    """Return the command that checks whether Ansible can reach a host."""
    return hosts.ping(status.inventory, host)


def way_back(status: Status, host: str, mark: away.Mark) -> str:
    """Return the command that brings back a host that is away."""
    return command(away.way_back(mark, host), status.inventory)


def journal(status: Status, placed: Placed) -> str:
    """Return the command that prints the journal of a service."""
    return on(status, placed.host, f"journalctl -u {placed.unit} -n 50 --no-pager")


def site(status: Status) -> str:
    """Return the command that applies the inventory to all hosts."""
    return f".venv/bin/ansible-playbook -i {shlex.quote(status.inventory)} playbooks/site.yml"


def restart(status: Status, placed: Placed) -> str:
    """Return the command that restarts a service on a host, after its gate."""
    return command(f"restart {placed.service} --host {placed.host}", status.inventory)


def restore(status: Status) -> str:
    """Return the command that restores the newest backup of the cluster."""
    return command("restore", status.inventory)


def dfsadmin(status: Status, question: str) -> str:
    """Return the command that runs dfsadmin as HDFS's superuser; root has no permissions there."""
    host = _of(status, "namenode").host
    return on(status, host, f"runuser -u {status.superuser} -- hdfs dfsadmin {question}")


def is_full(why: str) -> bool:
    """Return whether PostgreSQL has refused a session because all connections are used."""
    return any(words in why for words in _FULL)


def is_lost(why: str) -> bool:
    """Return whether PostgreSQL has refused a session because the metastore's database is missing."""
    return bool(_LOST.search(why))


def _of(status: Status, service: str) -> Placed:
    """Return the placement of a single-instance service."""
    return next(placed for placed in status.services if placed.service == service)


def _away(status: Status) -> Iterator[Finding]:
    for name, answer in status.away.items():
        if mark := answer.value:
            yield Finding("host.away", DEGRADED, name, away.told(mark), way_back(status, name, mark))


def _machines(status: Status) -> Iterator[Finding]:
    for machine in status.machines:
        if not machine.answer.known:
            fact = f"unknown: {machine.answer.why}"
            yield Finding("host.silent", DEGRADED, machine.name, fact, ping(status, machine.name))
            continue
        yield from _resources(status, machine)


def _resources(status: Status, machine: Machine) -> Iterator[Finding]:
    for name in ("memory", "disks", "offset"):
        answer = getattr(machine, name)
        if not answer.known:
            fact = f"{name} unknown: {answer.why}"
            yield Finding(f"host.{name}", DEGRADED, machine.name, fact, ping(status, machine.name))
    memory, offset = machine.memory.value, machine.offset.value
    if memory and memory.available < MEMORY_SHARE * memory.total:
        fact = f"{memory.available * 100 // memory.total} % of the memory is available"
        yield Finding("host.memory", DEGRADED, machine.name, fact, on(status, machine.name, "free -h"))
    for disk in machine.disks.value or ():
        if disk.available < DISK_SHARE * disk.size:
            fact = f"{disk.available * 100 // disk.size} % of the disk of {disk.folder} is available"
            yield Finding("host.disk", DEGRADED, machine.name, fact, on(status, machine.name, "df -h"))
    if offset is not None and abs(offset) > status.clock_limit:
        fact = f"its clock differs by {offset:+.1f} s (allowed: {status.clock_limit:g} s)"
        yield Finding("host.clock", DEGRADED, machine.name, fact, on(status, machine.name, "timedatectl"))


def _units(status: Status) -> Iterator[Finding]:
    silent = {machine.name for machine in status.machines if not machine.answer.known}
    for placed in status.services:
        unit = placed.state.value
        if unit is None:
            # A silent host has its own finding.
            if placed.host not in silent:
                fact = f"unknown: {placed.state.why}"
                yield Finding(
                    "unit.unknown",
                    DEGRADED,
                    f"{placed.service} on {placed.host}",
                    fact,
                    journal(status, placed),
                )
        elif unit.word != RUNNING:
            outcome = DOWN if placed.needed else DEGRADED
            fact = f"{unit.word} ({unit.active}/{unit.sub})"
            where = f"{placed.service} on {placed.host}"
            yield Finding(f"unit.{unit.word}", outcome, where, fact, start(status, placed))
        elif not unit.enabled:
            where = f"{placed.service} on {placed.host}"
            yield Finding(
                "unit.enabled", DEGRADED, where, "disabled: it does not start at a boot", site(status)
            )


def revive(status: Status, placed: Placed) -> str:
    """Return the command for a service whose leader does not list it: restart it if it runs, or start it."""
    unit = placed.state.value
    return restart(status, placed) if unit and unit.word == RUNNING else start(status, placed)


def start(status: Status, placed: Placed) -> str:
    """Return the command for a service that does not run: start it, or read the journal of a failed one."""
    unit = placed.state.value
    return site(status) if unit and unit.word in STOPPED else journal(status, placed)


def _storage(status: Status) -> Iterator[Finding]:
    hdfs, namenode = status.hdfs.value, _of(status, "namenode")
    if status.unformatted.value:
        fact = f"no image of the file system in {', '.join(status.unformatted.value)}"
        yield Finding("hdfs.image", DOWN, namenode.host, fact, restore(status))
    if hdfs is None:
        fact = f"the NameNode does not answer: {status.hdfs.why}"
        yield Finding("hdfs.silent", DOWN, namenode.host, fact, journal(status, namenode))
        return
    dead = [
        placed
        for placed in status.services
        if placed.service == "datanode" and placed.host not in hdfs.living
    ]
    commands = {"safemode": leave_safemode(status)} if by_hand(hdfs) else {}
    if dead:
        commands["datanodes"] = revive(status, dead[0])
    for code, is_faulty, fact in of_hdfs(status, hdfs):
        if is_faulty:
            where = (
                ", ".join(placed.host for placed in dead) if code == "datanodes" and dead else namenode.host
            )
            outcome = DOWN if hdfs.live == 0 else DEGRADED
            next_command = commands.get(code) or dfsadmin(status, "-report")
            yield Finding(f"hdfs.{code}", outcome, where, fact, next_command)
    if fact := unfinished(status, hdfs):
        yield Finding("hdfs.upgrade", DEGRADED, namenode.host, fact, finalize(status))


def of_hdfs(status: Status, hdfs: Hdfs) -> Iterator[tuple[str, bool, str]]:
    """Yield each possible fault of HDFS: its name, whether it is present, and the fact."""
    yield (
        "datanodes",
        hdfs.live < status.datanodes,
        f"{hdfs.live} of {counted(status.datanodes, 'DataNode is live', 'DataNodes are live')}",
    )
    yield (
        "stale",
        hdfs.stale > 0,
        f"{counted(hdfs.stale, 'DataNode was silent', 'DataNodes were silent')} for a while",
    )
    yield "safemode", bool(hdfs.safemode), "safe mode is on: nothing can be written"
    yield (
        "missing",
        hdfs.missing > 0,
        f"{hdfs.missing} of {counted(hdfs.blocks, 'block is missing', 'blocks are missing')}",
    )
    yield (
        "corrupt",
        hdfs.corrupt > 0,
        f"{hdfs.corrupt} of {counted(hdfs.blocks, 'block is corrupt', 'blocks are corrupt')}",
    )
    # The NameNode counts blocks without any replica among those that lack one.
    lacking = hdfs.low - hdfs.missing
    yield (
        "replicas",
        lacking > 0,
        f"{lacking} of {counted(hdfs.blocks, 'block lacks a replica', 'blocks lack a replica')}",
    )
    yield (
        "volumes",
        hdfs.failed_volumes > 0,
        f"{counted(hdfs.failed_volumes, 'disk of a DataNode has failed', 'disks of DataNodes have failed')}",
    )
    full = hdfs.remaining < DISK_SHARE * hdfs.capacity
    yield "capacity", full, f"{hdfs.remaining * 100 // max(hdfs.capacity, 1)} % of HDFS is left"


def by_hand(hdfs: Hdfs) -> bool:
    """Return whether HDFS is in a safe mode that only an operator ends."""
    return _BY_HAND in hdfs.safemode


def leave_safemode(status: Status) -> str:
    """Return the command that ends a safe mode."""
    return dfsadmin(status, "-safemode leave")


def unfinished(status: Status, hdfs: Hdfs) -> str:
    """Return that an upgrade of HDFS is not finalized, and since when; empty where none is."""
    if hdfs.upgrade is None:
        return ""
    hours = max(status.at - hdfs.upgrade, 0) / 3600
    return f"an upgrade of HDFS is prepared and not finalized, for {hours:.0f} h: files that go take space"


def finalize(status: Status) -> str:
    """Return the command that finalizes an upgrade of HDFS."""
    return command("upgrade hadoop --finalize", status.inventory)


def _catalogue(status: Status) -> Iterator[Finding]:
    if not status.metastore.known:
        placed = _of(status, "metastore")
        fact = f"it does not answer: {status.metastore.why}"
        yield Finding("metastore.silent", DOWN, placed.host, fact, journal(status, placed))
    placed = _of(status, "postgresql")
    silent = {machine.name for machine in status.machines if not machine.answer.known}
    if not status.database.known and placed.host not in silent:
        yield _no_database(status, placed, status.database.why)


def _no_database(status: Status, placed: Placed, why: str) -> Finding:
    if is_full(why):
        fact, next_command = f"no connection is left: {why}", restart(status, placed)
        return Finding("database.connections", DEGRADED, placed.host, fact, next_command)
    if is_lost(why):
        return Finding("database.lost", DOWN, placed.host, why, restore(status))
    return Finding(
        "database.silent", DEGRADED, placed.host, f"it does not answer: {why}", journal(status, placed)
    )


def _engines(status: Status) -> Iterator[Finding]:
    leaders = {"spark": "spark_master", "trino": "trino", "flink": "flink_jobmanager"}
    for name, answer in status.engines.items():
        placed = _of(status, leaders[name])
        if answer.value is None:
            yield Finding(
                f"{name}.silent",
                DEGRADED,
                name,
                f"it does not answer: {answer.why}",
                journal(status, placed),
            )
        elif answer.value.members < answer.value.placed:
            fact = f"{answer.value.members} of {counted(answer.value.placed, 'worker')} take work"
            yield Finding(f"{name}.workers", DEGRADED, name, fact, journal(status, placed))


def _versions(status: Status) -> Iterator[Finding]:
    for name in dict.fromkeys(placed.release for placed in status.services):
        hosts_by_version: dict[str, list[str]] = {}
        for machine in status.machines:
            if version := (machine.releases.value or {}).get(name):
                hosts_by_version.setdefault(version, []).append(machine.name)
        if len(hosts_by_version) > 1:
            fact = "; ".join(
                f"{version} on {', '.join(hosts)}" for version, hosts in hosts_by_version.items()
            )
            yield Finding("versions.differ", DEGRADED, name, fact, site(status))
