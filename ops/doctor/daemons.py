"""Checks of the units: states, restarts, limits, ports, and files that they have not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from operator import itemgetter

from lakehouse import endpoints, services
from lakehouse.validation.finding import Level
from ops.change import removal
from ops.doctor.model import SETTLED_SECONDS, Case, Check, Fault, Seen, judged, runs
from ops.maybe import both
from ops.status import judge, placement
from ops.status.model import RUNNING, STOPPED, Placed, Unit
from plugins.module_utils.lakehouse.counting import counted

# A daemon that waited for what it needs came back a few times before it stayed.
_MANY_RESTARTS, _RECENT_SECONDS = 3, 120
# What systemd keeps of a limit, what the kernel calls it, and what no daemon is content with less than.
_LIMITS = (("LimitNOFILESoft", "open files", 4096), ("LimitNPROCSoft", "processes", 0))
_KIB, _MIB = 1024, 1024**2
_SWAPPED_BYTES, _SWAPPED_SHARE = 256 * _MIB, 0.5
_WORDS = re.compile(r"^Max ([a-z ]+?) {2,}(\S+)", re.MULTILINE)
# Of systemd itself: in a container, which may not raise it, no process has more.
_MOST = re.compile(r"^Most ([a-z ]+?) {2,}\S+ +(\S+)", re.MULTILINE)
_MEMORY = re.compile(r"^(Vm\w+):\s+(\d+) kB", re.MULTILINE)
_FILE = re.compile(r"^file (\d+) (.+)$", re.MULTILINE)
_EVERYWHERE = "*"


@dataclass(frozen=True)
class Process:
    """A unit's main process: limits given, possible and real, memory in bytes, and when its files changed."""

    started: float
    given: Mapping[str, float]
    most: Mapping[str, float]
    limits: Mapping[str, float]
    memory: Mapping[str, int]
    files: Mapping[str, int]


def processes(text: str) -> dict[str, Process]:
    """Read what `show` printed, by unit."""
    blocks = (block.split("\n", 1) for block in re.split(r"^@ ", text, flags=re.MULTILINE)[1:])
    return {unit: _process(body) for unit, body in blocks}


def _process(body: str) -> Process:
    known = dict(line.split("=", 1) for line in body.splitlines() if re.match(r"\w+=", line))
    files: dict[str, int] = {}
    for changed, path in _FILE.findall(body):
        files[path] = max(int(changed), files.get(path, 0))
    return Process(
        started=float(known["ExecMainStartTimestamp"].removeprefix("@") or 0),
        given={name: _number(known[name]) for name, _, _ in _LIMITS},
        most={name: _number(value) for name, value in _MOST.findall(body)},
        limits={name: _number(value) for name, value in _WORDS.findall(body)},
        memory={name: int(size) * _KIB for name, size in _MEMORY.findall(body)},
        files=files,
    )


def _number(text: str) -> float:
    return float("inf") if text in {"infinity", "unlimited"} else float(text)


Judge = Callable[[Placed, Process], Iterator[Fault]]


def _of_processes(seen: Seen, judge_it: Judge) -> Iterator[Case]:
    """Give a case for each unit; of one that does not run there is no process to judge."""
    known = {host.name: seen.part(host.name, "daemons").then(processes) for host in seen.cluster.hosts}
    for placed in seen.status.services:
        process = known[placed.host].then(itemgetter(placed.unit))
        yield Case(placed.host, both(placed.state, process, partial(_if_running, judge_it, placed)))


def _if_running(judge_it: Judge, placed: Placed, unit: Unit, process: Process) -> tuple[Fault, ...]:
    return tuple(judge_it(placed, process)) if unit.word == RUNNING else ()


def _of_units(seen: Seen, judge_it: Callable[[Placed, Unit], Iterator[Fault]]) -> Iterator[Case]:
    for placed in seen.status.services:
        yield Case(placed.host, judged(placed.state, partial(judge_it, placed)))


def _states(*, stopped: bool) -> Callable[[Seen], Iterator[Case]]:
    """Return the check of units that an operator stopped, or of those that ended by themselves."""

    def cases(seen: Seen) -> Iterator[Case]:
        def wrong(placed: Placed, unit: Unit) -> Iterator[Fault]:
            if unit.word != RUNNING and (unit.word in STOPPED) is stopped:
                fact = f"{placed.service} is {unit.word} ({unit.active}/{unit.sub})"
                yield Fault(fact, judge.start(seen.status, placed), RUNNING)

        return _of_units(seen, wrong)

    return cases


def _enabled(seen: Seen) -> Iterator[Case]:
    """The next boot of a host starts what runs there."""

    def disabled(placed: Placed, unit: Unit) -> Iterator[Fault]:
        if unit.word == RUNNING and not unit.enabled:
            yield Fault(f"{placed.service} is disabled: it does not start at a boot", seen.site, "enabled")

    return _of_units(seen, disabled)


