"""`lakehouse doctor`: a cluster that is well has no line, each fault its own; the unknown is not judged."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse import cli, commands, yamlfile
from lakehouse.commands import doctor
from lakehouse.doctor import diagnosis, failures, probes, screen
from lakehouse.doctor.daemons import listeners, processes
from lakehouse.doctor.diagnosis import CHECKS, UNJUDGED, diagnose
from lakehouse.doctor.model import Snapshot
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.model.placement import Cluster
from lakehouse.outcome import Outcome
from lakehouse.remote.probing import Reply, Shell
from lakehouse.run import ROOT
from lakehouse.status import questions, reading
from lakehouse.validation.finding import Finding, Level
from plugins.module_utils.lakehouse import away

NOW = 1_800_000_000.0
STARTED = NOW - 3600
N1, N2, N3 = "cpu-node1", "cpu-node2", "worker-node3"
SILENT = "no answer in 14.1 s"
DIGEST = "9a" * 32
CORE = {"fs.defaultFS": "hdfs://lake", "fs.trash.interval": "1440"}
HDFS = {"dfs.replication": "3", "dfs.nameservices": "lake"}
FLINK: Mapping[str, Any] = {
    "taskmanager.numberOfTaskSlots": 4,
    "rest.port": 8082,
    "web.submit.enable": False,
    "blob.server.port": 6124,
}
DF = "1B-blocks Avail Mounted on File\n"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("LAKEHOUSE_PROFILE", "full")
    return placement.read(inventory.load(ROOT / "inventory" / "three-node"))


class Told:
    """What a cluster answers; `part` and `said` hold it by name, so that a test changes one thing."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.addresses = {host.name: host.address for host in cluster.hosts}
        self.parts = {host.name: self._parts(host.name) for host in cluster.hosts}
        self.said: dict[str, Any] = self._said()
        self.silent: dict[str, str] = {}

    def _units(self, host: str) -> list[str]:
        return [placement.unit(service) for service in self.cluster.services[host]]

    def _parts(self, host: str) -> dict[str, str]:
        names = {service.name for service in self.cluster.services[host]}
        folders = next(questions.folders(one) for one in self.cluster.hosts if one.name == host)
        df = [f"1000 600 / {folder}\n" for folder in [*folders, probes.LOGS]]
        sites = {"hdfs_site": xml(HDFS), "core_site": xml(CORE)} if "namenode" in names else {}
        return {
            "began": str(NOW), "ended": str(NOW + 0.1), "uptime": "7200.5 1\n",
            "units": "\n\n".join(unit(name) for name in self._units(host)),
            "memory": "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n",
            "away": "", "notes": "",
            "disks": DF + "".join(df[:-1]),
            "unformatted": f"{questions.END}\n",
            "manifest": f"{questions.END}\n",
            "login": "ok\n",
            "releases": "/opt/hadoop/current releases/3.5.0-1137f5b40d6f\n",
            "database": "version|17.6|\n",
            "space": DF + "".join(df),
            "inodes": "head\n/dev/a 1000 400 600 40% /\nbtrfs 0 0 0 - /srv\n",
            "thp": "[always] madvise never\nalways defer defer+madvise [madvise] never\n",
            "names": "".join(f"{name}|{address} |{name}\n" for name, address in self.addresses.items()),
            "listening": "".join(self._sockets(host)),
            "reach": "tried\n",
            "packages": "ii  openjdk-17-jre-headless 17.0.16+8-1\n",
            "daemons": "".join(daemon(name) for name in self._units(host)),
            "left": "",
            "checkpoint": "Id=hdfs-checkpoint.timer\nActiveState=active\nResult=success\n\n"
                          "Id=hdfs-checkpoint.service\nActiveState=inactive\nResult=success\n",
            "catalog": "schema|3.1.0\nlock_seconds|\nmisplaced|0\n",
            "overlaps": "overlaps|[]\n",
            "types": "types|[]\n",
            "connections": "used|41\nallowed|97\n",
            "archive": "mode|on\nfailing|false\nwaiting|0\n",
            "backup": json.dumps({"good": "20270115T040000Z", "why": ""}),
            "backup_units": f"Id=lakehouse-backup.timer\nActiveState=active\nResult=success\n"
                            f"ActiveEnterTimestamp=@{STARTED:.0f}\n\n"
                            "Id=lakehouse-backup.service\nActiveState=inactive\nResult=success\n",
            "history": json.dumps({"good": NOW - 1800, "why": ""}),
            "history_units": f"Id=lakehouse-catalog.timer\nActiveState=active\nResult=success\n"
                             f"ActiveEnterTimestamp=@{STARTED:.0f}\n\n"
                             "Id=lakehouse-catalog.service\nActiveState=inactive\nResult=success\n",
            "catalogs": f"{DIGEST}  delta.properties\n",
            "hive_site": xml({probes.METASTORE_KEY: "false", "metastore.txn.timeout": "120s"}),
            "spark_master_conf": "# Managed.\nspark.deploy.defaultCores=3\nspark.ui.killEnabled=false\n",
            "trino_config": "# Managed.\nquery.max-run-time=60m\nquery.max-memory=800MB\n",
            "flink_config": "".join(f"{key}: {json.dumps(value)}\n" for key, value in FLINK.items()),
            **sites,
        }  # fmt: skip

    def _sockets(self, host: str) -> Iterator[str]:
        table = self.cluster.variable("lakehouse_ports")
        for service in self.cluster.services[host]:
            for port in service.listeners:
                # As a JVM shows an IPv4 address; the metastore cannot be told one.
                address = "*" if service.name == "metastore" else f"[::ffff:{self.addresses[host]}]"
                yield f"LISTEN 0 4096 {address}:{table[port.name]} *:*\n"

    def _said(self) -> dict[str, Any]:
        live = {
            f"{name}:9866": {"lastContact": 1, "xferaddr": f"{address}:9866"}
            for name, address in self.addresses.items()
        }
        counters = {
            "CapacityTotal": 1000, "CapacityUsed": 100, "CapacityRemaining": 900, "NumLiveDataNodes": 3,
            "NumDeadDataNodes": 0, "NumInServiceLiveDataNodes": 3, "NumStaleDataNodes": 0,
            "VolumeFailuresTotal": 0, "BlocksTotal": 40,
            "CorruptReplicatedBlocks": 0, "CorruptECBlockGroups": 0, "LowRedundancyBlocks": 0,
        }  # fmt: skip
        conf = [
            *({"key": key, "value": value, "resource": "hdfs-site.xml"} for key, value in HDFS.items()),
            {"key": "fs.trash.interval", "value": "1440", "resource": "core-site.xml"},
            # It is set by the NameNode itself.
            {"key": "fs.defaultFS", "value": "hdfs://cpu-node1:9000", "resource": "programmatically"},
        ]
        manager = "pekko.tcp://flink@{}:6122/user/rpc/taskmanager_0"
        config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in FLINK.items()}
        return {
            "hdfs": {"beans": [counters]},
            "content": {"ContentSummary": {"snapshotSpaceConsumed": 7}},
            "namenode": {
                "beans": [
                    {
                        "Safemode": "", "RollingUpgradeStatus": None, "LiveNodes": json.dumps(live),
                        "NumberOfMissingBlocks": 0,
                    }
                ]
            },
            "namenode_edits": {
                "beans": [{"LastCheckpointTime": 0, "TransactionsSinceLastCheckpoint": 1200}]
            },
            "namenode_conf": {"properties": conf},
            "spark": {
                "workers": [{"host": name, "state": "ALIVE", "cores": 2} for name in self.addresses],
                "coresused": 0, "activeapps": [],
            },
            "trino": {"starting": False},
            "trino_nodes": [
                {"uri": f"http://{self.addresses[name]}:8090", "recentFailureRatio": 0.0} for name in (N2, N3)
            ],
            "trino_queries": [],
            "flink": {"taskmanagers": 3, "slots-total": 12, "slots-available": 12, "jobs-running": 0},
            "flink_taskmanagers": {
                "taskmanagers": [{"path": manager.format(name), "slotsNumber": 4} for name in self.addresses]
            },
            # The port is one that Flink says itself.
            "flink_config": pairs(config | {"rest.port": "0"}),
            "spark_environment": "<tr><td>spark.deploy.defaultCores</td><td>3</td></tr>"
                                 "<tr><td>spark.app.name</td><td>a &amp; b</td></tr>",
            "trino_session": [["query_max_run_time", "60.00m", "60.00m", "varchar", "about"]],
            "metastore_conf": "false", "metastore": "", **dict.fromkeys(probes.CALLS, ""),
        }  # fmt: skip

    def seen(self) -> Snapshot:
        answers: dict[str, Answer[Reply]] = {
            name: Answer(Reply(value if isinstance(value, str) else json.dumps(value), NOW, NOW))
            for name, value in self.said.items()
        }
        for host, parts in self.parts.items():
            text = "".join(f"\n@@lakehouse {name}\n{said}\n@@lakehouse = 0" for name, said in parts.items())
            answers[f"host {host}"] = Answer(Reply(text, NOW, NOW + 0.1))
        answers |= {name: unknown(why) for name, why in self.silent.items()}
        status = reading.status(self.cluster, answers, Path("/nowhere"), NOW)
        return Snapshot(reading.present(self.cluster, answers), status, answers)

    def findings(self) -> tuple[Finding, ...]:
        return diagnose(self.seen()).findings

    def change(self, host: str, part: str, old: str, new: str) -> None:
        assert old in self.parts[host][part]
        self.parts[host][part] = self.parts[host][part].replace(old, new, 1)

    def stop(self, service: str, host: str) -> None:
        self.set_unit(service, host, lambda name: unit(name, active="inactive", sub="dead"))

    def fail(self, service: str, host: str) -> None:
        self.set_unit(service, host, lambda name: unit(name, active="failed", sub="exit"))

    def disable(self, service: str, host: str) -> None:
        self.set_unit(service, host, lambda name: unit(name).replace("=enabled", "=disabled"))

    def set_unit(self, service: str, host: str, words: Callable[[str], str]) -> None:
        name = next(placement.unit(one) for one in self.cluster.services[host] if one.name == service)
        self.change(host, "units", unit(name), words(name))

    def complain(self, host: str, *names: str, words: str) -> None:
        """Have commands of a host fail with these words."""
        for name in names:
            self.parts[host][name] = f"{words}\n@@lakehouse = 2\n\n@@lakehouse nothing\n"


