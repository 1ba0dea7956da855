"""Restore a cluster from a backup: stop the engines, restore the catalog to T0 and HDFS, start the engines.

Steps are idempotent, so `lakehouse resume` completes an interrupted restore.
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

from lakehouse.backup import engines, postgresql, shell
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.maybe import Answer, both
from lakehouse.model import endpoints, placement, services
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.model.services import Service
from lakehouse.next_command import command
from lakehouse.remote.probing import Prober
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Refusal, Stopped
from lakehouse.rolling.run import Request, Running, Work
from lakehouse.status import look, screen
from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.counting import counted, first_and_rest

VERB = "restore"
# Services that are not stopped with the engines: their own steps restore them.
_STORAGE = ("postgresql", "namenode", "datanode")
_LONG_SECONDS = 6 * 3600.0
_STEP_SECONDS = 180.0
_START_SECONDS = 300.0
_SERVE_SECONDS = 600
_PROBE_SECONDS = 20.0
# Two files per block are counted; a Trino worker drains before it stops.
_COUNT_SECONDS = _STOP_SECONDS = 900.0
_QUIET_SECONDS = 20.0
# Ports without registration, as RFC 6335 has them.
_FIRST_PORT, _PORTS = 49152, 16384
# Blocks are reported within seconds: when the safe mode message is unchanged for so long, no more will come.
_CALM_SECONDS = 8.0
# Arguments: URL, file, and the seconds to wait for the server to start, and for each read.
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
# The folder of the database, which may be lost, and the one above it that is there.
_DATABASE_DISK = """data=$(sed -n 's/^pg1-path=//p' /etc/pgbackrest/pgbackrest.conf)
disk=$data; until [ -e "$disk" ]; do disk=$(dirname "$disk"); done"""
_DISK = re.compile(r"(blocks|database) (\d{1,20}) (\d{1,20})")


def prepare(living: Living, request: Request) -> Work:
    """Return the plan; a Work with a refusal where the backup is damaged, or a disk is too small.

    Raises UsageError for bad input. docs/operations/restore.md lists the exit codes.
    """
    arguments = request.arguments
    moment = _moment(arguments["to"])
    name = [arguments["backup"]] if arguments["backup"] else []
    room = ["--room", *(["--keep"] if moment else [])]
    backup = shell.program(living.cluster, "verify", *name, *room, seconds=_LONG_SECONDS, read=_verified)
    return _planned(backup, moment, living, request)


def _planned(backup: Mapping[str, Any], moment: datetime | None, living: Living, request: Request) -> Work:
    """Return the plan for a verified backup; verification reads all of it."""
    cluster, arguments = living.cluster, request.arguments
    option = f" --to {arguments['to']}" if moment else ""
    cluster_name = str(cluster.variable("lakehouse_cluster"))
    tables = counted(len(backup.get("tables", ())), "table of then", "tables of then")
    danger = f"{cluster_name} gets the {tables}; what is newer leaves the catalog and is set aside"
    return Work(
        target=backup["name"],
        arguments={**arguments, "backup": backup["name"]},
        plan=[{"step": step} for step in STEPS],
        lines=[f"{VERB} {backup['name']}: every engine stops meanwhile", *(f"  {step}" for step in STEPS)],
        question="",
        do=partial(_do, backup, moment),
        danger="" if request.stopped else danger,
        typed=cluster_name,
        words=f"{backup['name']}{option}",
        refusal=_refusal(cluster, backup, moment, request.path),
        reread=partial(_planned, backup, moment),
    )


def _verified(answer: Any) -> dict[str, Any]:
    """Parse the verification of a backup; of a good one with the space that it needs."""
    manifest = backup_manifest.verified(answer)
    return manifest if manifest["problems"] else backup_manifest.room(manifest)


def _do(backup: Mapping[str, Any], moment: datetime | None, running: Running) -> tuple[str, ...]:
    step = Steps(running, backup)
    try:
        facts = step.run(moment)
        differences = step.compare(moment)
    except LakehouseError as error:
        # The next command is the run's own: `resume`.
        raise Stopped(Ending.HALFWAY, error.message, "") from error
    for line in differences:
        running.say(line)
    if differences:
        raise Stopped(Ending.HALFWAY, f"not as in the manifest: {first_and_rest(differences)}", "")
    return facts


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UsageError(f"--to {text} is no time with an offset", "--to 2026-01-02T03:04:05+00:00")
    if moment > datetime.now(UTC):
        raise UsageError(f"--to {text} is in the future", "--to 2026-01-02T03:04:05+00:00")
    return moment


def _refusal(
    cluster: Cluster, backup: Mapping[str, Any], moment: datetime | None, path: str
) -> Refusal | None:
    """Return why the backup cannot be restored; None where it can."""
    name = str(cluster.variable("lakehouse_cluster"))
    if backup["problems"]:
        return Refusal(f"damaged: {first_and_rest(backup['problems'])}", command("backup list", path))
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
    """Return why the disks are too small, by their current usage; None where they are large enough.

    Files that are moved aside keep their space. Without a NameNode it is unknown which files those are, and
    existing blocks may be the backup's.
    """
    scripts = {}
    for host in cluster.hosts:
        folders = _folders(host) if "datanodes" in host.groups else []
        lines = [_sizes("blocks", shlex.quote(folder)) for folder in folders]
        if "postgresql" in host.groups:
            lines += [_DATABASE_DISK, _sizes("database", '"$data"', '"$disk"')]
        if lines:
            scripts[host.name] = "\n".join(lines)
    outputs = shell.must(cluster, scripts, _COUNT_SECONDS)
    return crowded(backup, [disk for text in outputs.values() for disk in sizes(text)])


def sizes(output: str) -> Iterator[tuple[str, int, int]]:
    """Parse kind, free and used bytes of each disk from a host's output; other lines are ignored."""
    for line in output.splitlines():
        if match := _DISK.fullmatch(line.strip()):
            yield match[1], int(match[2]), int(match[3])


