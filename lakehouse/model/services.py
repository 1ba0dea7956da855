"""The catalogue of services, `services.yml`, as immutable data: hosts, users, ports, probes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lakehouse import yamlfile
from lakehouse.errors import LakehouseError
from lakehouse.run import ROOT
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.hdfs_gate import GATES

FILE = ROOT / "services.yml"
KEY = "lakehouse_catalogue"
# The allowed numbers of hosts of a group.
ONE, AT_MOST_ONE, PAIR, SOME, OPTIONAL, QUORUM = "one", "at most one", "pair", "some", "optional", "quorum"
COUNTS = (ONE, AT_MOST_ONE, PAIR, SOME, OPTIONAL, QUORUM)
# Counts that allow a group without a host.
DISPENSABLE = (AT_MOST_ONE, PAIR, OPTIONAL, QUORUM)
CORE, FULL = "core", "full"
# Of each block, where the inventory sets no other and there are as many DataNodes.
REPLICATION = 3
# The kinds of readiness probes.
HTTP, THRIFT, SPARK_CONNECT, TRINO, PSQL, BEELINE = (
    "http",
    "thrift",
    "spark_connect",
    "trino",
    "psql",
    "beeline",
)
KINDS = (HTTP, THRIFT, SPARK_CONNECT, TRINO, PSQL, BEELINE)
# Questions of one situation only: while the service is alone, or after the others have joined.
ALONE, JOINED = "alone", "joined"
# Protocols of listeners, each with the scheme of its URI and that under TLS; empty where clients get no URI.
PROTOCOLS = {
    "hdfs": ("hdfs", "hdfs"),
    HTTP: ("http", "https"),
    THRIFT: ("thrift", "thrift"),
    "postgresql": ("postgresql", "postgresql"),
    "spark": ("spark", "spark"),
    "grpc": ("grpc", "grpc"),
    "tcp": ("", ""),
}
# The first name in a condition.
_VARIABLE = re.compile(r"\b[a-z]\w*")


@dataclass(frozen=True)
class User:
    """A user of daemons: a key of `lakehouse_users`, with the default account."""

    name: str
    account: str
    description: str


@dataclass(frozen=True)
class Group:
    """A group of the inventory: `hosts` is one of COUNTS; `band` and `label` are the picture's."""

    name: str
    hosts: str
    profile: str
    band: str
    label: str


@dataclass(frozen=True)
class Release:
    """A component of the bill of materials that units run from. `proof` is the engine that proves it.

    `rolling` is whether HDFS's own upgrade prepares another version, `unmixed` whether the leader accepts no
    member of another version. `fixed` says why there is no other version, `one_way` why an older one may
    not read what a newer one has written; empty where that is not so.
    """

    name: str
    proof: str
    rolling: bool = False
    unmixed: bool = False
    fixed: str = ""
    one_way: str = ""


@dataclass(frozen=True)
class Listener:
    """A key of `lakehouse_ports`, with the port where an inventory names no other and one of PROTOCOLS.

    `scheme` is that of its URI, where the protocol has another or none. `leading` is whether the host that
    leads alone listens on it. `metrics` is the path at which the process itself serves metrics in the text
    format of Prometheus, `executor_metrics` that of metrics of the executors of a driver; None where it does
    not.
    """

    name: str
    port: int
    protocol: str
    description: str
    scheme: str = ""
    tls: bool = False
    leading: bool = False
    metrics: str | None = None
    executor_metrics: str | None = None

    @property
    def uri_scheme(self) -> str:
        """The scheme of its URI; empty where clients are given none."""
        return self.scheme or PROTOCOLS[self.protocol][self.tls]


@dataclass(frozen=True)
class Heap:
    """The size of a service: memory of its host by `divisor`, from `least` to `most`, all in MiB.

    Its process takes `max(beside, overhead x heap)` on top, and `unit` MiB for each of its variable's.
    `fallback` is the variable that counts where the service's own is not set.
    """

    divisor: int
    least: int
    most: int
    beside: int = 64
    overhead: float = 0.1
    unit: int = 1
    fallback: str | None = None


@dataclass(frozen=True)
class Ready:
    """A readiness probe of a port, of one of KINDS: only a working service passes it.

    Over HTTP it reads `path`. With `value`, a dotted path into the document, the value there `equals` a
    constant, is `among` some, of which one may be null, counts the `hosts` of a group, or is `at_least` a
    number.

    `asked` is None for an unconditional probe. JOINED probes depend on processes that a converge starts
    later; ALONE ones replace them there.
    """

    kind: str
    port: str
    path: str = "/"
    value: str | None = None
    equals: object = None
    among: tuple[object, ...] | None = None
    hosts: str | None = None
    at_least: int | None = None
    asked: str | None = None