def pairs(settings: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in settings.items()]


def unit(
    name: str, active: str = "active", sub: str = "running", restarts: int = 0, since: float = STARTED
) -> str:
    pid = 42 if active == "active" else 0
    return (
        f"Id={name}.service\nLoadState=loaded\nActiveState={active}\nSubState={sub}\nMainPID={pid}\n"
        f"NRestarts={restarts}\nActiveEnterTimestamp=@{since:.0f}\nUnitFileState=enabled"
    )


def daemon(name: str) -> str:
    return (
        f"@ {name}\nMainPID=42\nExecMainStartTimestamp=@{STARTED:.0f}\n"
        "LimitNOFILESoft=131072\nLimitNPROCSoft=infinity\n"
        "Max processes             unlimited            unlimited            processes \n"
        "Max open files            131072               131072               files     \n"
        "Most processes             96000                unlimited            processes \n"
        "Most open files            1024                 1048576              files     \n"
        "VmRSS:\t  800000 kB\nVmSwap:\t    1000 kB\n"
        f"file {STARTED - 60:.0f} /etc/{name}.conf\nfile {STARTED:.0f} /etc/{name}.conf\n"
    )


def xml(properties: Mapping[str, str]) -> str:
    rows = (
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()
    )
    return f"<configuration>{''.join(rows)}</configuration>"


@pytest.fixture
def told(cluster: Cluster) -> Told:
    return Told(cluster)


Fault = Callable[[Told], None]


def part(host: str, name: str, old: str, new: str) -> Fault:
    return lambda told: told.change(host, name, old, new)


def bean(document: str, name: str, value: object) -> Fault:
    return lambda told: told.said[document]["beans"][0].__setitem__(name, value)