def crowded(backup: Mapping[str, Any], disks: Iterable[tuple[str, int, int]]) -> Refusal | None:
    """Return which disks are too small for a backup: `blocks` or `database`, with free and used bytes."""
    free, used = Counter[str](), Counter[str]()
    for kind, free_bytes, used_bytes in disks:
        free[kind] += free_bytes
        used[kind] += used_bytes
    lacking, database = backup["lacking"], free["database"] + used["database"]
    blocks = free["blocks"] + (used["blocks"] if lacking is None else 0)
    for place, available, needed in (
        ("the disks of the DataNodes", blocks, int(backup["room"] if lacking is None else lacking)),
        ("PostgreSQL's disk", database, int(backup["database"]["bytes"])),
    ):
        if available < needed:
            fact = f"{place} have room for {available >> 20} MiB, and the backup needs {needed >> 20} MiB"
            return Refusal(fact, "df -h, then the same command")
    return None


def _sizes(kind: str, folder: str, disk: str = "") -> str:
    """Return the script that prints a kind, the free bytes of a folder's disk, and the folder's used bytes.

    `disk` is another folder on the same disk. Files that vanish meanwhile, and a folder that a replaced disk
    lacks, are no errors.
    """
    return (
        f"free=$(df -B1 --output=avail {disk or folder} 2>/dev/null | tail -n 1)\n"
        f"used=$(du -sb {folder} 2>/dev/null | cut -f1)\n"
        f'echo {kind} "${{free:-0}}" "${{used:-0}}"'
    )


def _folders(host: Host) -> list[str]:
    """Return the directories of a DataNode."""
    return [str(folder) for folder in host.variables["lakehouse_datanode_dirs"]]


class SafeMode:
    """Wait for the DataNodes, then leave safe mode: the files whose blocks are missing are restored later.

    HDFS stays in safe mode while blocks are newer than the image; `forceExit` lets it delete them.
    """

    def __init__(self, living: Living, datanodes: int) -> None:
        self._living = living
        self._datanodes = datanodes
        self._message, self._since = "", time.monotonic()

    def __call__(self) -> str:
        """Return why HDFS takes no writes yet; empty once it does."""
        info, state = self._living.bean("NameNodeInfo"), self._living.bean("FSNamesystemState")
        status: Answer[tuple[str, int]] = both(
            info, state, lambda namenode, system: (str(namenode["Safemode"]), int(system["NumLiveDataNodes"]))
        )
        if status.value is None:
            return status.why
        message, live = status.value
        if live != self._datanodes:
            self._message, self._since = message, time.monotonic()
            return f"{live} of {counted(self._datanodes, 'DataNode')} are there"
        if not message:
            return ""
        if message != self._message:
            self._message, self._since = message, time.monotonic()
        elif time.monotonic() - self._since > _CALM_SECONDS:
            self._leave(message)
            self._since = time.monotonic()
        return " ".join(message.split())

    def _leave(self, message: str) -> None:
        host = self._living.cluster.active("namenode")
        script = self._living.as_hdfs(f"hdfs dfsadmin -safemode {exit_action(message)}")
        self._living.do(host.name, script, _STEP_SECONDS)


