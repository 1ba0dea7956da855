"""Brings a cluster back to a backup: the catalog to T0, then HDFS, and nothing in between can be asked.

Every step can be repeated, so an interrupted restore is completed by the same command.
"""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakehouse import inventory
from lakehouse.errors import LakehouseError
from ops.asking import Asker
from ops.backup import acting, engines, postgresql
from ops.outcome import Finding, Outcome, Result
from ops.status import look, placement, screen
from ops.status.placement import Cluster

VERB = "restore"
# What stays: the database is restored by its own step, and files are brought back to a file system that runs.
_STORAGE = ("postgresql", "namenode", "datanode")
_FOLLOWERS = ("spark_worker", "spark_thrift", "spark_connect", "flink_taskmanager", "flink_sql_gateway")
_LONG_SECONDS = 6 * 3600.0
_STEP_SECONDS = 180.0
_START_SECONDS = 300.0
_SERVE_SECONDS = 600
_PROBE_SECONDS = 20.0
# Ports that nobody registers, as RFC 6335 has them.
_FIRST_PORT, _PORTS = 49152, 16384
# The other side may just be starting.
_FETCH = """
import sys, time
from urllib.error import HTTPError
from urllib.request import urlretrieve
for left in range(100, -1, -1):
    try:
        urlretrieve(sys.argv[1], sys.argv[2])
        break
    except HTTPError:
        raise
    except OSError:
        if not left:
            raise
        time.sleep(0.2)
"""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wish:
    """What is wanted: a backup (the newest for none), a time, and the cluster's name as it was typed."""

    name: str
    confirmed: str
    to: str = ""


def restore(path: str, wish: Wish, say: Say) -> Result:
    """Restore, and compare every table with the manifest; docs/operations/restore.md lists the exit codes.

    Raises LakehouseError for bad input, and where a step fails before anything was changed.
    """
    began = time.monotonic()
    cluster = placement.read(inventory.load(path))
    name = str(cluster.variable("lakehouse_cluster"))
    moment = _moment(wish.to)
    backup = acting.program(cluster, "verify", *([wish.name] if wish.name else []), seconds=_LONG_SECONDS)
    if refusal := _refusal(cluster, wish, backup, moment):
        return refusal
    step = Steps(cluster, backup, say)
    try:
        facts = step.run(moment)
    except LakehouseError as error:
        again = _command(cluster, wish, backup["name"], name)
        finding = Finding("restore.halfway", Outcome.HALFWAY, backup["name"], error.message, again)
        return _result(
            cluster, backup["name"], (finding,), ("the cluster is stopped in part",), "stopped halfway"
        )
    wrong = step.compare(moment)
    took = f"{time.monotonic() - began:.0f} s"
    return _result(
        cluster,
        backup["name"],
        tuple(
            Finding(
                "restore.differs", Outcome.DEGRADED, "tables", line, f".venv/bin/lakehouse doctor -i {path}"
            )
            for line in wrong
        ),
        (*facts, took),
        "done" if not wrong else f"{len(wrong)} differences",
    )


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise LakehouseError(f"--to {text} is no time with an offset", "--to 2026-01-02T03:04:05+00:00")
    if found > datetime.now(UTC):
        raise LakehouseError(f"--to {text} is in the future", "--to 2026-01-02T03:04:05+00:00")
    return found


def _refusal(
    cluster: Cluster, wish: Wish, backup: Mapping[str, Any], moment: datetime | None
) -> Result | None:
    """Return why nothing is done, if so."""
    name, path = str(cluster.variable("lakehouse_cluster")), cluster.inventory.path
    if backup["problems"]:
        more = f" and {len(backup['problems']) - 1} more" if backup["problems"][1:] else ""
        finding = Finding(
            "restore.damaged", Outcome.REFUSED, backup["name"], f"damaged: {backup['problems'][0]}{more}",
            f".venv/bin/lakehouse backup list -i {path}",
        )  # fmt: skip
        return _result(cluster, backup["name"], (finding,), (finding.what,), "refused")
    if backup["cluster"] != name:
        raise LakehouseError(
            f"{backup['name']} is a backup of {backup['cluster']}, not of {name}", "lakehouse status"
        )
    if moment and moment.timestamp() < backup["database"]["at"]:
        raise LakehouseError(
            f"--to is before {backup['name']} was made",
            f".venv/bin/lakehouse backup list -i {path}, then one that is older",
        )
    if wish.confirmed != name:
        count = len(backup["tables"])
        next_command = _command(cluster, wish, backup["name"], name)
        finding = Finding(
            "restore.unconfirmed",
            Outcome.UNCONFIRMED,
            name,
            "what was written since then is set aside",
            next_command,
        )
        facts = (f"{name} gets the {count} tables of then", "what is newer leaves the catalog")
        return _result(cluster, backup["name"], (finding,), facts, "not confirmed")
    return _room(cluster, backup)