def node(name: str, **changed: object) -> Fault:
    """What the NameNode says of a DataNode; nothing, if nothing is said here."""

    def change(told: Told) -> None:
        [found] = told.said["namenode"]["beans"]
        nodes = json.loads(found["LiveNodes"])
        if changed:
            nodes[f"{name}:9866"] |= changed
        else:
            del nodes[f"{name}:9866"]
        found["LiveNodes"] = json.dumps(nodes)

    return change


def restarted(told: Told) -> None:
    told.change(N2, "units", unit("hdfs-datanode"), unit("hdfs-datanode", restarts=9, since=NOW - 20))


def silent_history(told: Told) -> None:
    told.change(N1, "history", str(NOW - 1800), str(NOW - 9 * 3600))
    told.change(N1, "history_units", f"@{STARTED:.0f}", f"@{NOW - 48 * 3600:.0f}")


def gone(told: Told) -> None:
    """Nothing runs there, and no check misses it."""
    told.parts[N2]["away"] = away.written(away.LEFT, "r7", NOW)
    for service in told.cluster.services[N2]:
        told.stop(service.name, N2)


def given_up(told: Told) -> None:
    """It does not answer, and is not expected to."""
    told.parts[N1]["notes"] = away.noted({N2: away.read(away.written(away.LEFT, "r7", NOW))})
    told.silent[f"host {N2}"] = SILENT


def returned(told: Told) -> None:
    given_up(told)
    del told.silent[f"host {N2}"]


def ahead(told: Told) -> None:
    for name in ("began", "ended"):
        told.change(N2, name, "1800000000", "1800000007")


def calls(told: Told) -> None:
    told.silent |= dict.fromkeys(probes.CALLS[:3], "thrift://192.168.1.184:9083: timed out")


def refused(told: Told) -> None:
    calls(told)
    told.parts[N1]["login"] = '28P01 password authentication failed for user "hive"\n'


def full(told: Told) -> None:
    calls(told)
    words = "psql: error: FATAL: sorry, too many clients already"
    told.complain(N1, "database", "catalog", "connections", "archive", words=words)
    told.parts[N1]["login"] = "53300 sorry, too many clients already\n"


def lost(told: Told) -> None:
    calls(told)
    words = 'psql: error: FATAL: database "metastore" does not exist'
    told.complain(N1, "database", "catalog", words=words)
    told.parts[N1]["login"] = '3D000 database "metastore" does not exist\n'


def element(document: str, index: int, key: str, value: object) -> Fault:
    def change(told: Told) -> None:
        found = told.said[document]
        rows = found if isinstance(found, list) else next(iter(found.values()))
        rows[index][key] = value

    return change


def without(document: str, index: int) -> Fault:
    def change(told: Told) -> None:
        found = told.said[document]
        del (found if isinstance(found, list) else next(iter(found.values())))[index]

    return change


