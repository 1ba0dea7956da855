"""Checks of the machines: disks, memory, clock, kernel, names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from lakehouse.doctor.model import Case, Check, Fault, Snapshot, judged
from lakehouse.doctor.probes import LOGS
from lakehouse.status import judge, questions, reading
from lakehouse.status.model import Memory
from lakehouse.validation.finding import Level
from plugins.module_utils.lakehouse import away

# Below this free share writes fail soon.
_FULL_SHARE = 0.03
_INODES_SHARE = 0.05


def _of_parts(
    snapshot: Snapshot, part: str, find_faults: Callable[[str, str], Iterator[Fault]]
) -> Iterator[Case]:
    """Yield a case for each host, by the output of one command."""
    for host in snapshot.cluster.hosts:
        yield Case(host.name, judged(snapshot.part(host.name, part), partial(find_faults, host.name)))


def _space(snapshot: Snapshot) -> Iterator[Case]:
    def short(host: str, text: str) -> Iterator[Fault]:
        for disk in reading.disks(text, [*questions.folders(snapshot.host(host)), LOGS]):
            if disk.available < judge.DISK_SHARE * disk.size:
                level = Level.FAULT if disk.available < _FULL_SHARE * disk.size else Level.WARNING
                fact = f"{disk.available * 100 // disk.size} % of the disk of {disk.folder} is available"
                yield Fault(fact, snapshot.on(host, "df -h"), f"at least {judge.DISK_SHARE:.0%}", level)

    return _of_parts(snapshot, "space", short)


def _inodes(snapshot: Snapshot) -> Iterator[Case]:
    def short(host: str, text: str) -> Iterator[Fault]:
        rows = {row[5]: row for row in map(str.split, text.strip().splitlines()[1:])}
        if not rows:
            raise ValueError("df shows nothing")
        for folder, row in rows.items():
            # File systems without a fixed number of inodes print none.
            if row[1].isdigit() and int(row[3]) < _INODES_SHARE * int(row[1]):
                fact = f"{int(row[3]) * 100 // int(row[1])} % of the inodes of {folder} are available"
                yield Fault(fact, snapshot.on(host, "df -i"), f"at least {_INODES_SHARE:.0%}", Level.WARNING)

    return _of_parts(snapshot, "inodes", short)


def _memory(snapshot: Snapshot) -> Iterator[Case]:
    def short(host: str, memory: Memory) -> Iterator[Fault]:
        if memory.available < judge.MEMORY_SHARE * memory.total:
            fact = f"{memory.available * 100 // memory.total} % of the memory is available"
            yield Fault(
                fact, snapshot.on(host, "free -h"), f"at least {judge.MEMORY_SHARE:.0%}", Level.WARNING
            )

    for machine in snapshot.status.machines:
        yield Case(machine.name, judged(machine.memory, partial(short, machine.name)))


def _clock(snapshot: Snapshot) -> Iterator[Case]:
    limit = snapshot.status.clock_limit

    def wrong(host: str, offset: float) -> Iterator[Fault]:
        if abs(offset) > limit:
            fact = f"its clock differs by {offset:+.1f} s"
            yield Fault(fact, snapshot.on(host, "timedatectl"), f"at most {limit:g} s", Level.WARNING)

    for machine in snapshot.status.machines:
        yield Case(machine.name, judged(machine.offset, partial(wrong, machine.name)))


def _huge_pages(snapshot: Snapshot) -> Iterator[Case]:
    def stalls(host: str, text: str) -> Iterator[Fault]:
        enabled, defrag = text.strip().splitlines()[:2]
        if not ("[" in enabled and "[" in defrag):
            raise ValueError("the kernel has chosen nothing")
        # With other settings no process is stalled without asking for huge pages.
        if "[always]" in enabled and "[always]" in defrag:
            path = "/sys/kernel/mm/transparent_hugepage/defrag"
            fact = "every process may be stopped while the kernel makes huge pages"
            action = snapshot.on(host, f"sh -c 'echo madvise > {path}'")
            yield Fault(fact, action, f"madvise in {path}", Level.WARNING)

    return _of_parts(snapshot, "thp", stalls)


def _names(snapshot: Snapshot) -> Iterator[Case]:
    addresses = {node.name: node.address for node in snapshot.cluster.hosts}

    def wrong(host: str, text: str) -> Iterator[Fault]:
        rows = dict(_named(line) for line in text.splitlines() if line)
        action = snapshot.on(host, "cat /etc/hosts")
        for name, address in addresses.items():
            forward, backward = rows[name]
            if forward != [address]:
                yield Fault(f"{name} resolves to {', '.join(forward) or 'nothing'}", action, address)
            elif name.partition(".")[0] not in {alias.partition(".")[0] for alias in backward}:
                yield Fault(f"{address} is called {' '.join(backward) or 'nothing'}", action, name)

    return _of_parts(snapshot, "names", wrong)


def _named(line: str) -> tuple[str, tuple[list[str], list[str]]]:
    name, forward, backward = line.split("|")
    return name, (forward.split(), backward.split())


def _away(snapshot: Snapshot) -> Iterator[Case]:
    def marked(host: str, mark: away.Mark) -> Iterator[Fault]:
        if mark:
            action = judge.way_back(snapshot.status, host, mark)
            yield Fault(away.told(mark), action, away.EXPECTED[mark["state"]], Level.WARNING)

    for name, answer in snapshot.status.away.items():
        yield Case(name, judged(answer, partial(marked, name)))


CHECKS = (
    Check("host.away", "a verb has taken a host out of service", _away),
    Check(
        "node.disk",
        "a disk of data, of the system, of logs or of backups is nearly full",
        _space,
        "delete what is not needed there, or give the folder a larger disk",
    ),
    Check(
        "node.inodes",
        "a file system can take hardly any more files",
        _inodes,
        "delete small files there, or give the folder a file system with more inodes",
    ),
    Check(
        "node.memory",
        "hardly any memory is available",
        _memory,
        "end what takes it, or set node_memory_mb of the host lower and run site.yml",
    ),
    Check("node.thp", "the kernel stops processes to make huge pages", _huge_pages),
    Check("time.offset", "a clock is wrong", _clock, "install or start a time service on the host"),
    Check(
        "net.names",
        "a name or an address of a node leads elsewhere on a host",
        _names,
        "correct the line in /etc/hosts, or the name server's entry",
    ),
)
