"""Checks of the machines: disks, memory, clock, kernel, names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from lakehouse.validation.finding import Level
from ops.doctor.model import Case, Check, Fault, Seen, judged
from ops.doctor.probes import LOGS
from ops.status import judge, questions, reading
from ops.status.model import Memory
from plugins.module_utils.lakehouse import away

# Below it nothing that writes there works for long.
_FULL_SHARE = 0.03
_INODES_SHARE = 0.05


def _of_parts(seen: Seen, part: str, judge_it: Callable[[str, str], Iterator[Fault]]) -> Iterator[Case]:
    """Give a case for each host, by what one command printed."""
    for host in seen.cluster.hosts:
        yield Case(host.name, judged(seen.part(host.name, part), partial(judge_it, host.name)))


def _space(seen: Seen) -> Iterator[Case]:
    def short(host: str, text: str) -> Iterator[Fault]:
        for disk in reading.disks(text, [*questions.folders(seen.host(host)), LOGS]):
            if disk.available < judge.DISK_SHARE * disk.size:
                level = Level.FAULT if disk.available < _FULL_SHARE * disk.size else Level.WARNING
                fact = f"{disk.available * 100 // disk.size} % of the disk of {disk.folder} is available"
                yield Fault(fact, seen.on(host, "df -h"), f"at least {judge.DISK_SHARE:.0%}", level)

    return _of_parts(seen, "space", short)


def _inodes(seen: Seen) -> Iterator[Case]:
    def short(host: str, text: str) -> Iterator[Fault]:
        rows = {row[5]: row for row in map(str.split, text.strip().splitlines()[1:])}
        if not rows:
            raise ValueError("df shows nothing")
        for folder, row in rows.items():
            # File systems that make them as they need show none.
            if row[1].isdigit() and int(row[3]) < _INODES_SHARE * int(row[1]):
                fact = f"{int(row[3]) * 100 // int(row[1])} % of the inodes of {folder} are available"
                yield Fault(fact, seen.on(host, "df -i"), f"at least {_INODES_SHARE:.0%}", Level.WARNING)

    return _of_parts(seen, "inodes", short)


def _memory(seen: Seen) -> Iterator[Case]:
    def short(host: str, memory: Memory) -> Iterator[Fault]:
        if memory.available < judge.MEMORY_SHARE * memory.total:
            fact = f"{memory.available * 100 // memory.total} % of the memory is available"
            yield Fault(fact, seen.on(host, "free -h"), f"at least {judge.MEMORY_SHARE:.0%}", Level.WARNING)

    for machine in seen.status.machines:
        yield Case(machine.name, judged(machine.memory, partial(short, machine.name)))


def _clock(seen: Seen) -> Iterator[Case]:
    limit = seen.status.clock_limit

    def wrong(host: str, offset: float) -> Iterator[Fault]:
        if abs(offset) > limit:
            fact = f"its clock differs by {offset:+.1f} s"
            yield Fault(fact, seen.on(host, "timedatectl"), f"at most {limit:g} s", Level.WARNING)

    for machine in seen.status.machines:
        yield Case(machine.name, judged(machine.offset, partial(wrong, machine.name)))


def _huge_pages(seen: Seen) -> Iterator[Case]:
    def stalls(host: str, text: str) -> Iterator[Fault]:
        enabled, defrag = text.strip().splitlines()[:2]
        if not ("[" in enabled and "[" in defrag):
            raise ValueError("the kernel has chosen nothing")
        # Where a program asks for them, or the kernel makes them beside it, no process waits.
        if "[always]" in enabled and "[always]" in defrag:
            path = "/sys/kernel/mm/transparent_hugepage/defrag"
            fact = "every process may be stopped while the kernel makes huge pages"
            action = seen.on(host, f"sh -c 'echo madvise > {path}'")
            yield Fault(fact, action, f"madvise in {path}", Level.WARNING)

    return _of_parts(seen, "thp", stalls)


def _names(seen: Seen) -> Iterator[Case]:
    addresses = {host.name: host.address for host in seen.cluster.hosts}

    def wrong(here: str, text: str) -> Iterator[Fault]:
        rows = dict(_named(line) for line in text.splitlines() if line)
        action = seen.on(here, "cat /etc/hosts")
        for name, address in addresses.items():
            forward, backward = rows[name]
            if forward != [address]:
                yield Fault(f"{name} resolves to {', '.join(forward) or 'nothing'}", action, address)
            elif name.partition(".")[0] not in {one.partition(".")[0] for one in backward}:
                yield Fault(f"{address} is called {' '.join(backward) or 'nothing'}", action, name)

    return _of_parts(seen, "names", wrong)


def _named(line: str) -> tuple[str, tuple[list[str], list[str]]]:
    name, forward, backward = line.split("|")
    return name, (forward.split(), backward.split())


def _away(seen: Seen) -> Iterator[Case]:
    def gone(host: str, mark: away.Mark) -> Iterator[Fault]:
        if mark:
            action = judge.way_back(seen.status, host, mark)
            yield Fault(away.told(mark), action, away.EXPECTED[mark["state"]], Level.WARNING)

    for name, answer in seen.status.away.items():
        yield Case(name, judged(answer, partial(gone, name)))


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