W, F = Level.WARNING, Level.FAULT
TYPES = json.dumps([
    {"database": "d", "table": "t", "column": column, "type": kind}
    for column, kind in (("o", "struct<a b:int>"), ("s", "struct<a-b:int>"))
])  # fmt: skip
OVERLAP = json.dumps(
    [
        {
            "database": "d",
            "table": name,
            "location": "hdfs://lake/d/o",
            "type": "MANAGED_TABLE",
            "parameters": {},
        }
        for name in ("o", "o_old")
    ]
)
FAULTS: list[tuple[Fault, Level, str, str, str]] = [
    (part(N2, "space", "1000 600 /", "1000 40 /"), W, "node.disk", N2, "4 % of the disk of / is available"),
    (part(N2, "space", "1000 600 /", "1000 20 /"), F, "node.disk", N2, "2 % of the disk of / is available"),
    (lambda told: told.parts[N2].__setitem__("space", told.parts[N2]["space"] + "100 1 /m /data/backup\n"), F,
     "node.disk", N2, "1 % of the disk of /data/backup is available"),
    (part(N2, "inodes", "600 40%", "40 96%"), W, "node.inodes", N2, "4 % of the inodes of / are available"),
    (part(N2, "memory", "MemAvailable: 4", "MemAvailable: 0"), W, "node.memory",
     N2, "0 % of the memory is available"),
    (part(N2, "thp", "defer+madvise [madvise]", "[always]"), W, "node.thp",
     N2, "every process may be stopped"),
    (ahead, W, "time.offset", N2, "its clock differs by +"),
    (gone, W, "host.away", N2, "no longer of the cluster since 2027-01-15 08:00 UTC (run r7)"),
    (given_up, W, "host.away", N2, "no longer of the cluster since 2027-01-15 08:00 UTC (run r7)"),
    (returned, W, "host.away", N2, "no longer of the cluster since 2027-01-15 08:00 UTC, and answers again"),
    (part(N2, "names", "192.168.1.185 ", "127.0.1.1 "), F, "net.names", N2, f"{N2} resolves to 127.0.1.1"),
    (part(N2, "names", "192.168.1.184 ", ""), F, "net.names", N2, f"{N1} resolves to nothing"),
    (part(N2, "names", f"|{N1}\n", "|other\n"), F, "net.names", N2, "192.168.1.184 is called other"),
    (lambda told: told.stop("spark_history", N1), F, "unit.state",
     N1, "spark_history is stopped (inactive/dead)"),
    (lambda told: told.stop("spark_worker", N2), F, "unit.state", N2, "spark_worker is stopped"),
    (lambda told: told.stop("datanode", N2), F, "unit.state", N2, "datanode is stopped"),
    (lambda told: told.fail("spark_worker", N2), F, "unit.failed", N2, "spark_worker is failed (failed"),
    (lambda told: told.disable("spark_worker", N2), F, "unit.enabled", N2,
     "spark_worker is disabled: it does not start at a boot"),
    (lambda told: told.parts[N2].__setitem__("left", "flink-jobmanager.service\n"), W, "unit.left", N2,
     "flink_jobmanager runs, and the inventory has none here"),
    (restarted, W, "unit.restarts", N2, "datanode came back 9 times, 20 s ago the last"),
    (part(N2, "daemons", "Max open files            131072", "Max open files            1024"),
     F, "unit.limits", N2,
     "datanode may have 1024 open files"),
    (part(N2, "daemons", "VmSwap:\t    1000", "VmSwap:\t 1000000"), W, "unit.swap", N2,
     "976 MiB of datanode are swapped out, 56% of it"),
    (part(N2, "daemons", f"file {STARTED:.0f}", f"file {STARTED + 90:.0f}"), W, "unit.pending", N2,
     "datanode has not read /etc/hdfs-datanode.conf, which changed after it started"),
    (part(N2, "listening", "[::ffff:192.168.1.185]:9866", "[::ffff:127.0.1.1]:9866"), F, "net.listens", N2,
     "datanode listens on port 9866 on 127.0.1.1 alone"),
    (part(N2, "listening", ":9866", ":9999"), F, "net.listens",
     N2, "datanode listens on port 9866 on no address"),
    (bean("namenode", "Safemode", "Safe mode is ON. It was turned on manually. Use ..."), F,
     "hdfs.safemode", N1, "nothing can be written, safe mode is on: It was turned on manually"),
    (part(N1, "unformatted", questions.END, f"/data/hdfs/namenode\n{questions.END}"), F, "hdfs.image", N1,
     "no image of the file system in /data/hdfs/namenode"),
    (bean("namenode", "Safemode", "Safe mode is ON. The reported blocks 390 needs additional 17. Then."), F,
     "hdfs.waiting",
     N1, "nothing can be written, safe mode is on: The reported blocks 390 needs additional 17"),
    (bean("namenode", "RollingUpgradeStatus", {"startTime": 1_799_990_000_000, "finalizeTime": 0}), W,
     "hdfs.upgrade", N1, "an upgrade of HDFS is prepared and not finalized, for 3 h"),
    (node(N2), F, "hdfs.datanodes", N2, "its DataNode runs, and the NameNode does not count it"),
    (node(N2, lastContact=34), F, "hdfs.datanodes", N2, "has not heard of it for 34 s"),
    (node(N2, xferaddr="172.18.0.5:9866"), F, "hdfs.addresses",
     N2, "the NameNode sends clients to 172.18.0.5:9866"),
    (part(N2, "reach", "tried", "192.168.1.186:9866\ntried"), F, "hdfs.reach",
     N2, f"the DataNode of {N3} takes no connection"),
    (bean("namenode", "NumberOfMissingBlocks", 2), F, "hdfs.missing", N1, "2 of 40 blocks are missing"),
    (bean("hdfs", "CorruptReplicatedBlocks", 2), W, "hdfs.corrupt", N1, "2 of 40 blocks are corrupt"),
    (bean("hdfs", "LowRedundancyBlocks", 2), W, "hdfs.replicas", N1, "2 of 40 blocks lack a replica"),
    (bean("hdfs", "VolumeFailuresTotal", 1), F, "hdfs.volumes", N1, "1 disk of a DataNode has failed"),
    (bean("hdfs", "CapacityRemaining", 40), W, "hdfs.capacity", N1, "4 % of HDFS is left"),
    (bean("namenode_edits", "TransactionsSinceLastCheckpoint", 10**8), W, "hdfs.checkpoint",
     N1, "100,000,000 edits since"),
    (part(N1, "checkpoint", "ActiveState=active", "ActiveState=inactive"), F, "hdfs.timer", N1,
     "hdfs-checkpoint.timer is inactive"),
    (part(N1, "checkpoint", "inactive\nResult=success", "failed\nResult=exit-code"), F, "hdfs.timer", N1,
     "the last checkpoint has failed (exit-code)"),
    (calls, F, "metastore.calls", N1, "3 of 20 calls fail: thrift://192.168.1.184:9083: timed out"),
    (part(N2, "backup", "20270115", "20270113"), W, "backup.age", N2, "no good backup for 52 h"),
    (part(N2, "backup", '"why": ""', '"why": "a disk is full"'), F, "backup.age", N2,
     "the last backup has failed: a disk is full"),
    (part(N2, "backup", '"why": ""', '"why": "", "damaged": ["20270115T050000Z"]'), F, "backup.damaged", N2,
     "20270115T050000Z, the newest backup, is damaged"),
    (part(N2, "backup_units", "ActiveState=active", "ActiveState=inactive"), F, "backup.timer", N2,
     "lakehouse-backup.timer is inactive: no backups are made"),
    (part(N2, "backup_units", "inactive\nResult=success", "failed\nResult=signal"), F, "backup.timer", N2,
     "the last backup was ended (signal)"),
    (silent_history, W, "catalog.commits", N1, "the catalog was not looked at for 9 h"),
    (part(N1, "history", '"why": ""', '"why": "a disk is full"'), F, "catalog.commits", N1,
     "the last commit of the catalog has failed: a disk is full"),
    (part(N1, "history_units", "ActiveState=active", "ActiveState=inactive"), F, "catalog.timer", N1,
     "lakehouse-catalog.timer is inactive: the catalog is not committed"),
    (part(N1, "history_units", "inactive\nResult=success", "failed\nResult=signal"), F, "catalog.timer", N1,
     "the last commit of the catalog was ended (signal)"),
    (part(N1, "archive", "failing|false\nwaiting|0", "failing|true\nwaiting|7"), F, "backup.archive", N1,
     "the repository takes no WAL: 7 segments wait in pg_wal"),
    (part(N1, "archive", "waiting|0", "waiting|40"), W, "backup.archive", N1, "40 segments wait in pg_wal"),
    (part(N1, "archive", "mode|on", "mode|off"), F, "backup.archive", N1, "archive_mode is off"),
    (part(N1, "catalog", "3.1.0", "4.0.0"), F, "metastore.schema",
     N1, "the schema in the database has version 4.0.0"),
    (refused, F, "metastore.login", N1,
     'PostgreSQL refuses the metastore\'s login: password authentication failed for user "hive"'),
    (full, F, "postgresql.exhausted", N1, "no connection is left: psql: error: FATAL: sorry"),
    (part(N1, "connections", "used|41", "used|97"), F, "postgresql.exhausted", N1,
     "no connection is left: 97 are used"),
    (lost, F, "postgresql.lost", N1, 'FATAL: database "metastore" does not exist'),
    (part(N1, "connections", "used|41", "used|96"), W, "postgresql.connections",
     N1, "96 of 97 connections are used"),
    (part(N1, "catalog", "lock_seconds|", "lock_seconds|1320"), F, "metastore.locks",
     N1, "silent for 1320 s"),
    (part(N1, "catalog", "misplaced|0", "misplaced|3"), W, "metastore.locations",
     N1, "3 tables or databases are on"),
    (part(N1, "overlaps", "[]", OVERLAP), W, "metastore.overlaps",
     N1, "table d.o_old has the location of table d.o: to drop one"),
    (part(N1, "types", "[]", TYPES), F, "metastore.types",
     N1, "Trino cannot read the type of d.t.s (: is expected before -), nor list"),
    (element("spark", 1, "state", "DEAD"), F, "spark.workers",
     N2, "its spark_worker runs, and spark_master on"),
    (without("trino_nodes", 0), F, "trino.workers",
     N2, f"its trino runs, and trino on {N1} does not count it"),
    (without("flink_taskmanagers", 1), F, "flink.taskmanagers", N2, "its flink_taskmanager runs"),
    (element("flink_taskmanagers", 1, "slotsNumber", 1), F, "flink.slots", N2, "it offers 1 slot"),
    (part(N3, "releases", "3.5.0-1137f5b40d6f", "3.5.0-000000000000"), W, "versions.releases", N3,
     "the release of hadoop is 3.5.0-000000000000"),
    (part(N3, "manifest", questions.END, f"/etc/a mode is 0666 in place of 0644\n{questions.END}"), F,
     "host.drift", N3, "/etc/a mode is 0666 in place of 0644"),
    (part(N3, "manifest", questions.END, f"no manifest: /etc/m is not there\n{questions.END}"), W,
     "host.drift", N3, "no manifest: /etc/m is not there"),
    (part(N3, "packages", "17.0.16", "17.0.15"), W, "versions.java",
     N3, "package openjdk-17-jre-headless is 17.0.15"),
    (part(N3, "catalogs", DIGEST, "1f" * 32), F, "trino.catalogs",
     N3, "the digest of catalog delta.properties is 1f1f"),
    (part(N1, "hdfs_site", "<value>3<", "<value>2<"), W, "config.namenode", N1,
     "dfs.replication of hdfs-site.xml is 3 in the process"),
    (part(N1, "hive_site", ">false<", ">true<"), W, "config.metastore", N1,
     f"{probes.METASTORE_KEY} of hive-site.xml is false in the process"),
    (part(N1, "spark_master_conf", "defaultCores=3", "defaultCores=6"), W, "config.spark", N1,
     "spark.deploy.defaultCores of spark-master.conf is 3 in the process"),
    (part(N1, "trino_config", "60m", "2h"), W, "config.trino", N1,
     "query.max-run-time of config.properties is 60.00m in the process"),
    (element("flink_config", 0, "value", "2"), W, "config.flink", N3,
     "taskmanager.numberOfTaskSlots of config.yaml is 2 in the process"),
]  # fmt: skip


