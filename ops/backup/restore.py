"""Brings a cluster back to a backup: the catalog to T0, then HDFS, and nothing in between can be asked.

Every step can be repeated, so an interrupted restore is completed by `lakehouse resume`.
"""

from __future__ import annotations

import re
import secrets
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from lakehouse import endpoints, services
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.inventory import Host
from lakehouse.next_command import command
from lakehouse.services import Service
from ops.backup import engines, postgresql, shell
from ops.change.facts import Living
from ops.change.result import Ending, Refusal, Stopped
from ops.change.run import Request, Running, Work
from ops.maybe import Answer, both
from ops.probing import Prober
from ops.status import look, placement, screen
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.counting import counted

VERB = "restore"
# What stays: the database is restored by its own step, and files are brought back to a file system that runs.
_STORAGE = ("postgresql", "namenode", "datanode")
_LONG_SECONDS = 6 * 3600.0
_STEP_SECONDS = 180.0
_START_SECONDS = 300.0
_SERVE_SECONDS = 600
_PROBE_SECONDS = 20.0
# Two files for each block are counted; a worker of Trino ends its queries before it stops.
_COUNT_SECONDS = _STOP_SECONDS = 900.0
_QUIET_SECONDS = 20.0
# Ports without registration, as RFC 6335 has them.
_FIRST_PORT, _PORTS = 49152, 16384
# Blocks are reported within seconds; what HDFS says of them is its last word when it stays the same so long.
_CALM_SECONDS = 8.0
# Of an address, a file, and the seconds that the other side may take to start, and to say the next word.
_FETCH = """
import socket, sys, time
from urllib.error import HTTPError
from urllib.request import urlretrieve
url, path, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
socket.setdefaulttimeout(seconds)
until = time.monotonic() + seconds
while True:
    try:
        urlretrieve(url, path)
        break
    except HTTPError:
        raise
    except OSError:
        if time.monotonic() > until:
            raise
        time.sleep(0.2)
"""
_FETCH_SECONDS = 30
_DISK = re.compile(r"(blocks|database) (\d{1,20}) (\d{1,20})")


def prepare(living: Living, request: Request) -> Work:
    """Return the plan; a Work with a refusal where the backup is damaged, or a disk has no room.

    Raises UsageError for bad input. docs/operations/restore.md lists the exit codes.
    """
    arguments = request.arguments
    moment = _moment(arguments["to"])
    name = [arguments["backup"]] if arguments["backup"] else []
    room = ["--room", *(["--keep"] if moment else [])]
    backup = shell.program(living.cluster, "verify", *name, *room, seconds=_LONG_SECONDS, read=_verified)
    return _planned(backup, moment, living, request)


def _planned(backup: Mapping[str, Any], moment: datetime | None, living: Living, request: Request) -> Work:
    """Return the plan of a backup that was verified, which takes as long as all of it is large."""
    cluster, arguments = living.cluster, request.arguments
    to = f" --to {arguments['to']}" if moment else ""
    known = str(cluster.variable("lakehouse_cluster"))
    count = len(backup.get("tables", ()))
    tables = counted(count, "table of then", "tables of then")
    danger = f"{known} gets the {tables}; what is newer leaves the catalog and is set aside"
    return Work(
        target=backup["name"],
        arguments={**arguments, "backup": backup["name"]},
        plan=[{"step": step} for step in STEPS],
        lines=[f"{VERB} {backup['name']}: every engine stops meanwhile", *(f"  {step}" for step in STEPS)],
        question="",
        do=partial(_do, backup, moment),
        danger="" if request.stopped else danger,
        typed=known,
        words=f"{backup['name']}{to}",
        refusal=_refusal(cluster, backup, moment, request.path),
        reread=partial(_planned, backup, moment),
    )


def _verified(answer: Any) -> dict[str, Any]:
    """Read a whole backup with the room that it needs; of a damaged one what is wrong with it."""
    found = backup_manifest.verified(answer)
    return found if found["problems"] else backup_manifest.room(found)


def _do(backup: Mapping[str, Any], moment: datetime | None, running: Running) -> tuple[str, ...]:
    step = Steps(running, backup)
    try:
        facts = step.run(moment)
        wrong = step.compare(moment)
    except LakehouseError as error:
        # The next command is the run's own: `resume`.
        raise Stopped(Ending.HALFWAY, error.message, "") from error
    for line in wrong:
        running.say(line)
    if wrong:
        more = f" and {len(wrong) - 1} more" if wrong[1:] else ""
        raise Stopped(Ending.HALFWAY, f"not as in the manifest: {wrong[0]}{more}", "")
    return facts


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise UsageError(f"--to {text} is no time with an offset", "--to 2026-01-02T03:04:05+00:00")
    if found > datetime.now(UTC):
        raise UsageError(f"--to {text} is in the future", "--to 2026-01-02T03:04:05+00:00")
    return found