def _room(cluster: Cluster, backup: Mapping[str, Any]) -> Result | None:
    """Return why there is no room, by what each disk says now."""
    scripts = {}
    for host in cluster.hosts:
        folders = [*(cluster_dirs(host) if "datanodes" in host.groups else [])]
        lines = [
            f"df -B1 --output=avail {shlex.quote(folder)} | tail -n 1; du -sb {shlex.quote(folder)} | cut -f1"
            for folder in folders
        ]
        if "postgresql" in host.groups:
            lines.append(
                "data=$(sed -n 's/^pg1-path=//p' /etc/pgbackrest/pgbackrest.conf); mkdir -p \"$data\""
            )
            lines.append(
                'echo "database $(df -B1 --output=avail "$data" | tail -n 1) $(du -sb "$data" | cut -f1)"'
            )
        if lines:
            scripts[host.name] = "; ".join(lines)
    said = acting.must(cluster, scripts, _PROBE_SECONDS)
    blocks = database = 0
    for text in said.values():
        for line in text.splitlines():
            if line.startswith("database "):
                database = sum(map(int, line.split()[1:]))
            else:
                blocks += int(line)
    for what, there, wanted in (
        ("the disks of the DataNodes", blocks, int(backup["room"])),
        ("PostgreSQL's disk", database, int(backup["database"]["bytes"])),
    ):
        if there < wanted:
            fact = f"{what} have room for {there >> 20} MiB, and the backup needs {wanted >> 20} MiB"
            finding = Finding(
                "restore.room", Outcome.REFUSED, backup["name"], fact, "df -h, then the same command"
            )
            return _result(cluster, backup["name"], (finding,), (fact,), "refused")
    return None


def cluster_dirs(host: Any) -> list[str]:
    """Return the directories of a DataNode."""
    return [str(folder) for folder in host.variables["lakehouse_datanode_dirs"]]


def _command(cluster: Cluster, wish: Wish, backup: str, name: str) -> str:
    to = f" --to {wish.to}" if wish.to else ""
    return f".venv/bin/lakehouse restore {backup}{to} --confirm {name} -i {cluster.inventory.path}"


def _result(
    cluster: Cluster, target: str, findings: tuple[Finding, ...], facts: tuple[str, ...], summary: str
) -> Result:
    return Result(
        verb=VERB, target=target, findings=findings, facts=facts, hosts={}, summary=summary,
        healthy_next=f".venv/bin/lakehouse backup -i {cluster.inventory.path}",
    )  # fmt: skip