def test_a_cluster_that_is_well_has_no_finding_and_every_case_is_judged(told: Told) -> None:
    found = diagnose(told.seen())
    assert found.findings == ()
    assert found.judged == found.cases > 100


def test_a_check_has_one_name_and_a_fault_that_shows_it() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    without = set(names) - {name for _, _, name, _, _ in FAULTS}
    assert not without, f"next: add a row to FAULTS for {sorted(without)}"
    assert {name for _, _, name, _, _ in FAULTS} == set(names)


def test_a_check_is_mended_by_its_command_or_says_what_a_person_does(cluster: Cluster) -> None:
    """On a cluster the command is run, and the line is gone: tests/cluster/test_faults.py."""
    rows = yamlfile.read(failures.ON_A_CLUSTER)
    known = {row["check"]: row for row in rows["faults"]}
    for check in CHECKS:
        row = known.get(check.name, {})
        assert not (check.person and "not_run" in row), "what a person does no test runs"
    for fault, _, name, _, _ in FAULTS:
        told = Told(cluster)
        fault(told)
        [found] = told.findings()
        looks = any(word in found.action for word in ("journalctl", "-report", "df -", "free -h"))
        assert bool(found.person) or not looks, f"{name}: a command that only looks mends nothing"


def test_a_check_has_a_fault_on_a_cluster_or_it_is_said_why_not() -> None:
    found = yamlfile.read(failures.ON_A_CLUSTER)
    made = [fault["check"] for fault in found["faults"]]
    listed, names = {*made} | {*found["elsewhere"]}, {check.name for check in CHECKS}
    place = failures.ON_A_CLUSTER.relative_to(ROOT)
    assert not names - listed, f"next: add {sorted(names - listed)} to `faults` or `elsewhere` of {place}"
    assert not listed - names, f"next: remove {sorted(listed - names)} from {place}; no check has that name"
    assert not {*made} & {*found["elsewhere"]}
    guarantees = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    count = f"{len({*made})} of {len(CHECKS)} checks"
    assert f"[{count}](failures.md" in guarantees, f"next: write `{count}` in docs/guarantees.md"


@pytest.mark.parametrize("row", FAULTS, ids=[f"{row[2]}-{row[4][:24]}" for row in FAULTS])
def test_a_fault_is_its_line_and_no_other(told: Told, row: tuple[Fault, Level, str, str, str]) -> None:
    fault, level, name, host, fact = row
    fault(told)
    [found] = told.findings()
    assert (found.level, found.check, found.host) == (level, name, host)
    assert fact in found.fact
    assert found.action.split()[0].startswith((".venv/bin/", "make"))
    assert "\n" not in str(found)