def _refusal(
    cluster: Cluster, backup: Mapping[str, Any], moment: datetime | None, path: str
) -> Refusal | None:
    """Return why nothing is done, if so."""
    name = str(cluster.variable("lakehouse_cluster"))
    if backup["problems"]:
        more = f" and {len(backup['problems']) - 1} more" if backup["problems"][1:] else ""
        fact = f"damaged: {backup['problems'][0]}{more}"
        return Refusal(fact, command("backup list", path))
    if backup["cluster"] != name:
        raise LakehouseError(
            f"{backup['name']} is a backup of {backup['cluster']}, not of {name}",
            command("status", path),
        )
    if moment and moment.timestamp() < backup["database"]["at"]:
        raise LakehouseError(
            f"--to is before {backup['name']} was made",
            f"{command('backup list', path)}, then one that is older",
        )
    return _room(cluster, backup)


def _room(cluster: Cluster, backup: Mapping[str, Any]) -> Refusal | None:
    """Return why there is no room, by what each disk says now.

    What a file takes that is set aside stays so; without a NameNode it is unknown which files those are, and
    blocks that are there may be the backup's.
    """
    scripts = {}
    for host in cluster.hosts:
        folders = _folders(host) if "datanodes" in host.groups else []
        lines = [_sizes("blocks", shlex.quote(folder)) for folder in folders]
        if "postgresql" in host.groups:
            lines.append("data=$(sed -n 's/^pg1-path=//p' /etc/pgbackrest/pgbackrest.conf)")
            lines += ['mkdir -p "$data"', _sizes("database", '"$data"')]
        if lines:
            scripts[host.name] = "\n".join(lines)
    said = shell.must(cluster, scripts, _COUNT_SECONDS)
    return crowded(backup, [one for text in said.values() for one in sizes(text)])


def sizes(said: str) -> Iterator[tuple[str, int, int]]:
    """Give the disks of a host, of what programs print in between: that one is not there."""
    for line in said.splitlines():
        if found := _DISK.fullmatch(line.strip()):
            yield found[1], int(found[2]), int(found[3])


def crowded(backup: Mapping[str, Any], disks: Iterable[tuple[str, int, int]]) -> Refusal | None:
    """Return that a backup does not fit: disks hold `blocks` or the `database`, with bytes free and used."""
    free, used = Counter[str](), Counter[str]()
    for kind, one, other in disks:
        free[kind] += one
        used[kind] += other
    lacking, database = backup["lacking"], free["database"] + used["database"]
    blocks = free["blocks"] + (used["blocks"] if lacking is None else 0)
    for what, there, wanted in (
        ("the disks of the DataNodes", blocks, int(backup["room"] if lacking is None else lacking)),
        ("PostgreSQL's disk", database, int(backup["database"]["bytes"])),
    ):
        if there < wanted:
            fact = f"{what} have room for {there >> 20} MiB, and the backup needs {wanted >> 20} MiB"
            return Refusal(fact, "df -h, then the same command")
    return None


def _sizes(kind: str, folder: str) -> str:
    """Return what prints a word, the bytes that are free where a folder is, and those that it takes.

    Files come and go meanwhile, and a disk that was exchanged has no such folder yet: neither is a fault.
    """
    return (
        f"free=$(df -B1 --output=avail {folder} 2>/dev/null | tail -n 1)\n"
        f"used=$(du -sb {folder} 2>/dev/null | cut -f1)\n"
        f'echo {kind} "${{free:-0}}" "${{used:-0}}"'
    )


def _folders(host: Host) -> list[str]:
    """Return the directories of a DataNode."""
    return [str(folder) for folder in host.variables["lakehouse_datanode_dirs"]]


class Awake:
    """Tells why HDFS takes no writes yet, and leads it out of safe mode: files without blocks come later.

    It asks before it removes blocks that are newer than the image, which nothing names: `forceExit` says yes.
    """

    def __init__(self, living: Living, nodes: int) -> None:
        self._living = living
        self._nodes = nodes
        self._said, self._since = "", time.monotonic()

    def __call__(self) -> str:
        """Return why not yet; empty once it does."""
        info, state = self._living.bean("NameNodeInfo"), self._living.bean("FSNamesystemState")
        found: Answer[tuple[str, int]] = both(
            info, state, lambda one, other: (str(one["Safemode"]), int(other["NumLiveDataNodes"]))
        )
        if found.value is None:
            return found.why
        said, live = found.value
        if live != self._nodes:
            self._said, self._since = said, time.monotonic()
            return f"{live} of {counted(self._nodes, 'DataNode')} are there"
        if not said:
            return ""
        if said != self._said:
            self._said, self._since = said, time.monotonic()
        elif time.monotonic() - self._since > _CALM_SECONDS:
            self._leave(said)
            self._since = time.monotonic()
        return " ".join(said.split())

    def _leave(self, said: str) -> None:
        host = self._living.cluster.active("namenode")
        left = self._living.as_hdfs(f"hdfs dfsadmin -safemode {way_out(said)}")
        self._living.do(host.name, left, _STEP_SECONDS)


