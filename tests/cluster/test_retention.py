"""What grows is bounded on the running cluster: edit log, journal, event logs, folders of applications."""

from __future__ import annotations

import re

import pytest

from lakehouse.inventory import Inventory
from tests.cluster.machines import Machine

pytestmark = pytest.mark.cluster


def image(node: Machine) -> int:
    """The transaction up to which the newest image of the NameNode reaches."""
    [folder, *_] = node.variable("lakehouse_namenode_dirs")
    return max(map(int, re.findall(r"fsimage_(\d+)$", node.run("ls %s/current", folder), re.MULTILINE)))


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
    assert re.search(r"^SystemMaxUse=\d+M$", said, re.MULTILINE), said
    started = node.run("systemctl show --property=ExecMainStartTimestamp --timestamp=unix systemd-journald")
    written = node.run("stat --format=%Y /etc/systemd/journald.conf.d/lakehouse.conf")
    assert int(started.partition("@")[2]) >= int(written)


@pytest.mark.group("spark_workers")
def test_a_worker_and_the_history_server_clean_up(node: Machine) -> None:
    settings = node.run("cat %s/spark/spark-daemons.conf", node.variable("lakehouse_config_dir"))
    assert re.search(r"^spark\.worker\.cleanup\.enabled[ =]true$", settings, re.MULTILINE), settings
    assert re.search(r"^spark\.history\.fs\.cleaner\.enabled[ =]true$", settings, re.MULTILINE), settings