@pytest.mark.parametrize(
    ("host", "name", "other", "unit"),
    [
        (N1, "hdfs_site", ("<value>3<", "<value>2<"), "hdfs-namenode"),
        (N3, "flink_config", ("false", "true"), "flink-jobmanager"),
    ],
)
def test_a_process_that_waits_for_its_restart_is_not_said_to_differ(
    told: Told, host: str, name: str, other: tuple[str, str], unit: str
) -> None:
    told.change(host, name, *other)
    block = daemon(unit)
    told.change(host, "daemons", block, block.replace(f"file {STARTED:.0f}", f"file {STARTED + 90:.0f}"))
    assert [found.check for found in told.findings()] == ["unit.pending"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.name))
def test_a_check_of_a_cluster_that_says_nothing_judges_nothing(told: Told, check: Any) -> None:
    told.silent |= dict.fromkeys([*told.said, *(f"host {name}" for name in told.addresses)], SILENT)
    found = diagnose(told.seen(), [check])
    assert found.judged == 0
    # Who is not known to run is not asked of his leader.
    assert {finding.check for finding in found.findings} <= {UNJUDGED}
    assert bool(found.findings) == bool(found.cases)


def test_a_silent_host_is_one_line_and_an_error(told: Told) -> None:
    told.silent[f"host {N2}"] = SILENT
    seen = told.seen()
    [found] = diagnose(seen).findings
    assert (found.check, found.host, found.level) == (UNJUDGED, N2, Level.FAULT)
    assert found.fact.endswith(f"not judged: {SILENT}")
    ending = screen.result(seen.status, diagnose(seen), 3.0)
    assert ending.outcome is Outcome.DOWN


def test_what_trino_left_to_a_silent_worker_is_said_of_that_worker(told: Told) -> None:
    told.silent |= {f"host {N2}": SILENT, "trino_session": SILENT}
    [found] = told.findings()
    assert (found.check, found.host) == (UNJUDGED, N2)


def test_failed_calls_of_a_young_metastore_are_not_known_to_be_well(told: Told) -> None:
    calls(told)
    told.change(N1, "units", unit("hive-metastore"), unit("hive-metastore", since=NOW - 20))
    [found] = told.findings()
    assert (found.check, found.host, found.level) == (UNJUDGED, N1, Level.FAULT)
    assert "journalctl -u hive-metastore" in found.action


def test_a_host_that_answers_is_not_pinged_for_what_one_part_of_it_did_not_say(told: Told) -> None:
    told.complain(N1, "listening", words="sh: 1: ss: not found")
    told.silent |= dict.fromkeys(("hdfs", "namenode"), "timed out")
    told.silent[f"host {N2}"] = SILENT
    actions = {found.host: found.action for found in told.findings() if found.check == UNJUDGED}
    assert "ping" not in actions[N1]
    assert "-m ping" in actions[N2]


def test_a_lost_database_and_a_lost_image_name_the_restore(told: Told) -> None:
    lost(told)
    told.change(N1, "unformatted", questions.END, f"/data/hdfs/namenode\n{questions.END}")
    found = told.findings()
    assert {one.check for one in found} == {"postgresql.lost", "hdfs.image"}
    assert all(one.action.startswith(".venv/bin/lakehouse restore -i ") for one in found)


def test_a_part_that_failed_is_not_judged_for_its_own_words(told: Told) -> None:
    told.parts[N2]["listening"] = "sh: 1: ss: not found\n@@lakehouse = 127\n\n@@lakehouse nothing\n"
    [found] = told.findings()
    assert (found.check, found.host) == (UNJUDGED, N2)
    assert found.fact == "net.listens not judged: sh: 1: ss: not found"


@pytest.mark.parametrize(
    ("service", "host", "asked"),
    [
        ("namenode", N1, ("hdfs", "namenode", "namenode_conf")),
        ("metastore", N1, ("metastore", *probes.CALLS)),
        ("spark_master", N1, ("spark",)),
        ("trino", N1, ("trino", "trino_nodes", "trino_queries")),
        ("flink_jobmanager", N3, ("flink", "flink_taskmanagers", "flink_config")),
    ],
)
def test_what_a_stopped_service_would_have_answered_is_said_by_its_unit_alone(
    told: Told, service: str, host: str, asked: tuple[str, ...]
) -> None:
    told.stop(service, host)
    told.silent |= dict.fromkeys(asked, "Connection refused")
    diagnosed = diagnose(told.seen())
    assert [(found.check, found.host) for found in diagnosed.findings] == [("unit.state", host)]
    assert diagnosed.judged < diagnosed.cases


def test_a_metastore_without_its_database_is_said_by_that_unit_alone(told: Told) -> None:
    told.stop("postgresql", N1)
    told.silent |= dict.fromkeys(("metastore", *probes.CALLS), "returned an exception")
    told.complain(N1, "catalog", "connections", words="psql: error: no socket")
    told.complain(N1, "login", words="PostgreSQL: Connection refused")
    [found] = told.findings()
    assert (found.check, found.fact) == ("unit.state", "postgresql is stopped (inactive/dead)")


def test_a_service_that_runs_and_says_nothing_is_not_judged(told: Told) -> None:
    told.silent |= dict.fromkeys(("hdfs", "namenode", "namenode_conf"), "timed out")
    [found] = told.findings()
    assert (found.check, found.host, found.level) == (UNJUDGED, N1, Level.FAULT)


def test_a_container_that_may_have_less_is_no_fault(told: Told) -> None:
    told.change(N2, "daemons", "1048576 ", "20000 ")
    told.change(N2, "daemons", "Max open files            131072", "Max open files            20000")
    assert told.findings() == ()


def test_a_checkpoint_is_missed_only_while_the_namenode_ran(told: Told) -> None:
    old = unit("hdfs-namenode", since=NOW - 50 * 3600)
    told.said["namenode_edits"]["beans"][0]["LastCheckpointTime"] = (NOW - 40 * 3600) * 1000
    assert told.findings() == ()
    told.change(N1, "units", unit("hdfs-namenode"), old)
    [found] = told.findings()
    assert (found.check, found.fact) == ("hdfs.checkpoint", "no checkpoint for 40 h")


def test_a_daemon_that_has_just_started_may_still_open_its_ports(told: Told) -> None:
    told.change(N2, "units", unit("hdfs-datanode"), unit("hdfs-datanode", since=NOW - 20))
    told.change(N2, "listening", ":9866", ":9999")
    node(N2)(told)
    assert told.findings() == ()