def way_out(said: str) -> str:
    """Return the word of `dfsadmin -safemode` that ends what the NameNode says of its safe mode."""
    return "forceExit" if "generation stamps in future" in said else "leave"


def leads(service: Service) -> bool:
    """Tell whether a service starts before the others of its role: the first of them in the catalogue."""
    return next(row for row in services.load().services.values() if row.role == service.role) == service


STEPS = ("engines stop", "PostgreSQL", "NameNode", "files", "engines start")


def image(  # noqa: PLR0913, PLR0917 -- a folder, whose it is, and what comes there from where
    folder: str, user: str, group: str, url: str, parts: Mapping[str, str], transaction: int
) -> list[str]:
    """Return the lines that fetch the NameNode's image into one of its folders.

    Root makes the folder where it is missing. What is in it is its user's, and done as that user: root would
    follow a link that leads out of it.
    """
    place = shlex.quote(folder)
    own = [f"cd {place}", "rm -rf restored", "mkdir restored", "cd restored"]
    for part, known in parts.items():
        words = ["python3", "-c", _FETCH, f"{url}/{quote(part)}", part, str(_FETCH_SECONDS)]
        own += [shlex.join(words), f"echo {shlex.quote(f'{known}  {part}')} | sha256sum --check --quiet"]
    # The last act: a half of it is no NameNode's directory.
    own += [f"echo {transaction} > seen_txid", "cd ..", "rm -rf current", "mv restored current"]
    script = shlex.quote("\n".join(["set -e", "umask 077", *own]))
    whose = f"-o {shlex.quote(user)} -g {shlex.quote(group)}"
    return [
        f'[ "$(stat -c %U {place} 2>/dev/null)" = {shlex.quote(user)} ] ||',
        f"install -d {whose} -m 0700 {place}",
        f"cd / && runuser -u {shlex.quote(user)} -g {shlex.quote(group)} -- sh -c {script}",
    ]