def _left(seen: Seen) -> Iterator[Case]:
    """A unit runs on a host where the inventory does not place it."""
    known = {placement.unit(row): row for row in services.load().services.values()}
    everywhere = {row.role for rows in seen.cluster.services.values() for row in rows}

    def there(host: str, text: str) -> Iterator[Fault]:
        for name in text.split():
            row = known[name.removesuffix(".service")]
            gone = row.role not in everywhere and row.role in removal.removable()
            stop = seen.on(host, f"systemctl disable --now {name}")
            action = seen.lakehouse(f"remove {row.role}") if gone else stop
            yield Fault(f"{row.name} runs, and the inventory has none here", action, level=Level.WARNING)

    for host in seen.cluster.hosts:
        yield Case(host.name, judged(seen.part(host.name, "left"), partial(there, host.name)))


def _restarts(seen: Seen) -> Iterator[Case]:
    def often(placed: Placed, unit: Unit) -> Iterator[Fault]:
        if unit.word == RUNNING and unit.restarts >= _MANY_RESTARTS and seen.age(placed) < _RECENT_SECONDS:
            times = counted(unit.restarts, "time")
            fact = f"{placed.service} came back {times}, {seen.age(placed):.0f} s ago the last"
            yield Fault(fact, seen.journal(placed), "a daemon that stays", Level.WARNING)

    return _of_units(seen, often)


def _limits(seen: Seen) -> Iterator[Case]:
    def low(placed: Placed, process: Process) -> Iterator[Fault]:
        for name, word, least in _LIMITS:
            expected = max(min(process.given[name], process.most[word]), least)
            real = process.limits[word]
            if real < expected:
                fact = f"{placed.service} may have {real:.0f} {word}"
                yield Fault(fact, seen.restart(placed), f"{expected:.0f}")

    return _of_processes(seen, low)


def _swapped(seen: Seen) -> Iterator[Case]:
    def out(placed: Placed, process: Process) -> Iterator[Fault]:
        swapped = process.memory["VmSwap"]
        share = swapped / max(swapped + process.memory["VmRSS"], 1)
        if swapped >= _SWAPPED_BYTES and share > _SWAPPED_SHARE:
            fact = f"{swapped // _MIB} MiB of {placed.service} are swapped out, {share:.0%} of it"
            action = seen.on(placed.host, "free -h")
            yield Fault(fact, action, f"at most {_SWAPPED_SHARE:.0%}", Level.WARNING)

    return _of_processes(seen, out)


def unread(process: Process) -> list[str]:
    """Return the files that changed after a process had started; both moments are whole seconds."""
    return sorted(path for path, changed in process.files.items() if changed > process.started + 1)


def waits(seen: Seen, placed: Placed) -> bool:
    """Tell whether a unit is known to run with files that it has not read."""
    process = seen.part(placed.host, "daemons").then(processes).then(itemgetter(placed.unit))
    return process.value is not None and bool(unread(process.value))


def _unread(seen: Seen) -> Iterator[Case]:
    def newer(placed: Placed, process: Process) -> Iterator[Fault]:
        if files := unread(process):
            rest = f" and {len(files) - 1} more" if files[1:] else ""
            fact = f"{placed.service} has not read {files[0]}{rest}, which changed after it started"
            yield Fault(fact, seen.site, "a restart", Level.WARNING)

    return _of_processes(seen, newer)


def _listening(seen: Seen) -> Iterator[Case]:
    catalogue = services.load().services

    def wrong(placed: Placed, ports: Mapping[int, set[str]]) -> Iterator[Fault]:
        host = seen.host(placed.host)
        if not runs(placed) or seen.age(placed) < SETTLED_SECONDS:
            return
        for listener in catalogue[placed.service].listeners:
            number = endpoints.on(listener.name, host).port
            there = ports.get(number, set())
            if listener.leading and not there:
                continue  # another host leads
            if not there & {host.address, _EVERYWHERE}:
                where = f"on {', '.join(sorted(there))} alone" if there else "on no address"
                fact = f"{placed.service} listens on port {number} {where}"
                yield Fault(fact, seen.journal(placed), host.address)

    for placed in seen.status.services:
        heard = seen.part(placed.host, "listening").then(listeners)
        yield Case(
            placed.host, both(placed.state, judged(heard, partial(wrong, placed)), lambda _, them: them)
        )


def listeners(text: str) -> dict[int, set[str]]:
    """Read `ss -Hltn`: by port, the addresses on which a server waits; a star stands for all of them."""
    found: dict[int, set[str]] = {}
    for line in text.splitlines():
        if line.strip():
            name, _, port = line.split()[3].rpartition(":")
            found.setdefault(int(port), set()).add(_address(name))
    return found


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