@pytest.mark.parametrize(
    ("host", "part_name", "check"),
    [
        (N1, "hdfs_site", "config.namenode"),
        (N1, "core_site", "config.namenode"),
        (N3, "flink_config", "config.flink"),
    ],
)
def test_a_file_that_nobody_understands_is_not_judged(
    told: Told, host: str, part_name: str, check: str
) -> None:
    told.parts[host][part_name] = "<{ %"
    [found] = told.findings()
    assert (found.check, found.host) == (UNJUDGED, host)
    assert check in found.fact


PARTS = (
    "began", "units", "memory", "space", "inodes", "thp", "names", "listening", "reach",
    "packages", "daemons", "checkpoint", "catalog", "catalogs", "connections", "flink_config", "hdfs_site",
    "core_site", "releases", "backup", "backup_units", "archive",
    "history", "history_units", "unformatted", "manifest", "login",
)  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("garbage", ["%[<garbage", "1 2\n=|=\n@ a\nb"])
def test_words_that_nobody_understands_are_never_health(told: Told, name: str, garbage: str) -> None:
    for parts in told.parts.values():
        if name in parts:
            parts[name] = garbage
    found = diagnose(told.seen())
    assert UNJUDGED in {finding.check for finding in found.findings}
    assert found.judged < found.cases


@pytest.mark.parametrize("garbage", [[], {}, "word", {"beans": []}, [{}], None])
def test_documents_that_nobody_understands_are_never_health(told: Told, garbage: object) -> None:
    for name in set(told.said) - {"metastore", "flink", "trino_queries", *probes.CALLS}:
        told.said[name] = garbage
    found = diagnose(told.seen())
    assert UNJUDGED in {finding.check for finding in found.findings}
    assert found.judged < found.cases


def test_a_secret_is_not_compared_and_not_printed(told: Told) -> None:
    told.change(
        N1, "hdfs_site", "</configuration>", xml({"my.password": "new"}).removeprefix("<configuration>")
    )
    told.said["namenode_conf"]["properties"].append(
        {"key": "my.password", "value": "old-one", "resource": "hdfs-site.xml"}
    )
    told.said["namenode_conf"]["properties"][0]["value"] = "<redacted>"
    assert told.findings() == ()