class Steps:
    """The steps, in their order."""

    def __init__(self, running: Running, backup: Mapping[str, Any]) -> None:
        self._running = running
        self._living = running.living
        self._cluster = running.living.cluster
        self._backup = backup
        self._keeper = shell.keeper(self._cluster)

    def run(self, moment: datetime | None) -> tuple[str, ...]:
        """Do all of them; LakehouseError where one fails."""
        stop, database, namenode, files, start = STEPS
        self._begin(stop)
        self._stop()
        self._begin(database)
        self._running.say(checked_document.printable(self._database(moment)))
        self._begin(namenode)
        self._namenode()
        self._begin(files)
        brought = self._files(keep=moment is not None)
        self._begin(start)
        self._start()
        aside = f", {brought['aside']} set aside in {brought['place']}" if brought["aside"] else ""
        return (f"{counted(brought['written'], 'file written', 'files written')}{aside}",)

    def _begin(self, step: str) -> None:
        self._running.begins(self._keeper, step)
        self._running.say(step)

    def compare(self, moment: datetime | None) -> list[str]:
        """Return where a table is not as the manifest says, for Spark and for Trino."""
        if moment:
            return []
        self._running.say("compares every table with the manifest")
        tables = self._backup["tables"]
        found = shell.program(
            self._cluster,
            "compare",
            self._backup["name"],
            seconds=_LONG_SECONDS,
            read=backup_manifest.compared,
        )
        return [*found["differences"], *engines.differences(self._cluster, tables)]

    def _units(self, *, leading: bool | None = None) -> dict[str, str]:
        """Return the units of each host: all, or those that lead, or the others."""
        units = {
            host.name: shlex.join(
                placement.unit(service)
                for service in self._cluster.services[host.name]
                if service.name not in _STORAGE and (leading is None or leads(service) is leading)
            )
            for host in self._cluster.hosts
        }
        return {host: names for host, names in units.items() if names}

    def _timers(self) -> Iterator[tuple[str, str]]:
        """Give what is done by the clock, and where: none of it while the cluster goes back."""
        yield self._keeper, "lakehouse-backup"
        if self._cluster.variable("lakehouse_catalog_enabled"):
            host = self._cluster.active("postgresql")
            yield host.name, "lakehouse-catalog"

    def _stop(self) -> None:
        scripts = {host: f"systemctl stop {names}" for host, names in self._units().items()}
        for host, timer in self._timers():
            # Its work, too: a commit would take PostgreSQL's recovery for a state of the catalog.
            stop = f"systemctl stop {timer}.timer {timer}.service"
            scripts[host] = f"{stop}; {scripts.get(host, 'true')}"
        shell.must(self._cluster, scripts, _STOP_SECONDS)

    def _database(self, moment: datetime | None) -> str:
        host = self._cluster.active("postgresql")
        unit = placement.unit(services.load().services["postgresql"])
        port = endpoints.on("postgresql", host).port
        instance = unit.partition("@")[2]
        known = self._backup["database"]
        if moment:
            target = postgresql.Target("", time=moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00"))
            shell.must(self._cluster, {host.name: postgresql.mark(unit, port)}, _STEP_SECONDS)
        else:
            target = postgresql.Target(known["label"], name=known["restore_point"])
        script = postgresql.restore(unit, port, f"/var/log/postgresql/postgresql-{instance}.log", target)
        said = shell.must(self._cluster, {host.name: shell.alone(script)}, _LONG_SECONDS)[host.name]
        return said.splitlines()[-1].partition("LOG:")[2].strip()

    def _namenode(self) -> None:
        """Have HDFS serve: from the backup's image where the NameNode has lost its own."""
        host = self._cluster.active("namenode")
        folders = [str(folder) for folder in host.variables["lakehouse_namenode_dirs"]]
        empty = " && ".join(f"[ ! -e {shlex.quote(folder)}/current/VERSION ]" for folder in folders)
        if shell.must(self._cluster, {host.name: f"if {empty}; then echo empty; fi"}, _PROBE_SECONDS)[
            host.name
        ]:
            self._running.say("puts the NameNode's image back")
            self._image(host, folders)
        start = "systemctl reset-failed {0}; systemctl start {0}"
        shell.must(self._cluster, {host.name: start.format("hdfs-namenode")}, _STEP_SECONDS)
        nodes = [node.name for node in self._cluster.running("datanodes")]
        shell.must(self._cluster, dict.fromkeys(nodes, start.format("hdfs-datanode")), _STEP_SECONDS)
        awake = Awake(self._living, len(nodes))
        self._running.wait("HDFS", awake, _STEP_SECONDS, _QUIET_SECONDS)

    def _image(self, host: Host, folders: list[str]) -> None:
        """Move the image from the repository's host: it serves it once, to one address, behind a word."""
        word = secrets.token_hex(16)
        unit, port = f"lakehouse-backup-serve-{word[:8]}", _FIRST_PORT + secrets.randbelow(_PORTS)
        serve = shlex.join(
            [shell.PROGRAM, "serve", self._backup["name"], "--to", host.address, "--word", word,
             "--port", str(port), "--seconds", str(_SERVE_SECONDS)]
        )  # fmt: skip
        begun = f"systemd-run --quiet --collect --unit {unit} --uid {shell.KEEPER} {serve}"
        shell.must(self._cluster, {self._keeper: begun}, _STEP_SECONDS)
        address = next(one.address for one in self._cluster.hosts if one.name == self._keeper)
        parts, transaction = backup_manifest.image(self._backup["parts"])
        user, group = host.variables["lakehouse_users"]["hdfs"], host.variables["lakehouse_group"]
        url = f"http://{address}:{port}/{word}"
        script = "\n".join(
            ["set -e", "systemctl stop hdfs-namenode"]
            + [line for folder in folders for line in image(folder, user, group, url, parts, transaction)]
        )
        shell.must(self._cluster, {host.name: shell.alone(script)}, _LONG_SECONDS)
        shell.act(self._cluster, {self._keeper: f"systemctl stop {unit}"}, _PROBE_SECONDS)

    def _files(self, *, keep: bool) -> Any:
        words = ["reconcile", self._backup["name"], *(["--keep"] if keep else [])]
        return shell.program(self._cluster, *words, seconds=_LONG_SECONDS, read=backup_manifest.brought)

    def _start(self) -> None:
        """Start everything, leaders first: a worker that meets no master asks again only after minutes."""
        for host, timer in self._timers():
            shell.must(self._cluster, {host: f"systemctl start {timer}.timer"}, _PROBE_SECONDS)
        for leading in (True, False):
            script = "systemctl reset-failed {0}; systemctl start {0}"
            scripts = {host: script.format(names) for host, names in self._units(leading=leading).items()}
            shell.must(self._cluster, scripts, _STEP_SECONDS)
            silent = partial(self._wrong, everything=not leading)
            self._running.wait("the cluster", silent, _START_SECONDS, _QUIET_SECONDS)

    def _wrong(self, *, everything: bool) -> str:
        """Return what is wrong with the cluster, or only which leader does not answer."""
        with closing(Prober()) as prober:
            seen = look.look(prober, str(self._cluster.inventory.path), time.monotonic() + _PROBE_SECONDS)
        found = (
            str(finding)
            for finding in screen.result(seen, 0.0).worst
            if everything or finding.code.endswith(".silent")
        )
        return next(found, "")
