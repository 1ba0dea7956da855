"""What is wrong with a cluster, by what is known of it. Pure: a model in, findings out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from lakehouse.next_command import command
from ops import hosts
from ops.outcome import Finding, Outcome
from ops.status.model import RUNNING, STOPPED, Hdfs, Machine, Placed, Status
from plugins.module_utils.lakehouse import away
from plugins.module_utils.lakehouse.counting import counted

DEGRADED, DOWN = Outcome.DEGRADED, Outcome.DOWN
# A disk or a memory with less of itself available.
DISK_SHARE, MEMORY_SHARE = 0.05, 0.05
# PostgreSQL's words, for accounts that may use the reserved connections and for others.
_FULL = ("too many clients already", "remaining connection slots are reserved")
_LOST = re.compile(r'database "[^"]*" does not exist')
# Of the NameNode, of a safe mode that a person has switched on, and that no block ends.
_BY_HAND = "turned on manually"


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


def on(status: Status, host: str, line: str) -> str:
    """Return the command that runs another one on a host."""
    return f".venv/bin/ansible -i {shlex.quote(status.inventory)} {host} -b -a {shlex.quote(line)}"


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
    return f".venv/bin/ansible-playbook -i {shlex.quote(status.inventory)} playbooks/site.yml"


def restart(status: Status, placed: Placed) -> str:
    """Return the command that restarts a service on a host, behind its gate."""
    return command(f"restart {placed.service} --host {placed.host}", status.inventory)


def restore(status: Status) -> str:
    """Return the command that sets the cluster back to its newest backup."""
    return command("restore", status.inventory)


def dfsadmin(status: Status, question: str) -> str:
    """Return the command that asks the NameNode as HDFS's superuser; root has no permissions there."""
    host = _of(status, "namenode").host
    return on(status, host, f"runuser -u {status.superuser} -- hdfs dfsadmin {question}")


def is_full(why: str) -> bool:
    """Tell whether PostgreSQL has refused a session because all connections are used."""
    return any(words in why for words in _FULL)


def is_lost(why: str) -> bool:
    """Tell whether PostgreSQL has refused a session because the metastore's database is gone."""
    return bool(_LOST.search(why))


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
            where = f"{placed.service} on {placed.host}"
            yield Finding(f"unit.{unit.word}", outcome, where, what, start(status, placed))
        elif not unit.enabled:
            where = f"{placed.service} on {placed.host}"
            yield Finding(
                "unit.enabled", DEGRADED, where, "disabled: it does not start at a boot", site(status)
            )


def revive(status: Status, placed: Placed) -> str:
    """Return the command for a service whose leader does not hear of it: one that runs is restarted."""
    unit = placed.state.value
    return restart(status, placed) if unit and unit.word == RUNNING else start(status, placed)


def start(status: Status, placed: Placed) -> str:
    """Return the command for a service that does not run: what ended by itself says why in its journal."""
    unit = placed.state.value
    return site(status) if unit and unit.word in STOPPED else journal(status, placed)


def _storage(status: Status) -> Iterator[Finding]:
    hdfs, namenode = status.hdfs.value, _of(status, "namenode")
    if status.unformatted.value:
        what = f"no image of the file system in {', '.join(status.unformatted.value)}"
        yield Finding("hdfs.image", DOWN, namenode.host, what, restore(status))
    if hdfs is None:
        what = f"the NameNode does not answer: {status.hdfs.why}"
        yield Finding("hdfs.silent", DOWN, namenode.host, what, journal(status, namenode))
        return
    dead = [each for each in status.services if each.service == "datanode" and each.host not in hdfs.living]
    following = {"safemode": leave_safemode(status)} if by_hand(hdfs) else {}
    if dead:
        following["datanodes"] = revive(status, dead[0])
    for code, wrong, what in of_hdfs(status, hdfs):
        if wrong:
            where = ", ".join(each.host for each in dead) if code == "datanodes" and dead else namenode.host
            outcome = DOWN if hdfs.live == 0 else DEGRADED
            command_line = following.get(code) or dfsadmin(status, "-report")
            yield Finding(f"hdfs.{code}", outcome, where, what, command_line)
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


def by_hand(hdfs: Hdfs) -> bool:
    """Tell whether HDFS is in a safe mode that only a person ends."""
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
        what = f"it does not answer: {status.metastore.why}"
        yield Finding("metastore.silent", DOWN, placed.host, what, journal(status, placed))
    placed = _of(status, "postgresql")
    silent = {machine.name for machine in status.machines if not machine.answer.known}
    if not status.database.known and placed.host not in silent:
        yield _no_database(status, placed, status.database.why)


def _no_database(status: Status, placed: Placed, why: str) -> Finding:
    if is_full(why):
        what, following = f"no connection is left: {why}", restart(status, placed)
        return Finding("database.connections", DEGRADED, placed.host, what, following)
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
