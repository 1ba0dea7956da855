"""Each alert reaches the receiver within a minute of its fault, and is resolved after it."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakehouse.dev import alertdocs
from lakehouse.model.inventory import Inventory
from suites.testbed.waiting import wait_for
from tests.cluster import catalog_database, changing
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, Machines, container_of
from tests.cluster.monitoring import ALERT_SECONDS, alerts_of, job_of_flink, received
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.longdrill]

# The restarts of a job are counted over five minutes.
RESOLVED_SECONDS = 420
CERTIFICATE, KEY = "/etc/ssl/certs/ssl-cert-snakeoil.pem", "/etc/ssl/private/ssl-cert-snakeoil.key"
# All but a twentieth of the free space.
FILL = (
    "fallocate --length $(df --output=avail --block-size=1 {folder} | "
    "awk 'END {{print int($1 * 0.95)}}') {folder}/full"
)
# Clocks of nodes in containers are the computer's, and a NameNode that starts with an old image saves a new
# one: these rules are tried on samples. Each has series, the time of evaluation, and labels and summary of
# the alert.
SAMPLES: dict[str, tuple[dict[str, str], str, dict[str, str], str]] = {
    "ClockOff": (
        {'node_time_seconds{host="a"}': "0+15x40", 'node_time_seconds{host="b"}': "5+15x40"},
        "5m",
        {"host": "b"},
        "The clock of b differs by 5 s",
    ),
    "CheckpointOld": (
        {"fs_namesystem_last_checkpoint_time": "0x7300"},
        "30h1m",
        {},
        "The last checkpoint of the NameNode is 1d 6h 1m 0s old",
    ),
}


class Faults:
    """Faults of the cluster, each of which ends with its block."""

    def __init__(self, cluster: Inventory, machines: Machines, ansible: Ansible, verb: Verb) -> None:
        self._cluster, self._ansible, self._verb = cluster, ansible, verb
        self._machines = machines

    def _machine(self, group: str) -> Machine:
        return self._machines[self._cluster.group(group)[0].name]

    @contextmanager
    def safe_mode(self) -> Iterator[dict[str, str]]:
        """HDFS refuses writes."""
        namenode = self._machine("namenode")
        user = namenode.variable("lakehouse_users")["hdfs"]
        namenode.run("runuser -u %s -- hdfs dfsadmin -safemode enter", user)
        try:
            yield {"alertname": "ServiceNotReady", "job": "namenode", "host": namenode.name}
        finally:
            namenode.run("runuser -u %s -- hdfs dfsadmin -safemode leave", user)

    @contextmanager
    def slow_metastore(self) -> Iterator[dict[str, str]]:
        """A lock in its database keeps the metastore waiting."""
        with catalog_database.held(self._machine("postgresql"), "DBS", "access exclusive"):
            yield {"alertname": "ServiceSlow", "job": "metastore", "host": self._machine("metastore").name}

    @contextmanager
    def missing_worker_of_trino(self) -> Iterator[dict[str, str]]:
        """A worker of Trino has ended."""
        host = self._cluster.group("trino_workers")[-1]
        with changing.stopped(self._machines[host.name], "trino"):
            yield {"alertname": "TrinoNodeMissing"}

    @contextmanager
    def full_disk(self) -> Iterator[dict[str, str]]:
        """A file system of a host, made in a file of this computer, has less than a tenth of free space."""
        [host] = self._cluster.group("monitoring")
        folder, device = f"/mnt/kit-{secrets.token_hex(4)}", f"/dev/kit-{secrets.token_hex(4)}"
        with tempfile.NamedTemporaryFile() as image, container_of(host) as container:
            image.truncate(64 << 20)
            _run("mkfs.ext4", "-q", "-m", "0", image.name)
            loop = _run("losetup", "--find", "--show", image.name)
            # A container may open no loop device; this computer may, within its file systems.
            inside = ("nsenter", "--mount", "--target", str(container.attrs["State"]["Pid"]), "sh", "-ec")
            number = os.minor(Path(loop).stat().st_rdev)
            try:
                _run(*inside, f"mknod {device} b 7 {number}; mkdir {folder}; mount {device} {folder}")
                _run(*inside, FILL.format(folder=folder))
                # A unit of a container sees the file systems that were there at its start.
                self._machines[host.name].run("systemctl restart lakehouse-node-exporter")
                yield {"alertname": "DiskAlmostFull", "mountpoint": folder, "host": host.name}
            finally:
                _run(*inside, f"umount {folder} || true; rm -f {device}; rmdir {folder}")
                self._machines[host.name].run("systemctl restart lakehouse-node-exporter")
                _run("losetup", "--detach", loop)

    @contextmanager
    def old_backup(self) -> Iterator[dict[str, str]]:
        """A backup is old as soon as it is there."""
        self._limit(0)
        try:
            yield {"alertname": "BackupOld"}
        finally:
            self._limit(30)

    def _limit(self, hours: int) -> None:
        outcome = self._ansible.playbook("site", "--tags", "backup", backup_alert_hours=hours)
        assert outcome.code == 0, outcome
        process = self._verb.run("backup")
        assert process.returncode == 0, process

    @contextmanager
    def restarts_of_a_job(self) -> Iterator[dict[str, str]]:
        """A job of Flink fails again and again."""
        properties = {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
            "restart-strategy.fixed-delay.delay": "1 s",
        }
        with job_of_flink(self._cluster, "1 / (n - 1)", properties):
            yield {"alertname": "FlinkJobRestarts"}

    @contextmanager
    def short_certificate(self) -> Iterator[dict[str, str]]:
        """PostgreSQL's certificate ends in three days."""
        machine = self._machine("postgresql")
        unit = changing.unit_of(machine, "postgresql@*")
        machine.run("cp --archive %s %s.kit && cp --archive %s %s.kit", *(CERTIFICATE,) * 2, *(KEY,) * 2)
        try:
            machine.run(
                "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=kit -days 3 -out %s -keyout %s 2>&1",
                CERTIFICATE, KEY,
            )  # fmt: skip
            machine.run("systemctl reload %s", unit)
            yield {"alertname": "CertificateExpires", "job": "postgresql", "host": machine.name}
        finally:
            machine.run("mv %s.kit %s && mv %s.kit %s", *(CERTIFICATE,) * 2, *(KEY,) * 2)
            machine.run("systemctl reload %s", unit)


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.fixture
def faults(cluster: Inventory, machines: Machines, ansible: Ansible, verb: Verb) -> Faults:
    return Faults(cluster, machines, ansible, verb)


