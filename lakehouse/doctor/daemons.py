"""Checks of units: states, restarts, limits, ports, and configuration that needs a restart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from operator import itemgetter

from lakehouse.doctor.model import SETTLED_SECONDS, Case, Check, Fault, Snapshot, judged, runs
from lakehouse.maybe import both
from lakehouse.model import endpoints, placement, services
from lakehouse.status import judge
from lakehouse.status.model import RUNNING, STOPPED, Placed, Unit
from lakehouse.validation.finding import Level
from plugins.module_utils.lakehouse.counting import counted, first_and_rest

# A daemon that waits for a dependency restarts a few times.
_MANY_RESTARTS, _RECENT_SECONDS = 3, 120
# A limit as named by systemd and by the kernel, and its minimum.
_LIMITS = (("LimitNOFILESoft", "open files", 4096), ("LimitNPROCSoft", "processes", 0))
_KIB, _MIB = 1024, 1024**2
_SWAPPED_BYTES, _SWAPPED_SHARE = 256 * _MIB, 0.5
_WORDS = re.compile(r"^Max ([a-z ]+?) {2,}(\S+)", re.MULTILINE)
# The limits of systemd itself, which those of no process exceed in a container.
_MOST = re.compile(r"^Most ([a-z ]+?) {2,}\S+ +(\S+)", re.MULTILINE)
_MEMORY = re.compile(r"^(Vm\w+):\s+(\d+) kB", re.MULTILINE)
_FILE = re.compile(r"^file (\d+) (.+)$", re.MULTILINE)
_EVERYWHERE = "*"


@dataclass(frozen=True)
class Process:
    """A unit's main process: limits configured, possible and actual, memory in bytes, mtimes of its files."""

    started: float
    configured: Mapping[str, float]
    most: Mapping[str, float]
    limits: Mapping[str, float]
    memory: Mapping[str, int]
    files: Mapping[str, int]


def processes(text: str) -> dict[str, Process]:
    """Parse the output of `show`, by unit."""
    blocks = (block.split("\n", 1) for block in re.split(r"^@ ", text, flags=re.MULTILINE)[1:])
    return {unit: _process(body) for unit, body in blocks}


def _process(body: str) -> Process:
    properties = dict(line.split("=", 1) for line in body.splitlines() if re.match(r"\w+=", line))
    files: dict[str, int] = {}
    for changed, path in _FILE.findall(body):
        files[path] = max(int(changed), files.get(path, 0))
    return Process(
        started=float(properties["ExecMainStartTimestamp"].removeprefix("@") or 0),
        configured={name: _number(properties[name]) for name, _, _ in _LIMITS},
        most={name: _number(value) for name, value in _MOST.findall(body)},
        limits={name: _number(value) for name, value in _WORDS.findall(body)},
        memory={name: int(size) * _KIB for name, size in _MEMORY.findall(body)},
        files=files,
    )


def _number(text: str) -> float:
    return float("inf") if text in {"infinity", "unlimited"} else float(text)


Judge = Callable[[Placed, Process], Iterator[Fault]]


def _of_processes(snapshot: Snapshot, find_faults: Judge) -> Iterator[Case]:
    """Yield a case for each unit; the process of a running one is judged."""
    processes_by_host = {
        host.name: snapshot.part(host.name, "daemons").then(processes) for host in snapshot.cluster.hosts
    }
    for placed in snapshot.status.services:
        process = processes_by_host[placed.host].then(itemgetter(placed.unit))
        yield Case(placed.host, both(placed.state, process, partial(_if_running, find_faults, placed)))


def _if_running(find_faults: Judge, placed: Placed, unit: Unit, process: Process) -> tuple[Fault, ...]:
    return tuple(find_faults(placed, process)) if unit.word == RUNNING else ()


def _of_units(snapshot: Snapshot, find_faults: Callable[[Placed, Unit], Iterator[Fault]]) -> Iterator[Case]:
    for placed in snapshot.status.services:
        yield Case(placed.host, judged(placed.state, partial(find_faults, placed)))


def _states(*, stopped: bool) -> Callable[[Snapshot], Iterator[Case]]:
    """Return the check of units that an operator stopped, or of those that failed."""

    def cases(snapshot: Snapshot) -> Iterator[Case]:
        def wrong(placed: Placed, unit: Unit) -> Iterator[Fault]:
            if unit.word != RUNNING and (unit.word in STOPPED) is stopped:
                fact = f"{placed.service} is {unit.word} ({unit.active}/{unit.sub})"
                yield Fault(fact, judge.start(snapshot.status, placed), RUNNING)

        return _of_units(snapshot, wrong)

    return cases


def _enabled(snapshot: Snapshot) -> Iterator[Case]:
    """Check that running units are enabled."""

    def disabled(placed: Placed, unit: Unit) -> Iterator[Fault]:
        if unit.word == RUNNING and not unit.enabled:
            yield Fault(
                f"{placed.service} is disabled: it does not start at a boot", snapshot.site, "enabled"
            )

    return _of_units(snapshot, disabled)


def _left(snapshot: Snapshot) -> Iterator[Case]:
    """Check that no unit runs on a host where the inventory does not place it."""
    rows_by_unit = {placement.unit(row): row for row in services.load().services.values()}
    everywhere = {row.role for rows in snapshot.cluster.services.values() for row in rows}

    def unplaced(host: str, text: str) -> Iterator[Fault]:
        for name in text.split():
            row = rows_by_unit[name.removesuffix(".service")]
            is_removable = row.role not in everywhere and row.role in services.load().removable()
            stop = snapshot.on(host, f"systemctl disable --now {name}")
            action = snapshot.lakehouse(f"remove {row.role}") if is_removable else stop
            yield Fault(f"{row.name} runs, and the inventory has none here", action, level=Level.WARNING)

    for host in snapshot.cluster.hosts:
        yield Case(host.name, judged(snapshot.part(host.name, "left"), partial(unplaced, host.name)))


