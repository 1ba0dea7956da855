"""Two stacks under different names run at once, and neither sees what the other has.

By its name this comes after test_smaller_profile.py, which leaves the small stack to run beside the second.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from subprocess import DEVNULL
from urllib.parse import urlsplit

import pytest
from ansible.module_utils.lakehouse import metastore_schema

from lakehouse import run
from lakehouse.local.compose import dotenv
from lakehouse.local.compose.dotenv import DATANODES_VARIABLE, Settings
from lakehouse.local.compose.labels import PROJECT_LABEL, SERVICE_LABEL
from lakehouse.local.nodes import docker_api
from suites.testbed.engines.spark import Spark
from suites.testbed.namenode import NameNode
from suites.testbed.placement import Ledger
from suites.testbed.waiting import wait_for
from tests.compose.conftest import another, compose, connect, kill, succeed, surroundings, volumes

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

# Where the ports of the second stack begin, counted from those of the first.
APART = 100
PATIENCE = 120
NAMESPACE = "iceberg.side_by_side"
DATANODES = ("datanode1", "datanode2", "datanode3")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Another small stack.

    It has three DataNodes. Its first start is killed in the midst of the schema. Nothing is left of it.
    """
    values = {DATANODES_VARIABLE: str(len(DATANODES))}
    file = another(tmp_path_factory.mktemp("second"), "kit-test-second", APART, **values)
    meant = dotenv.load(file, environment={})
    try:
        with begun("compose", "up", "--env-file", str(file)):
            wait_for("the schema is being made", lambda: is_making(meant), seconds=PATIENCE)
            kill(meant)
        succeed("compose", "up", "--env-file", str(file))
        assert volumes(meant)
        yield meant
    finally:
        succeed("compose", "down", "--volumes", "--env-file", str(file))
        assert not volumes(meant)


@contextmanager
def begun(*arguments: str) -> Iterator[None]:
    """Run the kit's program beside the block; however it ends, it does so soon after."""
    argv = [run.program("lakehouse"), *arguments]
    with subprocess.Popen(argv, cwd=run.ROOT, env=surroundings(), stdout=DEVNULL, stderr=DEVNULL) as program:
        try:
            yield
            program.wait(PATIENCE)
        finally:
            program.kill()


def is_making(meant: Settings) -> bool:
    """Whether the metastore's tables are being made at this moment."""
    labels = [f"{PROJECT_LABEL}={meant.project}", f"{SERVICE_LABEL}=postgres"]
    with docker_api.connect() as client:
        for container in client.containers.list(filters={"label": labels}, ignore_removed=True):
            psql = ["psql", "--username=hive", "--dbname=metastore", "-XAtqc", metastore_schema.IS_MAKING]
            return bool(container.exec_run(psql, user="postgres").output == b"t\n")
    return False


@pytest.fixture(scope="module")
def other(second: Settings) -> Iterator[Spark]:
    """A session with the second stack's Spark."""
    spark = connect(second)
    yield spark
    spark.session.stop()


def test_a_first_start_that_was_killed_is_finished(second: Settings) -> None:
    assert "initialised schema" in compose(second, "logs", "--no-log-prefix", "metastore-schema")


def test_each_has_its_own_tables(spark: Spark, other: Spark) -> None:
    try:
        for number, one in enumerate((spark, other)):
            one.sql(f"CREATE NAMESPACE {NAMESPACE}")
            one.sql(f"CREATE TABLE {NAMESPACE}.birds USING iceberg AS SELECT {number} AS stack")
        for number, one in enumerate((spark, other)):
            assert one.sql(f"TABLE {NAMESPACE}.birds") == [(number,)]
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {NAMESPACE}.birds PURGE")
        spark.sql(f"DROP NAMESPACE IF EXISTS {NAMESPACE}")


def test_every_block_is_on_three_datanodes(second: Settings, other: Spark) -> None:
    other.sql("CREATE TABLE iceberg.default.replicated USING iceberg AS SELECT 1 AS id")
    file = other.value("SELECT file_path FROM iceberg.default.replicated.files")
    folder = str(PurePosixPath(urlsplit(file).path).parents[1])
    namenode = NameNode(f"http://127.0.0.1:{second.values['NAMENODE_HTTP_PORT']}", "hdfs")

    ledger = Ledger(namenode, len(DATANODES), lambda address: address.partition(":")[0])
    placement = ledger.measure("replicated", "iceberg", folder)

    assert placement is not None, f"no blocks in {folder}"
    assert placement.complete, placement
    assert tuple(placement.nodes) == DATANODES
    assert {found.replication for found in namenode.files(folder)} == {len(DATANODES)}