CASES: dict[str, Callable[[Faults], AbstractContextManager[dict[str, str]]]] = {
    "safe mode": Faults.safe_mode,
    "slow metastore": Faults.slow_metastore,
    "missing worker of Trino": Faults.missing_worker_of_trino,
    "full disk": Faults.full_disk,
    "old backup": Faults.old_backup,
    "short certificate": Faults.short_certificate,
    "restarts of a job": Faults.restarts_of_a_job,
}


@pytest.mark.parametrize("name", CASES)
def test_a_fault_reaches_the_receiver_within_a_minute_and_is_resolved(
    cluster: Inventory, faults: Faults, name: str, record_property: Callable[[str, object], None]
) -> None:
    with received(cluster) as alerts:
        with CASES[name](faults) as labels:

            def firing() -> list[Any]:
                return list(alerts_of(alerts, "firing", labels))

            [alert, *_] = wait_for(f"{labels} among {alerts}", firing, seconds=ALERT_SECONDS, pause=0.5)
        assert alert["annotations"]["command"].startswith(".venv/bin/lakehouse ")
        record_property("note", f"{labels['alertname']}: {alert['annotations']['summary']}")
        wait_for(
            "its end", lambda: alerts_of(alerts, "resolved", labels), seconds=RESOLVED_SECONDS, pause=0.5
        )


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_raise_an_alert(cluster: Inventory, machines: Machines, name: str) -> None:
    series, moment, labels, summary = SAMPLES[name]
    machine = machines[cluster.group("monitoring")[0].name]
    [rule] = [row for row in alertdocs.rules() if row["alert"] == name]
    expected = {
        "exp_labels": {**rule["labels"], **labels},
        "exp_annotations": {**rule["annotations"], "summary": summary},
    }
    document = {
        "rule_files": [f"{machine.variable('lakehouse_config_dir')}/lakehouse-monitoring/rules.yml"],
        "tests": [
            {
                "interval": "15s",
                "input_series": [{"series": key, "values": values} for key, values in series.items()],
                "alert_rule_test": [{"alertname": name, "eval_time": moment, "exp_alerts": [expected]}],
            }
        ],
    }
    with machine.scratch("rules") as folder:
        path = f"{folder}/samples.yml"
        machine.run("echo %s > %s && promtool test rules %s", json.dumps(document), path, path)