def _restarts(snapshot: Snapshot) -> Iterator[Case]:
    def often(placed: Placed, unit: Unit) -> Iterator[Fault]:
        if (
            unit.word == RUNNING
            and unit.restarts >= _MANY_RESTARTS
            and snapshot.age(placed) < _RECENT_SECONDS
        ):
            times = counted(unit.restarts, "time")
            fact = f"{placed.service} came back {times}, {snapshot.age(placed):.0f} s ago the last"
            yield Fault(fact, snapshot.journal(placed), "a daemon that stays", Level.WARNING)

    return _of_units(snapshot, often)


def _limits(snapshot: Snapshot) -> Iterator[Case]:
    def low(placed: Placed, process: Process) -> Iterator[Fault]:
        for name, word, least in _LIMITS:
            expected = max(min(process.configured[name], process.most[word]), least)
            real = process.limits[word]
            if real < expected:
                fact = f"{placed.service} may have {real:.0f} {word}"
                yield Fault(fact, snapshot.restart(placed), f"{expected:.0f}")

    return _of_processes(snapshot, low)


def _swapped(snapshot: Snapshot) -> Iterator[Case]:
    def out(placed: Placed, process: Process) -> Iterator[Fault]:
        swapped = process.memory["VmSwap"]
        share = swapped / max(swapped + process.memory["VmRSS"], 1)
        if swapped >= _SWAPPED_BYTES and share > _SWAPPED_SHARE:
            fact = f"{swapped // _MIB} MiB of {placed.service} are swapped out, {share:.0%} of it"
            action = snapshot.on(placed.host, "free -h")
            yield Fault(fact, action, f"at most {_SWAPPED_SHARE:.0%}", Level.WARNING)

    return _of_processes(snapshot, out)


def unread(process: Process) -> list[str]:
    """Return the files that changed after a process had started; both times are whole seconds."""
    return sorted(path for path, changed in process.files.items() if changed > process.started + 1)


def waits(snapshot: Snapshot, placed: Placed) -> bool:
    """Return whether a unit is known to run with outdated configuration."""
    process = snapshot.part(placed.host, "daemons").then(processes).then(itemgetter(placed.unit))
    return process.value is not None and bool(unread(process.value))


def _unread(snapshot: Snapshot) -> Iterator[Case]:
    def newer(placed: Placed, process: Process) -> Iterator[Fault]:
        if files := unread(process):
            fact = f"{placed.service} has not read {first_and_rest(files)}, which changed after it started"
            yield Fault(fact, snapshot.site, "a restart", Level.WARNING)

    return _of_processes(snapshot, newer)


def _listening(snapshot: Snapshot) -> Iterator[Case]:
    catalogue = services.load().services

    def wrong(placed: Placed, ports: Mapping[int, set[str]]) -> Iterator[Fault]:
        host = snapshot.host(placed.host)
        if not runs(placed) or snapshot.age(placed) < SETTLED_SECONDS:
            return
        for listener in catalogue[placed.service].listeners:
            number = endpoints.on(listener.name, host).port
            addresses = ports.get(number, set())
            if listener.leading and not addresses:
                continue  # another host leads
            if not addresses & {host.address, _EVERYWHERE}:
                where = f"on {', '.join(sorted(addresses))} alone" if addresses else "on no address"
                fact = f"{placed.service} listens on port {number} {where}"
                yield Fault(fact, snapshot.journal(placed), host.address)

    for placed in snapshot.status.services:
        listening = snapshot.part(placed.host, "listening").then(listeners)
        yield Case(
            placed.host,
            both(placed.state, judged(listening, partial(wrong, placed)), lambda _, faults: faults),
        )


def listeners(text: str) -> dict[int, set[str]]:
    """Parse `ss -Hltn`: the listening addresses by port; a star is the wildcard address."""
    addresses: dict[int, set[str]] = {}
    for line in text.splitlines():
        if line.strip():
            name, _, port = line.split()[3].rpartition(":")
            addresses.setdefault(int(port), set()).add(_address(name))
    return addresses


def _address(text: str) -> str:
    name = text.strip("[]").partition("%")[0].removeprefix("::ffff:")
    everywhere = name == _EVERYWHERE or ip_address(name).is_unspecified
    return _EVERYWHERE if everywhere else name


CHECKS = (
    Check("unit.state", "a service is stopped", _states(stopped=True)),
    Check(
        "unit.failed",
        "a service ends by itself, or does not come to its start",
        _states(stopped=False),
        "correct what its journal says",
    ),
    Check("unit.enabled", "a service runs, and the next boot of its host does not start it", _enabled),
    Check("unit.left", "a service runs on a host where the inventory does not place it", _left),
    Check(
        "unit.restarts",
        "a service ends and comes back, again and again",
        _restarts,
        "correct what its journal says",
    ),
    Check("unit.limits", "a process runs with less open files or processes than its unit gives it", _limits),
    Check(
        "unit.swap",
        "most of a daemon is swapped out",
        _swapped,
        "end what else takes memory, or set node_memory_mb of the host lower and run site.yml",
    ),
    Check("unit.pending", "a file changed after the daemon that reads it had started", _unread),
    Check(
        "net.listens",
        "a service does not listen where others look for it",
        _listening,
        "correct what its journal says",
    ),
)