@dataclass(frozen=True)
class Members:
    """Where a leader lists its members over HTTP, and a pattern whose group is the host in a member's id."""

    port: str
    path: str
    value: str
    name: str


@dataclass(frozen=True)
class Announce:
    """A command of its user before a process stops; `{place}` is host:port."""

    port: str
    command: str


@dataclass(frozen=True)
class Numbers:
    """Whole numbers from `least` to `most`, of which each host of a service has its own for ever."""

    least: int
    most: int


@dataclass(frozen=True)
class Gate:
    """A precondition of HDFS for a stop, one of GATES, and the port of the NameNode that is asked."""

    kind: str
    port: str


@dataclass(frozen=True)
class Drain:
    """A signal by which a process takes no more work, and where its page lists what is left: at `value`."""

    signal: str
    port: str
    path: str
    value: str


@dataclass(frozen=True)
class Service:
    """A systemd unit (a pattern, without `.service`) that the hosts of `groups` run.

    `instance` is what the pattern's star stands for, a template of the bill of materials. `release` is
    what it runs from, None where a package or the role brings its program. `user` is a key of
    `lakehouse_users`, None where it has an `account` that no inventory renames; `switch` is the variable
    that switches it on, None where it always runs;
    `leader` is the service to which its hosts report, None where they do not, and `members` where it
    lists them. `ready` is what it answers once it serves, and `settled` what has to be so besides at the
    end of all steps. `leads` is a question to its own port that, of several hosts, the leading one
    answers as said, None where no host leads; `hands_over` is a command after which another one leads.
    `numbers` are what its hosts are known by to each other, None where that is their names. `announce` is
    a command before a restart, None where clients need none. `notice` is what users notice while one of
    its hosts is without it (of several groups, one of the first, which leads), empty where they notice
    nothing. `gate` is open before it stops, and `drain` ends its work before it leaves for good; None
    where it has none. `logs` are files beside the journal: templates of paths in which a star stands for
    any name. `memory` names the variables that size it, first that of its `heap`, which is None where it
    shares what the others leave.
    """

    name: str
    groups: tuple[str, ...]
    role: str
    unit: str
    instance: str
    user: str | None
    listeners: tuple[Listener, ...]
    ready: tuple[Ready, ...]
    memory: tuple[str, ...]
    heap: Heap | None
    switch: str | None
    http: str | None
    leader: str | None
    account: str | None = None
    release: str | None = None
    members: Members | None = None
    leads: Ready | None = None
    hands_over: Announce | None = None
    numbers: Numbers | None = None
    announce: Announce | None = None
    notice: str = ""
    gate: Gate | None = None
    drain: Drain | None = None
    settled: tuple[Ready, ...] = ()
    logs: tuple[str, ...] = ()

    def listens_on(self, name: str) -> bool:
        """Tell whether a listener, by its name, is one of its own."""
        return any(name == listener.name for listener in self.listeners)


@dataclass(frozen=True)
class Catalogue:
    """All rows, each by its name and in the order of the file; and the units that the clock starts."""

    users: Mapping[str, User]
    groups: Mapping[str, Group]
    services: Mapping[str, Service]
    releases: Mapping[str, Release]
    timers: tuple[str, ...]

    @property
    def listeners(self) -> dict[str, Listener]:
        """The listeners of all services, by name."""
        return {
            listener.name: listener for service in self.services.values() for listener in service.listeners
        }

    def owner(self, listener: str) -> Service:
        """Return the service that has a listener."""
        return next(service for service in self.services.values() if service.listens_on(listener))

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """What `lakehouse_ports` and `lakehouse_users` hold where an inventory says nothing."""
        return {
            "lakehouse_ports": {name: listener.port for name, listener in self.listeners.items()},
            "lakehouse_users": {name: user.account for name, user in self.users.items()},
        }

    @property
    def options(self) -> dict[str, dict[str, dict[str, str]]]:
        """The members of the two tables as options of an argument specification."""
        return {
            "lakehouse_ports": {
                name: {"type": "int", "description": f"{listener.description} Default: {listener.port}"}
                for name, listener in self.listeners.items()
            },
            "lakehouse_users": {
                name: {"type": "str", "description": f"{user.description} Default: {user.account}"}
                for name, user in self.users.items()
            },
        }

    def sized(self, *hosts: str) -> tuple[str, ...]:
        """Return the groups with that many hosts, of COUNTS."""
        return tuple(name for name, group in self.groups.items() if group.hosts in hosts)

    def placed(self, *, small: bool) -> frozenset[str]:
        """Return the groups that the small profile, or the full one, places on hosts."""
        return frozenset(name for name, group in self.groups.items() if not small or group.profile == CORE)

    def running(
        self, groups: Collection[str], variables: Mapping[str, Any], *, small: bool
    ) -> frozenset[str]:
        """Return the names of the services of a host, in the small profile or the full one.

        `groups` and `variables` are the host's.
        """
        placed = self.placed(small=small).intersection(groups)
        return frozenset(
            service.name
            for service in self.services.values()
            if placed.intersection(service.groups)
            and (service.switch is None or variables.get(service.switch))
        )

    def removable(self) -> dict[str, tuple[Service, ...]]:
        """Return the services of each component that a cluster can do without, by the component's name."""
        components: dict[str, tuple[Service, ...]] = {}
        for service in self.services.values():
            components[service.role] = (*components.get(service.role, ()), service)
        optional = {*self.sized(*DISPENSABLE)}
        return {
            component: services
            for component, services in components.items()
            # Units and folders of a package's name may be a person's.
            if all(set(service.groups) <= optional and service.account is None for service in services)
        }

    @property
    def engines(self) -> tuple[str, ...]:
        """Roles of the services that the small profile excludes."""
        roles = [
            service.role
            for service in self.services.values()
            if all(self.groups[group].profile == FULL for group in service.groups)
        ]
        return tuple(dict.fromkeys(roles))