class Steps:
    """The steps, in their order."""

    def __init__(self, cluster: Cluster, backup: Mapping[str, Any], say: Say) -> None:
        self._cluster = cluster
        self._backup = backup
        self._say = say
        self._keeper = acting.keeper(cluster)

    def run(self, moment: datetime | None) -> tuple[str, ...]:
        """Do all of them; LakehouseError where one fails."""
        self._say("stops the metastore and every engine")
        self._stop()
        self._say("restores PostgreSQL")
        where = self._database(moment)
        self._say(where)
        self._namenode()
        self._say("brings the files of HDFS back")
        files = self._files(keep=moment is not None)
        self._say("starts the metastore and every engine")
        self._start()
        aside = f", {files['aside']} set aside in {files['place']}" if files["aside"] else ""
        return (f"{files['written']} files written{aside}",)

    def compare(self, moment: datetime | None) -> list[str]:
        """Return where a table is not as the manifest says, for Spark and for Trino."""
        if moment:
            return []
        self._say("compares every table with the manifest")
        tables = self._backup["tables"]
        found = acting.program(self._cluster, "compare", self._backup["name"], seconds=_LONG_SECONDS)
        return [*found["differences"], *engines.differences(self._cluster, tables)]

    def _units(self, *, followers: bool | None = None) -> dict[str, str]:
        """Return the units of each host: all, or those that follow a leader, or the others."""
        units = {
            host.name: shlex.join(
                placement.unit(service)
                for service in self._cluster.services[host.name]
                if service.name not in _STORAGE
                and (followers is None or (service.name in _FOLLOWERS) is followers)
            )
            for host in self._cluster.hosts
        }
        return {host: names for host, names in units.items() if names}

    def _stop(self) -> None:
        scripts = {host: f"systemctl stop {names}" for host, names in self._units().items()}
        timer = "systemctl stop lakehouse-backup.timer lakehouse-backup.service"
        scripts[self._keeper] = f"{timer}; {scripts.get(self._keeper, 'true')}"
        acting.must(self._cluster, scripts, _STEP_SECONDS)

    def _database(self, moment: datetime | None) -> str:
        [host] = self._cluster.inventory.group("postgresql")
        [service] = [one for one in self._cluster.services[host.name] if one.name == "postgresql"]
        unit, port = placement.unit(service), int(host.variables["lakehouse_ports"]["postgresql"])
        instance = unit.partition("@")[2]
        known = self._backup["database"]
        if moment:
            target = postgresql.Target("", time=moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00"))
            acting.must(self._cluster, {host.name: postgresql.mark(unit, port)}, _STEP_SECONDS)
        else:
            target = postgresql.Target(known["label"], name=known["restore_point"])
        script = postgresql.restore(unit, port, f"/var/log/postgresql/postgresql-{instance}.log", target)
        said = acting.must(self._cluster, {host.name: script}, _LONG_SECONDS)[host.name]
        return said.splitlines()[-1].partition("LOG:")[2].strip()

    def _namenode(self) -> None:
        """Have HDFS serve: from the backup's image where the NameNode has lost its own."""
        [host] = self._cluster.inventory.group("namenode")
        folders = [str(folder) for folder in host.variables["lakehouse_namenode_dirs"]]
        empty = " && ".join(f"[ ! -e {shlex.quote(folder)}/current/VERSION ]" for folder in folders)
        if acting.must(self._cluster, {host.name: f"if {empty}; then echo empty; fi"}, _PROBE_SECONDS)[
            host.name
        ]:
            self._say("puts the NameNode's image back")
            self._image(host, folders)
        start = "systemctl reset-failed {0}; systemctl start {0}"
        acting.must(self._cluster, {host.name: start.format("hdfs-namenode")}, _STEP_SECONDS)
        nodes = [node.name for node in self._cluster.running("datanodes")]
        acting.must(self._cluster, dict.fromkeys(nodes, start.format("hdfs-datanode")), _STEP_SECONDS)
        acting.must(self._cluster, {host.name: self._awake(host, len(nodes))}, _STEP_SECONDS)

    def _image(self, host: Any, folders: list[str]) -> None:
        """Move the image from the repository's host: it serves it once, to one address, behind a word."""
        word = secrets.token_hex(16)
        unit, port = f"lakehouse-backup-serve-{word[:8]}", _FIRST_PORT + secrets.randbelow(_PORTS)
        serve = shlex.join(
            [acting.PROGRAM, "serve", self._backup["name"], "--to", host.address, "--word", word,
             "--port", str(port), "--seconds", str(_SERVE_SECONDS)]
        )  # fmt: skip
        begun = f"systemd-run --quiet --collect --unit {unit} --uid {acting.KEEPER} {serve}"
        acting.must(self._cluster, {self._keeper: begun}, _STEP_SECONDS)
        address = next(one.address for one in self._cluster.hosts if one.name == self._keeper)
        parts = {
            name.removeprefix("namenode/"): known
            for name, known in self._backup["parts"].items()
            if name.startswith("namenode/")
        }
        user = str(host.variables["lakehouse_users"]["hdfs"])
        group = str(host.variables["lakehouse_group"])
        lines = ["set -e", "systemctl stop hdfs-namenode"]
        for folder in map(shlex.quote, folders):
            lines += [
                f"rm -rf {folder}/restored",
                f"install -d -o {user} -g {group} -m 0700 {folder} {folder}/restored",
            ]
            for part, known in parts.items():
                url = f"http://{address}:{port}/{word}/{part}"
                lines += [
                    f"cd {folder}/restored",
                    f"python3 -c {shlex.quote(_FETCH)} {url} {part}",
                    f"echo '{known}  {part}' | sha256sum --check --quiet",
                ]
            number = next(
                int(part.rpartition("_")[2])
                for part in parts
                if part.startswith("fsimage_") and "." not in part
            )
            lines += [
                f"echo {number} > {folder}/restored/seen_txid", f"chown -R {user}:{group} {folder}/restored",
                # The last act: a half of it is no NameNode's directory.
                f"rm -rf {folder}/current", f"mv {folder}/restored {folder}/current",
            ]  # fmt: skip
        acting.must(self._cluster, {host.name: "\n".join(lines)}, _LONG_SECONDS)
        acting.act(self._cluster, {self._keeper: f"systemctl stop {unit}"}, _PROBE_SECONDS)

    def _awake(self, host: Any, nodes: int) -> str:
        """Return the script that waits until HDFS takes writes; files without blocks come from the copy."""
        port, user = (
            host.variables["lakehouse_ports"]["namenode_http"],
            host.variables["lakehouse_users"]["hdfs"],
        )
        program = f"""
import json, subprocess, sys, time, urllib.request
def bean(name):
    url = "http://{host.address}:{port}/jmx?qry=Hadoop:service=NameNode,name=" + name
    return json.load(urllib.request.urlopen(url, timeout=5))["beans"][0]
calm, last = 0, None
for second in range(150):
    time.sleep(1)
    try:
        info, state = bean("NameNodeInfo"), bean("FSNamesystemState")
    except (OSError, LookupError, ValueError):
        continue
    if not info["Safemode"]:
        if state["NumLiveDataNodes"] == {nodes}:
            sys.exit(0)
        continue
    calm = calm + 1 if info["Safemode"] == last and state["NumLiveDataNodes"] == {nodes} else 0
    last = info["Safemode"]
    if calm > 8:
        # Blocks that are newer than the image: nothing names them, and HDFS asks before it removes them.
        word = "forceExit" if "generation stamps in future" in last else "leave"
        argv = ["runuser", "-u", "{user}", "--", "hdfs", "dfsadmin", "-safemode", word]
        subprocess.run(argv, check=True)
        calm = 0
sys.exit("HDFS does not leave safe mode, or lacks DataNodes")
"""
        return f"cd / && python3 -c {shlex.quote(program)}"

    def _files(self, *, keep: bool) -> Any:
        words = ["reconcile", self._backup["name"], *(["--keep"] if keep else [])]
        return acting.program(self._cluster, *words, seconds=_LONG_SECONDS)

    def _start(self) -> None:
        """Start everything, leaders first: a worker that meets no master asks again only after minutes."""
        acting.must(self._cluster, {self._keeper: "systemctl start lakehouse-backup.timer"}, _PROBE_SECONDS)
        until = time.monotonic() + _START_SECONDS
        for followers in (False, True):
            units = self._units(followers=followers)
            script = "systemctl reset-failed {0}; systemctl start {0}"
            acting.must(
                self._cluster, {host: script.format(names) for host, names in units.items()}, _STEP_SECONDS
            )
            self._wait(until, everything=followers)

    def _wait(self, until: float, *, everything: bool) -> None:
        """Wait until every leader answers, or the whole cluster is well."""
        while True:
            with closing(Asker()) as asker:
                seen = look.look(asker, str(self._cluster.inventory.path), time.monotonic() + _PROBE_SECONDS)
            left = [
                finding
                for finding in screen.result(seen, 0.0).worst
                if everything or finding.code.endswith(".silent")
            ]
            if not left:
                return
            if time.monotonic() > until:
                raise LakehouseError(str(left[0]), left[0].next)
