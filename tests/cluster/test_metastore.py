"""The metastore's guard: it decides about everything that can change something, and about everybody."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import Database, MetaException
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from tests.cluster.machines import Machine

pytestmark = [pytest.mark.cluster, pytest.mark.group("metastore")]


@pytest.fixture
def stranger(node: Machine) -> Iterator[ThriftHiveMetastore.Client]:
    """A client that does not say who it is."""
    transport = TBufferedTransport(TSocket(node.host.address, node.variable("lakehouse_ports")["metastore"]))
    transport.open()
    yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    transport.close()


def test_nothing_that_changes_the_metastore_is_undecided(node: Machine) -> None:
    """In the installed release's two stores each method is guarded, reads, or is the metastore's own."""
    unit = node.run("systemctl show --property ExecStart --value hive-metastore")
    command = shlex.split(re.sub(r".*argv\[\]=(.*?) ; .*", r"\1", unit))
    classpath = command[command.index("-cp") + 1]
    asked = "org.apache.hadoop.hive.metastore.Undecided"
    assert node.run("%s -cp %s %s", command[0], classpath, asked) == ""


def test_who_says_no_name_changes_nothing(stranger: ThriftHiveMetastore.Client) -> None:
    assert "default" in stranger.get_all_databases()
    with pytest.raises(MetaException, match="did not say who it is"):
        # HDFS would let the metastore's own user make this folder.
        stranger.create_database(Database(name="of_nobody", locationUri="/tmp/of_nobody"))  # noqa: S108