def exit_action(message: str) -> str:
    """Return the action of `dfsadmin -safemode` that ends safe mode, by the NameNode's message."""
    return "forceExit" if "generation stamps in future" in message else "leave"


def leads(service: Service) -> bool:
    """Return whether a service is the first of its role in the catalogue, which starts before the others."""
    return next(row for row in services.load().services.values() if row.role == service.role) == service


STEPS = ("engines stop", "PostgreSQL", "NameNode", "files", "engines start")


def image(  # noqa: PLR0913, PLR0917 -- the folder, its owner, and the image
    folder: str, user: str, group: str, url: str, parts: Mapping[str, str], transaction: int
) -> list[str]:
    """Return the lines that fetch the NameNode's image into one of its folders.

    Root creates the folder where it is missing. Its content is written as its user: root would follow a
    symbolic link out of it.
    """
    place = shlex.quote(folder)
    commands = [f"cd {place}", "rm -rf restored", "mkdir restored", "cd restored"]
    for part, checksum in parts.items():
        words = ["python3", "-c", _FETCH, f"{url}/{quote(part)}", part, str(_FETCH_SECONDS)]
        line = shlex.quote(f"{checksum}  {part}")
        commands += [shlex.join(words), f"echo {line} | sha256sum --check --quiet"]
    # Renamed last: an incomplete directory is never `current`.
    commands += [f"echo {transaction} > seen_txid", "cd ..", "rm -rf current", "mv restored current"]
    script = shlex.quote("\n".join(["set -e", "umask 077", *commands]))
    owner = f"-o {shlex.quote(user)} -g {shlex.quote(group)}"
    return [
        f'[ "$(stat -c %U {place} 2>/dev/null)" = {shlex.quote(user)} ] ||',
        f"install -d {owner} -m 0700 {place}",
        f"cd / && runuser -u {shlex.quote(user)} -g {shlex.quote(group)} -- sh -c {script}",
    ]


