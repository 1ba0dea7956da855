"""What is wrong with a cluster, by what is known of it. Pure: a model in, findings out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from lakehouse.next_command import command
from ops import hosts
from ops.outcome import Finding, Outcome
from ops.status.model import RUNNING, Hdfs, Machine, Placed, Status
from plugins.module_utils.lakehouse import away
from plugins.module_utils.lakehouse.counting import counted

DEGRADED, DOWN = Outcome.DEGRADED, Outcome.DOWN
# A disk or a memory with less of itself available.
DISK_SHARE, MEMORY_SHARE = 0.05, 0.05


def findings(status: Status) -> tuple[Finding, ...]:
    """Return every fault. A host that says nothing is one, and its services are unknown, never well."""
    return (
        *_away(status),
        *_machines(status),
        *_units(status),
        *_storage(status),
        *_catalogue(status),
        *_engines(status),
        *_versions(status),
    )


def on(status: Status, host: str, command: str) -> str:
    """Return the command that runs another one on a host."""
    return f".venv/bin/ansible -i {status.inventory} {host} -b -a {shlex.quote(command)}"


def ping(status: Status, host: str) -> str:
    """Return the command that asks whether Ansible reaches a host."""
    return hosts.ping(status.inventory, host)


def way_back(status: Status, host: str, mark: away.Mark) -> str:
    """Return the command that has a host serve that is away."""
    return command(away.way_back(mark, host), status.inventory)


def journal(status: Status, placed: Placed) -> str:
    """Return the command that shows what a service has said."""
    return on(status, placed.host, f"journalctl -u {placed.unit} -n 50 --no-pager")


def site(status: Status) -> str:
    """Return the command that brings every host to what the inventory says."""
    return f".venv/bin/ansible-playbook -i {status.inventory} playbooks/site.yml"


def _of(status: Status, service: str) -> Placed:
    """Return a service of which there is one."""
    return next(each for each in status.services if each.service == service)


def _away(status: Status) -> Iterator[Finding]:
    for name, answer in status.away.items():
        if mark := answer.value:
            yield Finding("host.away", DEGRADED, name, away.told(mark), way_back(status, name, mark))


def _machines(status: Status) -> Iterator[Finding]:
    for machine in status.machines:
        if not machine.answer.known:
            what = f"unknown: {machine.answer.why}"
            yield Finding("host.silent", DEGRADED, machine.name, what, ping(status, machine.name))
            continue
        yield from _resources(status, machine)


def _resources(status: Status, machine: Machine) -> Iterator[Finding]:
    for name in ("memory", "disks", "offset"):
        answer = getattr(machine, name)
        if not answer.known:
            what = f"{name} unknown: {answer.why}"
            yield Finding(f"host.{name}", DEGRADED, machine.name, what, ping(status, machine.name))
    memory, offset = machine.memory.value, machine.offset.value
    if memory and memory.available < MEMORY_SHARE * memory.total:
        what = f"{memory.available * 100 // memory.total} % of the memory is available"
        yield Finding("host.memory", DEGRADED, machine.name, what, on(status, machine.name, "free -h"))
    for disk in machine.disks.value or ():
        if disk.available < DISK_SHARE * disk.size:
            what = f"{disk.available * 100 // disk.size} % of the disk of {disk.folder} is available"
            yield Finding("host.disk", DEGRADED, machine.name, what, on(status, machine.name, "df -h"))
    if offset is not None and abs(offset) > status.clock_limit:
        what = f"its clock differs by {offset:+.1f} s (allowed: {status.clock_limit:g} s)"
        yield Finding("host.clock", DEGRADED, machine.name, what, on(status, machine.name, "timedatectl"))


def _units(status: Status) -> Iterator[Finding]:
    silent = {machine.name for machine in status.machines if not machine.answer.known}
    for placed in status.services:
        unit = placed.state.value
        if unit is None:
            # Of a silent host it was said once.
            if placed.host not in silent:
                what = f"unknown: {placed.state.why}"
                yield Finding(
                    "unit.unknown",
                    DEGRADED,
                    f"{placed.service} on {placed.host}",
                    what,
                    journal(status, placed),
                )
        elif unit.word != RUNNING:
            outcome = DOWN if placed.needed else DEGRADED
            what = f"{unit.word} ({unit.active}/{unit.sub})"
            yield Finding(
                f"unit.{unit.word}",
                outcome,
                f"{placed.service} on {placed.host}",
                what,
                journal(status, placed),
            )


def _storage(status: Status) -> Iterator[Finding]:
    hdfs, namenode = status.hdfs.value, _of(status, "namenode")
    if hdfs is None:
        what = f"the NameNode does not answer: {status.hdfs.why}"
        yield Finding("hdfs.silent", DOWN, namenode.host, what, journal(status, namenode))
        return
    report = on(status, namenode.host, "systemctl status hdfs-namenode")
    for code, wrong, what in of_hdfs(status, hdfs):
        if wrong:
            yield Finding(f"hdfs.{code}", DOWN if hdfs.live == 0 else DEGRADED, namenode.host, what, report)
    if what := unfinished(status, hdfs):
        yield Finding("hdfs.upgrade", DEGRADED, namenode.host, what, finalize(status))


def of_hdfs(status: Status, hdfs: Hdfs) -> Iterator[tuple[str, bool, str]]:
    """Give each thing that may be wrong with HDFS: its word, whether it is, and the fact."""
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
        what = f"it does not answer: {status.metastore.why}"
        yield Finding("metastore.silent", DOWN, placed.host, what, journal(status, placed))
    placed = _of(status, "postgresql")
    silent = {machine.name for machine in status.machines if not machine.answer.known}
    if not status.database.known and placed.host not in silent:
        what = f"it does not answer: {status.database.why}"
        yield Finding("database.silent", DEGRADED, placed.host, what, journal(status, placed))


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
            what = f"{answer.value.members} of {counted(answer.value.placed, 'worker')} take work"
            yield Finding(f"{name}.workers", DEGRADED, name, what, journal(status, placed))


def _versions(status: Status) -> Iterator[Finding]:
    for name in dict.fromkeys(placed.release for placed in status.services):
        found: dict[str, list[str]] = {}
        for machine in status.machines:
            if version := (machine.releases.value or {}).get(name):
                found.setdefault(version, []).append(machine.name)
        if len(found) > 1:
            what = "; ".join(f"{version} on {', '.join(hosts)}" for version, hosts in found.items())
            yield Finding("versions.differ", DEGRADED, name, what, site(status))
