"""The metastore's guard: it decides about everything that can change something, and about every user."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterator

import pytest
from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import (
    Database,
    FieldSchema,
    MetaException,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lakehouse.metastore import IncompleteError, Metastore, Options, ReplySizeError
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


def test_the_kits_client_writes_and_reads_many_partitions(node: Machine) -> None:
    """With the first of two addresses dead, and in chunks, of which no reply is larger than its bound.

    Where a release lacks a method, by another one.
    """
    port, name = node.variable("lakehouse_ports")["metastore"], f"kit_client_{secrets.token_hex(4)}"
    addresses = f"thrift://127.0.0.1:1,thrift://{node.host.address}:{port}"
    # To drop so many rows of the database takes a busy machine longer than a call may take otherwise.
    options = Options(
        user=node.variable("lakehouse_users")["hdfs"], chunk=100, reply=20_000, read=60, total=60
    )
    days = [str(number) for number in range(250)]
    with Metastore(addresses, options) as metastore:
        metastore.call("create_database", Database(name=name, locationUri=f"/tmp/{name}"))  # noqa: S108
        try:
            metastore.call("create_table", partitioned(name, "t"))
            empty = metastore.call("get_table", name, "t")
            rows = [Partition(dbName=name, tableName="t", values=[day], sd=empty.sd) for day in days]
            metastore.call("add_partitions", rows)
            names = metastore.partition_names(name, "t")
            assert sorted(names) == sorted(f"day={day}" for day in days)
            found = metastore.partitions(name, "t", names)
            assert [f"day={one.values[0]}" for one in found] == names
            with pytest.raises(IncompleteError, match="partition day=never"):
                metastore.partitions(name, "t", ["day=1", "day=never"])
            assert list(metastore.known_partitions(name, "t", ["day=1", "day=never"])) == ["day=1"]
            with pytest.raises(NoSuchObjectException):
                metastore.known_partitions(name, "never", ["day=1"])
            # Without chunks they are more than one reply may have.
            with pytest.raises(ReplySizeError):
                metastore.call("get_partitions_by_names", name, "t", names)
        finally:
            metastore.call("drop_database", name, True, True)


def partitioned(database: str, name: str) -> Table:
    return Table(
        dbName=database, tableName=name, owner="kit", tableType="MANAGED_TABLE", parameters={},
        partitionKeys=[FieldSchema("day", "string", None)],
        sd=StorageDescriptor(
            cols=[FieldSchema("id", "int", None)], location=f"/tmp/{database}/{name}",  # noqa: S108
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            serdeInfo=SerDeInfo(
                serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
            ),
            parameters={}, bucketCols=[], sortCols=[], numBuckets=-1,
        ),
    )  # fmt: skip