@cache
def load(path: Path = FILE) -> Catalogue:
    """Read the catalogue; LakehouseError names the row that is wrong."""
    rows = yamlfile.read(path)[KEY]
    catalogue = Catalogue(
        users={name: _row(User, path, name, row) for name, row in rows["users"].items()},
        groups={name: _row(Group, path, name, row) for name, row in rows["groups"].items()},
        services={name: _service(path, name, row) for name, row in rows["services"].items()},
        releases={name: _row(Release, path, name, row) for name, row in rows.get("releases", {}).items()},
        timers=tuple(rows.get("timers", ())),
    )
    for fault in _faults(catalogue):
        raise LakehouseError(f"{path.name}: {fault}", f"correct {path}")
    return catalogue


def _row(kind: Any, path: Path, name: str, row: Mapping[str, Any]) -> Any:
    return _made(kind, path, f"{kind.__name__.lower()} {name}", {"name": name, **row})


def _named(name: str, entry: object) -> object:
    return {"name": name, **entry} if isinstance(entry, Mapping) else entry


def _made(kind: Any, path: Path, subject: str, fields: object) -> Any:
    if not isinstance(fields, Mapping):
        raise LakehouseError(
            f"{path.name}: {subject}: {fields!r} is no mapping of keys to values", f"correct {path}"
        )
    try:
        return kind(
            **{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
        )
    except TypeError as error:
        reason = str(error).rpartition("() ")[2]
        raise LakehouseError(f"{path.name}: {subject}: {reason}", f"correct {path}") from None


# Parts of a row of which there is at most one.
_PARTS = {
    "members": Members,
    "leads": Ready,
    "hands_over": Announce,
    "numbers": Numbers,
    "announce": Announce,
    "gate": Gate,
    "drain": Drain,
}


def _service(path: Path, name: str, row: Mapping[str, Any]) -> Service:
    # Only Ansible reads `enabled` and `storage`.
    fields = {key: value for key, value in row.items() if key not in {"enabled", "storage"}}
    listeners = tuple(
        _made(Listener, path, f"service {name}: listener {listener}", _named(listener, entry))
        for listener, entry in row.get("listeners", {}).items()
    )
    questions = {
        key: tuple(_made(Ready, path, f"service {name}: {key}", entry) for entry in row.get(key, ()))
        for key in ("ready", "settled")
    }
    parts = {
        key: _made(kind, path, f"service {name}: {key}", row[key])
        for key, kind in _PARTS.items()
        if key in row
    }
    lists = {key: tuple(row.get(key, ())) for key in ("groups", "memory", "logs")}
    heap = _made(Heap, path, f"service {name}: heap", row["heap"]) if "heap" in row else None
    switch = _VARIABLE.search(str(row.get("enabled", "")))
    values = (
        {"instance": "", "user": None, "http": None, "leader": None, "switch": switch and switch[0]}
        | fields
        | {"listeners": listeners, "heap": heap}
        | questions
        | parts
        | lists
    )
    service: Service = _row(Service, path, name, values)
    return service


def _faults(catalogue: Catalogue) -> Iterable[str]:
    """Give the errors of the catalogue's rows."""
    for group in catalogue.groups.values():
        if group.hosts not in COUNTS or group.profile not in {CORE, FULL}:
            allowed = f"{', '.join(COUNTS[:-1])} or {COUNTS[-1]}"
            yield f"group {group.name}: hosts is {allowed}; profile is core or full"
    for service in catalogue.services.values():
        yield from (f"service {service.name}: {fault}" for fault in _service_faults(catalogue, service))
        yield from _unasked(catalogue, service)
    listeners = [listener for service in catalogue.services.values() for listener in service.listeners]
    for counts in (
        Counter(listener.name for listener in listeners),
        Counter(listener.port for listener in listeners),
    ):
        yield from (
            f"port {value} is there {counted(count, 'time')}" for value, count in counts.items() if count > 1
        )


def _service_faults(catalogue: Catalogue, service: Service) -> Iterable[str]:
    if not service.groups or not set(service.groups) <= catalogue.groups.keys():
        yield "each of its groups stands under groups"
    if service.account is None and service.user not in catalogue.users:
        yield f"its user {service.user} stands under users, or it has an account"
    if service.release is not None and service.release not in catalogue.releases:
        yield f"its release {service.release} stands under releases"
    if service.leader is not None and service.leader not in catalogue.services:
        yield f"its leader {service.leader} stands under services"
    if service.http is not None and not service.listens_on(service.http):
        yield "http names one of its listeners"
    for listener in service.listeners:
        yield from (f"listener {listener.name}: {fault}" for fault in _listener_faults(listener))
    if service.heap is not None:
        yield from _heap_faults(service, service.heap)
    yield from _stop_faults(catalogue, service)
    yield from _member_faults(service)


def _stop_faults(catalogue: Catalogue, service: Service) -> Iterable[str]:
    """Say what is wrong with what happens before a unit stops."""
    if service.gate is not None and service.gate.kind not in GATES:
        yield f"its gate is {' or '.join(GATES)}, not {service.gate.kind}"
    if service.gate is not None and not (service.user and service.gate.port in catalogue.listeners):
        yield "its gate names a listener of a service, and it has a user"
    if service.drain is not None and not service.listens_on(service.drain.port):
        yield "drain names one of its listeners"
    for name in ("announce", "hands_over"):
        command = getattr(service, name)
        if command is not None and not (service.user and service.listens_on(command.port)):
            yield f"{name} names one of its listeners, and it has a user"


def _member_faults(service: Service) -> Iterable[str]:
    """Say what is wrong with what tells its hosts apart."""
    leads = service.leads
    if leads is not None and not (leads.kind == HTTP and service.listens_on(leads.port)):
        yield "leads is a question over HTTP to one of its listeners"
    if leads is None and service.hands_over:
        yield "a service with hands_over has leads, too"
    numbers = service.numbers
    if numbers is not None and not 0 <= numbers.least < numbers.most:
        yield "its numbers are from least to most, and there are two or more"


def _listener_faults(listener: Listener) -> Iterable[str]:
    if listener.protocol not in PROTOCOLS:
        yield f"protocol {listener.protocol} is none of {', '.join(PROTOCOLS)}"
    for name in ("tls", "leading"):
        if getattr(listener, name) not in (True, False):
            yield f"{name} is {getattr(listener, name)!r}, not true or false"
    for name in ("metrics", "executor_metrics"):
        path = getattr(listener, name)
        if path is not None and listener.protocol != HTTP:
            yield f"{name} is a path of HTTP, and the protocol is {listener.protocol}"
        elif path is not None and not str(path).startswith("/"):
            yield f"{name} is {path!r}, not a path that starts with /"


def _heap_faults(service: Service, heap: Heap) -> Iterable[str]:
    if not service.memory:
        yield "the variable of its heap is the first of memory"
    if heap.divisor < 1 or heap.unit < 1:
        yield "divisor and unit of its heap are 1 or more"
    if not 0 < heap.least <= heap.most:
        yield "its heap is from least to most MiB"


def _unasked(catalogue: Catalogue, service: Service) -> Iterable[str]:
    """Give the errors of probes: a service without one would count as serving as soon as it runs."""
    questions = (*service.ready, *service.settled, *filter(None, [service.leads]))
    if not service.ready:
        yield f"service {service.name}: ready names what it answers once it serves"
    if unknown := sorted({question.kind for question in questions} - {*KINDS}):
        yield f"service {service.name}: a question is of the kind {', '.join(KINDS)}, not {unknown[0]}"
    if unknown := sorted({question.asked for question in questions if question.asked} - {ALONE, JOINED}):
        yield f"service {service.name}: a question is asked {ALONE} or {JOINED}, not {unknown[0]}"
    if service.ready and not [question for question in service.ready if question.asked != JOINED]:
        yield f"service {service.name}: ready has a question that is not asked {JOINED}"
    ports = {question.port for question in questions} | ({service.members.port} if service.members else set())
    if missing := sorted(ports - catalogue.listeners.keys()):
        yield f"service {service.name}: no service has the listener {missing[0]} that is asked"
    if missing := sorted(
        {question.hosts for question in questions if question.hosts} - catalogue.groups.keys()
    ):
        yield f"service {service.name}: the group {missing[0]} that is counted stands under groups"
