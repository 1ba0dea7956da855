"""What people type on a node is in their path, knows this cluster, and says who may where they may not."""

from __future__ import annotations

import pytest

from tests.cluster.machines import Machine

pytestmark = [pytest.mark.cluster]

SPARK = ("beeline", "pyspark", "spark-shell", "spark-sql", "spark-submit")
AS = "cd / && runuser -u %s -- "


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