class Steps:
    """The steps of a restore, in order."""

    def __init__(self, running: Running, backup: Mapping[str, Any]) -> None:
        self._running = running
        self._living = running.living
        self._cluster = running.living.cluster
        self._backup = backup
        self._keeper = shell.keeper(self._cluster)

    def run(self, moment: datetime | None) -> tuple[str, ...]:
        """Run all steps; LakehouseError where one fails."""
        stop, database, namenode, files, start = STEPS
        self._begin(stop)
        self._stop()
        self._begin(database)
        self._running.say(checked_document.printable(self._database(moment)))
        self._begin(namenode)
        self._namenode()
        self._begin(files)
        result = self._files(keep=moment is not None)
        self._begin(start)
        self._start()
        aside = f", {result['aside']} set aside in {result['place']}" if result["aside"] else ""
        return (f"{counted(result['written'], 'file written', 'files written')}{aside}",)

    def _begin(self, step: str) -> None:
        self._running.begins(self._keeper, step)
        self._running.say(step)

    def compare(self, moment: datetime | None) -> list[str]:
        """Return the differences between tables and manifest, in Spark and in Trino."""
        if moment:
            return []
        self._running.say("compares every table with the manifest")
        tables = self._backup["tables"]
        comparison = shell.program(
            self._cluster, "compare", self._backup["name"], seconds=_LONG_SECONDS,
            read=backup_manifest.compared,
        )  # fmt: skip
        return [*comparison["differences"], *engines.differences(self._cluster, tables)]

    def _units(self, *, leading: bool | None = None) -> dict[str, str]:
        """Return the units of each host: all, or only the leading ones, or only the others."""
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
        """Yield host and name of each timer that is stopped during the restore."""
        yield self._keeper, "lakehouse-backup"
        if self._cluster.variable("lakehouse_catalog_enabled"):
            host = self._cluster.active("postgresql")
            yield host.name, "lakehouse-catalog"

    def _stop(self) -> None:
        scripts = {host: f"systemctl stop {names}" for host, names in self._units().items()}
        for host, timer in self._timers():
            # Its service, too: a commit would record PostgreSQL's recovery as a state of the catalog.
            stop = f"systemctl stop {timer}.timer {timer}.service"
            scripts[host] = f"{stop}; {scripts.get(host, 'true')}"
        shell.must(self._cluster, scripts, _STOP_SECONDS)

    def _database(self, moment: datetime | None) -> str:
        host = self._cluster.active("postgresql")
        unit = placement.unit(services.load().services["postgresql"])
        port = endpoints.on("postgresql", host).port
        instance = unit.partition("@")[2]
        database = self._backup["database"]
        if moment:
            target = postgresql.Target("", time=moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00"))
            shell.must(self._cluster, {host.name: postgresql.mark(unit, port)}, _STEP_SECONDS)
        else:
            target = postgresql.Target(database["label"], name=database["restore_point"])
        script = postgresql.restore(unit, port, f"/var/log/postgresql/postgresql-{instance}.log", target)
        output = shell.must(self._cluster, {host.name: shell.exclusive(script)}, _LONG_SECONDS)[host.name]
        return output.splitlines()[-1].partition("LOG:")[2].strip()

    def _namenode(self) -> None:
        """Start HDFS, from the backup's image where the NameNode has lost its own."""
        host = self._cluster.active("namenode")
        folders = [str(folder) for folder in host.variables["lakehouse_namenode_dirs"]]
        empty = " && ".join(f"[ ! -e {shlex.quote(folder)}/current/VERSION ]" for folder in folders)
        script = f"if {empty}; then echo empty; fi"
        if shell.must(self._cluster, {host.name: script}, _PROBE_SECONDS)[host.name]:
            self._running.say("puts the NameNode's image back")
            self._image(host, folders)
        start = "systemctl reset-failed {0}; systemctl start {0}"
        shell.must(self._cluster, {host.name: start.format("hdfs-namenode")}, _STEP_SECONDS)
        datanodes = [node.name for node in self._cluster.running("datanodes")]
        shell.must(self._cluster, dict.fromkeys(datanodes, start.format("hdfs-datanode")), _STEP_SECONDS)
        safe_mode = SafeMode(self._living, len(datanodes))
        self._running.wait("HDFS", safe_mode, _STEP_SECONDS, _QUIET_SECONDS)

    def _image(self, host: Host, folders: list[str]) -> None:
        """Copy the image from the repository's host, which serves it once, at a secret path."""
        word = secrets.token_hex(16)
        unit, port = f"lakehouse-backup-serve-{word[:8]}", _FIRST_PORT + secrets.randbelow(_PORTS)
        serve = shlex.join(
            [shell.PROGRAM, "serve", self._backup["name"], "--to", host.address, "--word", word,
             "--port", str(port), "--seconds", str(_SERVE_SECONDS)]
        )  # fmt: skip
        start = f"systemd-run --quiet --collect --unit {unit} --uid {shell.KEEPER} {serve}"
        shell.must(self._cluster, {self._keeper: start}, _STEP_SECONDS)
        address = next(node.address for node in self._cluster.hosts if node.name == self._keeper)
        parts, transaction = backup_manifest.image(self._backup["parts"])
        user, group = host.variables["lakehouse_users"]["hdfs"], host.variables["lakehouse_group"]
        url = f"http://{address}:{port}/{word}"
        script = "\n".join(
            ["set -e", "systemctl stop hdfs-namenode"]
            + [line for folder in folders for line in image(folder, user, group, url, parts, transaction)]
        )
        shell.must(self._cluster, {host.name: shell.exclusive(script)}, _LONG_SECONDS)
        shell.act(self._cluster, {self._keeper: f"systemctl stop {unit}"}, _PROBE_SECONDS)

    def _files(self, *, keep: bool) -> Any:
        words = ["reconcile", self._backup["name"], *(["--keep"] if keep else [])]
        return shell.program(self._cluster, *words, seconds=_LONG_SECONDS, read=backup_manifest.brought)

    def _start(self) -> None:
        """Start all services, leaders first: a worker without a master retries only after minutes."""
        for host, timer in self._timers():
            shell.must(self._cluster, {host: f"systemctl start {timer}.timer"}, _PROBE_SECONDS)
        for leading in (True, False):
            script = "systemctl reset-failed {0}; systemctl start {0}"
            scripts = {host: script.format(names) for host, names in self._units(leading=leading).items()}
            shell.must(self._cluster, scripts, _STEP_SECONDS)
            unready = partial(self._wrong, everything=not leading)
            self._running.wait("the cluster", unready, _START_SECONDS, _QUIET_SECONDS)

    def _wrong(self, *, everything: bool) -> str:
        """Return the gravest finding, or only of a leader that does not answer; empty for none."""
        with closing(Prober()) as prober:
            snapshot = look.look(prober, str(self._cluster.inventory.path), time.monotonic() + _PROBE_SECONDS)
        findings = (
            str(finding)
            for finding in screen.result(snapshot, 0.0).worst
            if everything or finding.code.endswith(".silent")
        )
        return next(findings, "")
