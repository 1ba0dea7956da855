"""What grows is bounded on the running cluster: edit log, journal, event logs, folders of applications."""

from __future__ import annotations

import re

import pytest

from lakehouse.model import defaults
from lakehouse.model.inventory import Inventory
from tests.cluster.machines import Machine

pytestmark = pytest.mark.cluster


def image(node: Machine) -> int:
    """The transaction up to which the newest image of the NameNode reaches."""
    [folder, *_] = node.variable("lakehouse_namenode_dirs")
    return max(map(int, re.findall(r"fsimage_(\d+)$", node.run("ls %s/current", folder), re.MULTILINE)))


def limit(node: Machine, name: str) -> int:
    """What the inventory says of a variable, or else its role."""
    return int(node.host.variables.get(name, defaults.role(name.partition("_")[0])[name]))


@pytest.mark.group("namenode")
def test_the_edit_log_is_merged_while_the_namenode_serves(node: Machine, cluster: Inventory) -> None:
    assert node.run("systemctl is-active hdfs-checkpoint.timer") == "active"
    before, process = image(node), node.run("systemctl show --property=MainPID --value hdfs-namenode")
    folder = f"{cluster.hosts[0].variables['lakehouse_root']}/checkpoint-of-tests"
    user = node.variable("lakehouse_users")["hdfs"]
    for command in ("-mkdir", "-rmdir"):
        node.run("cd / && runuser -u %s -- hdfs dfs %s %s", user, command, folder)
    node.run("systemctl start hdfs-checkpoint.service")
    assert image(node) > before
    assert node.run("systemctl show --property=MainPID --value hdfs-namenode") == process


def test_the_journal_knows_its_limit(node: Machine) -> None:
    said = node.run("systemd-analyze cat-config systemd/journald.conf")
    [*_, last] = re.findall(r"^SystemMaxUse=(.*)$", said, re.MULTILINE)
    assert last == f"{limit(node, 'node_journal_max_mb')}M"
    started = node.run("systemctl show --property=ExecMainStartTimestamp --timestamp=unix systemd-journald")
    written = node.run("stat --format=%Y /etc/systemd/journald.conf.d/lakehouse.conf")
    assert int(started.partition("@")[2]) >= int(written)


@pytest.mark.group("spark_workers")
def test_a_worker_and_the_history_server_clean_up(node: Machine) -> None:
    folder = f"{node.variable('lakehouse_config_dir')}/spark"
    said = node.run("cat %s/spark-worker.conf %s/spark-history.conf", folder, folder)
    wanted = {
        "spark.worker.cleanup.enabled": "true",
        "spark.worker.cleanup.appDataTtl": str(limit(node, "spark_work_days") * 86400),
        "spark.history.fs.cleaner.enabled": "true",
        "spark.history.fs.cleaner.maxAge": f"{limit(node, 'spark_history_days')}d",
        "spark.history.fs.cleaner.maxNum": str(limit(node, "spark_history_applications")),
        "spark.history.fs.eventLog.rolling.maxFilesToRetain": str(limit(node, "spark_event_log_files")),
    }
    settings = dict(line.split("=", 1) for line in said.splitlines() if line and not line.startswith("#"))
    assert {key: settings.get(key) for key in wanted} == wanted
