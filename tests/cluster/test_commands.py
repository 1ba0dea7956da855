"""What people type on a node is in their path, knows this cluster, and says who may where they may not."""

from __future__ import annotations

import pytest

from lakehouse.model.inventory import Inventory
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster]

SPARK = ("beeline", "pyspark", "spark-shell", "spark-sql", "spark-submit")
AS = "cd / && runuser -u %s -- "
# What people type: the release below lakehouse_install_dir that brings it, as whom, and what it answers with.
COMMANDS = {
    "hdfs dfs -ls -d /": ("hadoop", "hdfs", "drwx"),
    "hdfs dfsadmin -report -live": ("hadoop", "hdfs", "Live datanodes"),
    "hdfs fsck /tmp": ("hadoop", "hdfs", "is HEALTHY"),
    "spark-submit --version": ("spark", "spark", "Using Scala version"),
    "spark-sql --version": ("spark", "spark", "Using Scala version"),
    "pyspark --version": ("spark", "spark", "Using Scala version"),
    "beeline --version": ("spark", "spark", "by Apache Hive"),
    "trino --execute 'SELECT 40 + 2'": ("trino", "trino", '"42"'),
    "flink list": ("flink", "flink", "jobs"),
    "sql-client.sh embedded --help": ("flink", "flink", "--file"),
    "schematool -info": ("hive", "", "Hive distribution version"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_people_type_answers_on_every_node_that_has_it(node: Machine, command: str) -> None:
    release, user, answer = COMMANDS[command]
    if not node.shell.file(f"{node.variable('lakehouse_install_dir')}/{release}/current").exists:
        pytest.skip(f"no {release} on {node.name}")
    account = node.variable("lakehouse_users")[user] if user else "root"
    said = node.run(f"{AS} sh -c %s 2>&1", account, command)
    assert answer in said


def test_the_password_of_the_database_is_roots_to_read(cluster: Inventory, machines: Machines) -> None:
    machine = machines[cluster.group("metastore")[0].name]
    user = machine.variable("lakehouse_users")["hive"]
    done = machine.shell.run(f"{AS} schematool -info", user)
    assert (done.rc, done.stdout) == (77, "")
    assert done.stderr.strip().endswith(": sudo schematool -info")


def test_root_is_told_in_one_line_who_may(node: Machine) -> None:
    users, group = node.variable("lakehouse_users"), node.variable("lakehouse_group")
    for user, programs in ((users["spark"], SPARK), (users["hdfs"], ("hdfs",))):
        for program in programs:
            done = node.shell.run(f"{program} one 'two'")
            assert (done.rc, done.stdout) == (77, "")
            refusal = f"{program}: HDFS refuses root; as a member of the group {group}"
            assert done.stderr == f"{refusal}: sudo -u {user} {program} one two\n"


@pytest.mark.group("clients")
def test_hdfs_knows_the_cluster(node: Machine) -> None:
    superuser, root = node.variable("lakehouse_users")["hdfs"], node.variable("lakehouse_root")
    folder = node.run(f"{AS} hdfs dfs -stat '%%F %%u' %s", superuser, root)
    assert folder.startswith("directory ")
    assert "is HEALTHY" in node.run(f"{AS} hdfs fsck %s/spark", superuser, root)
    assert "Live datanodes" in node.run(f"{AS} hdfs dfsadmin -report -live", superuser)


@pytest.mark.group("clients")
def test_a_reader_reads_and_is_refused_in_one_line(node: Machine) -> None:
    reader, root = node.variable("lakehouse_readers")[0], node.variable("lakehouse_root")
    assert node.run(f"{AS} hdfs dfs -ls -d %s", reader, root).endswith(root)
    refused = node.shell.run(f"{AS} hdfs dfs -mkdir %s/kit_commands", reader, root)
    assert refused.rc != 0
    [line] = refused.stderr.splitlines()
    assert "Permission denied" in line


@pytest.mark.group("clients")
def test_a_word_that_hdfs_does_not_know_is_answered_with_those_that_it_does(node: Machine) -> None:
    done = node.shell.run(f"{AS} hdfs fcsk /", node.variable("lakehouse_users")["hdfs"])
    assert (done.rc, done.stdout) == (2, "")
    assert "|fsck|" in done.stderr


@pytest.mark.group("clients")
def test_spark_finds_its_java_and_its_configuration(node: Machine) -> None:
    shown = node.run(f"{AS} spark-submit --version 2>&1", node.variable("lakehouse_users")["spark"])
    assert "Using Scala version" in shown