class TestEnding:
    """The lines, the code and the JSON."""

    def test_a_healthy_cluster_is_one_line_and_0(self, told: Told) -> None:
        seen = told.seen()
        found = diagnose(seen)
        ending = screen.result(seen.status, found, 4.21)
        assert (ending.outcome, ending.json()["exit"]) == (Outcome.OK, 0)
        said = f"{found.cases} of {found.cases} checks judged, 4.2 s"
        next_command = "make smoke INVENTORY="
        assert screen.screen(found, ending).startswith(
            f"doctor {seen.status.cluster}: 0 errors, 0 warnings; {said}; next: {next_command}"
        )

    def test_the_gravest_is_first_and_its_command_is_the_next(self, told: Told) -> None:
        bean("hdfs", "LowRedundancyBlocks", 2)(told)
        seen = told.seen()
        ending = screen.result(seen.status, diagnose(seen), 1.0)
        assert (ending.outcome, int(ending.outcome)) == (Outcome.DEGRADED, 1)
        assert ending.last_line.startswith(f"doctor {seen.status.cluster}: 0 errors, 1 warning; ")
        told.stop("spark_history", N1)
        seen = told.seen()
        found = diagnose(seen)
        ending = screen.result(seen.status, found, 1.0)
        assert int(ending.outcome) == 2
        first, second, last = screen.screen(found, ending).splitlines()
        assert first.startswith(
            f"FAIL unit.state {N1}: spark_history is stopped (inactive/dead) (expected running): "
        )
        assert second.startswith(f"WARN hdfs.replicas {N1}: 2 of 40 blocks lack a replica; wait until HDFS")
        assert ": .venv/bin/ansible" in second
        assert last.startswith(f"doctor {seen.status.cluster}: 1 error, 1 warning; ")
        assert last.endswith("; next: " + first.partition("(expected running): ")[2])

    def test_programs_get_the_contract_of_status(self, told: Told) -> None:
        told.silent[f"host {N2}"] = SILENT
        seen = told.seen()
        said = json.loads(json.dumps(screen.result(seen.status, diagnose(seen), 1.0).json()))
        keys = {"schema", "verb", "target", "outcome", "exit", "hosts", "findings", "next"}
        assert keys <= said.keys()
        assert (said["verb"], said["outcome"], said["exit"]) == ("doctor", "DOWN", 2)
        assert said["hosts"][N2] == {"answered": False, "why": SILENT}
        assert said["checks"]["judged"] < said["checks"]["of"]
        [finding] = said["findings"]
        assert finding.keys() == {"code", "outcome", "where", "what", "next"}

    @pytest.mark.parametrize(
        ("fault", "code"),
        [
            (None, 0),
            (bean("hdfs", "CorruptReplicatedBlocks", 1), 1),
            (bean("namenode", "NumberOfMissingBlocks", 1), 2),
        ],
    )
    def test_the_code_of_the_verb_is_that_of_the_gravest_line(
        self,
        told: Told,
        fault: Fault | None,
        code: int,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        if fault:
            fault(told)
        monkeypatch.setattr("lakehouse.doctor.look.look", lambda *_: told.seen())
        assert cli.main(["doctor"]) == code
        *_, last = capsys.readouterr().out.splitlines()
        assert last.startswith("doctor ")
        assert cli.main(["doctor", "--json"]) == code
        assert json.loads(capsys.readouterr().out)["exit"] == code

    def test_an_inventory_that_is_not_there_is_not_known(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["doctor", "-i", "inventory/none"]) == commands.USAGE
        assert (
            capsys.readouterr().err
            == "error: inventory inventory/none does not exist; next: ls -d inventory/*\n"
        )

    def test_it_ends_within_its_promise(self) -> None:
        assert doctor.LIMIT_SECONDS <= 20


class TestAsking:
    """What hosts are asked, and how their words are read."""

    def test_what_is_asked_of_a_host_is_what_the_checks_read(self, told: Told) -> None:
        for host in told.cluster.hosts:
            asked = dict(probes.commands(told.cluster, host))
            assert asked.keys() <= told.parts[host.name].keys()
        everywhere = {
            name for host in told.cluster.hosts for name in dict(probes.commands(told.cluster, host))
        }
        assert everywhere <= set(told.parts[N1])

    def test_a_script_is_one_that_a_shell_understands(self, told: Told) -> None:
        for question in questions.questions(told.cluster, probes.commands):
            if isinstance(question, Shell):
                done = subprocess.run(
                    ["sh", "-n", "-c", question.script], capture_output=True, text=True, check=False
                )
                assert (done.returncode, done.stderr) == (0, "")

    def test_the_commands_print_what_is_read_on_this_machine(self, told: Told) -> None:
        commands = dict(probes.commands(told.cluster, told.cluster.hosts[0]))

        def run(name: str) -> str:
            return subprocess.run(
                ["sh", "-c", commands[name]], capture_output=True, text=True, check=False
            ).stdout

        assert len(run("thp").splitlines()) == 2
        rows = [line.split("|") for line in run("names").splitlines()]
        assert [row[0] for row in rows] == list(told.addresses)
        assert {len(row) for row in rows} == {3}

    def test_disks_of_units_and_mounts_below_them_are_watched(self, told: Told) -> None:
        [host, *_] = told.cluster.hosts
        rows = told.cluster.services[host.name]
        script = questions.space(host, rows, "/proc").replace(
            shlex.join(questions.folders(host)), "/ /dev", 1
        )
        # systemd is asked for, and need not be there; /dev/shm is mounted everywhere.
        asked = 'systemctl() { echo "/usr -/nowhere"; echo; echo /etc; }'
        done = subprocess.run(["sh", "-c", f"{asked}\n{script}"], capture_output=True, text=True, check=True)
        shown = [line.split(maxsplit=3)[3] for line in done.stdout.splitlines()[1:]]
        assert shown[:5] == ["/", "/dev", "/proc", "/usr", "/etc"]
        assert "/dev/shm" in shown  # noqa: S108 -- it is only looked at
        assert reading.disks(done.stdout, ["/", "/dev"])[0].folder == "/"

    def test_a_host_without_systemd_is_not_known(self, told: Told) -> None:
        [host, *_] = told.cluster.hosts
        script = f"systemctl() {{ return 1; }}\n{questions.space(host, told.cluster.services[host.name])}"
        assert subprocess.run(["sh", "-c", script], capture_output=True, check=False).returncode

    def test_files_of_a_unit_are_named_with_their_newest_change(self, tmp_path: Path) -> None:
        unit, drop_in, one, two = (tmp_path / name for name in ("unit", "drop-in", "one.conf", "two.conf"))
        unit.write_text(f"[Unit]\nX-Reads={one}\nX-Reads={tmp_path}/missing\n", encoding="utf-8")
        drop_in.write_text(f"[Unit]\nX-Reads={two}\n", encoding="utf-8")
        one.touch()
        two.touch()
        # systemd is asked for, and need not be there.
        known = f"MainPID=$$\\nFragmentPath={unit}\\nDropInPaths={drop_in}"
        script = f'systemctl() {{ printf "{known}\\n"; }}\n{probes.SHOW}\nshow some-unit\n'
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        assert lines[0] == "@ some-unit"
        files = [line.split(" ", 2)[2] for line in lines if line.startswith("file ")]
        assert files == [str(path) for path in (unit, drop_in, one, two)] * 2
        assert {line.split("  ")[0] for line in lines if line.startswith("Max")} == {
            "Max processes",
            "Max open files",
        }
        assert {line.split("  ")[0] for line in lines if line.startswith("Most")} == {
            "Most processes",
            "Most open files",
        }
        assert {line.split(":")[0] for line in lines if line.startswith("Vm")} == {"VmRSS", "VmSwap"}

    def test_the_blocks_of_processes_are_read(self) -> None:
        [(name, found)] = processes(daemon("trino")).items()
        assert name == "trino"
        assert (found.started, found.limits["open files"], found.limits["processes"]) == (
            STARTED,
            131072,
            float("inf"),
        )
        assert found.files == {"/etc/trino.conf": int(STARTED)}

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("LISTEN 0 128 0.0.0.0:22 0.0.0.0:*", {22: {"*"}}),
            ("LISTEN 0 128 [::]:22 [::]:*", {22: {"*"}}),
            ("LISTEN 0 50 *:9083 *:*", {9083: {"*"}}),
            ("LISTEN 0 50 [::ffff:10.0.0.1]:9866 *:*", {9866: {"10.0.0.1"}}),
            ("LISTEN 0 50 127.0.0.53%lo:53 0.0.0.0:*", {53: {"127.0.0.53"}}),
        ],
    )
    def test_sockets_are_read(self, line: str, expected: dict[int, set[str]]) -> None:
        assert listeners(f"{line}\n") == expected

    def test_the_small_profile_is_judged_without_its_engines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LAKEHOUSE_PROFILE", "core")
        told = Told(placement.read(inventory.load(ROOT / "inventory" / "three-node")))
        told.said = {
            name: said for name, said in told.said.items() if not name.startswith(("trino", "flink"))
        }
        assert diagnose(told.seen()).findings == ()
        assert not [one for one in probes.extra_questions(told.cluster) if one.name.startswith("flink")]

    def test_every_question_has_a_name_of_its_own(self, told: Told) -> None:
        asked = [
            one.name
            for one in [
                *questions.questions(told.cluster, probes.commands),
                *probes.extra_questions(told.cluster),
            ]
        ]
        assert len(asked) == len(set(asked))
        assert {f"host {name}" for name in told.addresses} | set(told.said) == set(asked)


def test_a_second_finding_of_the_same_kind_is_counted() -> None:
    one = Finding("a.b", "n1", "fact", "act")
    assert diagnosis.Diagnosis((one, replace(one, host="n2")), 1, 2).count(Level.FAULT) == 2
