"""A commit that is sent again or arrives late never undoes a later one, with or without a lock.

Each scenario also runs against a second metastore on the same database, with Hive's own store in place of the
kit's. There it has to lose a commit, or a note: otherwise the scenario would prove nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest
from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    FieldSchema,
    LongColumnStatsData,
    MetaException,
)

from suites.testbed.waiting import wait_for
from tests.cluster import side_metastore
from tests.cluster.catalog_database import held, waiting
from tests.cluster.machines import Machine, Machines
from tests.cluster.metastore_port import (
    Proxy,
    commit,
    connected,
    iceberg_table,
    in_thread,
    metadata_of,
    next_version,
)

pytestmark = pytest.mark.cluster

MODIFIED = "The table has been modified. The parameter value for key 'metadata_location' is"
WRITERS = 8
UNIT = "kit-unguarded-metastore"
SECONDS = 60


@dataclass(frozen=True)
class Catalog:
    """A metastore with a table `t` whose metadata is `v1`, and whether the kit's store decides there."""

    host: str
    port: int
    user: str
    database: str
    guarded: bool

    def client(self, address: tuple[str, int] | None = None) -> AbstractContextManager[Client]:
        """Connect as a member, to the address of a proxy where one is given."""
        host, port = address or (self.host, self.port)
        return connected(host, port, self.user)

    def current(self) -> str:
        """Return the file name of the table's metadata."""
        with self.client() as client:
            return metadata_of(client, self.database, "t")

    def commit(self, *versions: str) -> None:
        """Commit these versions, one after the other."""
        with self.client() as client:
            for version in versions:
                commit(client, self.database, "t", version)


@pytest.fixture(scope="module")
def unguarded(machines: Machines) -> Iterator[tuple[Machine, int]]:
    """Run a second metastore, as Hive ships its stores; return its host and port."""
    [machine] = [one for one in machines.values() if "metastore" in one.host.groups]
    changes = {"metastore.rawstore.impl": "org.apache.hadoop.hive.metastore.ObjectStore"}
    with side_metastore.running(machine, UNIT, changes) as port:
        yield machine, port


@pytest.fixture(params=["guarded", "as Hive ships it"])
def catalog(request: pytest.FixtureRequest, unguarded: tuple[Machine, int]) -> Iterator[Catalog]:
    """A database of its own with the table `t`, gone at the end."""
    machine, other = unguarded
    guarded = request.param == "guarded"
    port = int(machine.variable("lakehouse_ports")["metastore"]) if guarded else other
    name = f"kit_commits_{secrets.token_hex(4)}"
    made = Catalog(machine.host.address, port, machine.variable("lakehouse_users")["spark"], name, guarded)
    with made.client() as client:
        client.create_database(Database(name=name, locationUri=f"/tmp/{name}"))  # noqa: S108 -- in HDFS
        client.create_table(iceberg_table(name, "t", "v1"))
    try:
        yield made
    finally:
        with made.client() as client:
            client.drop_database(name, True, True)


def test_a_request_that_arrives_after_two_later_commits(catalog: Catalog) -> None:
    """The first attempt is held in the network; its writer tries again, and another commits after that."""
    with Proxy(catalog.host, catalog.port) as proxy, catalog.client(proxy.address) as late:
        request = next_version(late.get_table(catalog.database, "t"), "v2")
        proxy.requests_pass.clear()
        thread, errors = in_thread(lambda: late.alter_table(catalog.database, "t", request))
        assert proxy.held.wait(SECONDS)
        catalog.commit("v2", "v3")
        proxy.requests_pass.set()
        thread.join(SECONDS)
    assert catalog.current() == ("v3" if catalog.guarded else "v2")
    if catalog.guarded:
        assert isinstance(errors[0], MetaException)
        assert MODIFIED in str(errors[0])


def test_a_reply_that_is_lost_and_the_request_sent_again(catalog: Catalog) -> None:
    """At once it is accepted, for it is current; after a later commit it is refused."""
    with Proxy(catalog.host, catalog.port) as proxy, catalog.client(proxy.address) as unlucky:
        request = next_version(unlucky.get_table(catalog.database, "t"), "v2")
        proxy.replies_pass.clear()
        thread, errors = in_thread(lambda: unlucky.alter_table(catalog.database, "t", request))
        assert proxy.held.wait(SECONDS)
        proxy.cut()
        thread.join(SECONDS)
    assert errors, "the client got the reply that was to be lost"
    assert catalog.current() == "v2"
    with catalog.client() as client:
        client.alter_table(catalog.database, "t", request)
        catalog.commit("v3")
        if catalog.guarded:
            with pytest.raises(MetaException, match=MODIFIED):
                client.alter_table(catalog.database, "t", request)
        else:
            client.alter_table(catalog.database, "t", request)
    assert catalog.current() == ("v3" if catalog.guarded else "v2")


def test_of_writers_that_replace_the_same_version_one_is_acknowledged(catalog: Catalog) -> None:
    """Without locks; each has read the version that all want to replace."""

    def write(number: int) -> bool:
        with catalog.client() as client:
            request = next_version(client.get_table(catalog.database, "t"), f"v2-{number}")
            ready.append(number)
            wait_for("all writers", lambda: len(ready) == WRITERS, seconds=SECONDS)
            try:
                client.alter_table(catalog.database, "t", request)
            except MetaException as refusal:
                refusals.append(str(refusal))
                return False
        return True

    ready: list[int] = []
    refusals: list[str] = []
    with ThreadPoolExecutor(WRITERS) as writers:
        acknowledged = [number for number, done in enumerate(writers.map(write, range(WRITERS))) if done]
    if catalog.guarded:
        assert [catalog.current()] == [f"v2-{number}" for number in acknowledged]
        assert all(MODIFIED in refusal for refusal in refusals)
    else:
        assert len(acknowledged) > 1


def test_a_rename_that_read_the_table_before_a_commit(catalog: Catalog) -> None:
    """As PyIceberg renames, which takes no lock: its request carries the metadata that it has read."""
    with catalog.client() as client:
        request = client.get_table(catalog.database, "t")
        catalog.commit("v2")
        request.tableName = "renamed"
        if catalog.guarded:
            with pytest.raises(MetaException, match=MODIFIED):
                client.alter_table(catalog.database, "t", request)
            assert catalog.current() == "v2"
            request = client.get_table(catalog.database, "t")
            request.tableName = "renamed"
        client.alter_table(catalog.database, "t", request)
        assert metadata_of(client, catalog.database, "renamed") == ("v2" if catalog.guarded else "v1")


def test_statistics_of_two_columns_at_once_are_both_noted(catalog: Catalog, machines: Machines) -> None:
    """Hive writes into a property of the table which columns have statistics, and has read it before."""

    def write(column: str) -> None:
        of = ColumnStatisticsDesc(isTblLevel=True, dbName=catalog.database, tableName="s")
        numbers = ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 0, 2))
        one = ColumnStatisticsObj(colName=column, colType="int", statsData=numbers)
        with catalog.client() as client:
            client.update_table_column_statistics(ColumnStatistics(of, [one]))

    table = iceberg_table(catalog.database, "s", "v1")
    table.sd.cols = [FieldSchema(name, "int", None) for name in "abc"]
    with catalog.client() as client:
        client.create_table(table)
    write("a")
    [database] = [one for one in machines.values() if "postgresql" in one.host.groups]
    with held(database, "TAB_COL_STATS", "exclusive"):
        before = waiting(database)
        writers = [in_thread(lambda column=column: write(column)) for column in "bc"]  # type: ignore[misc]
        # Each has read the property and cannot write yet, or waits to read it.
        wait_for("both writers", lambda: waiting(database) >= before + 2, seconds=SECONDS)
    for thread, errors in writers:
        thread.join(SECONDS)
        assert errors == []
    with catalog.client() as client:
        state = json.loads(client.get_table(catalog.database, "s").parameters["COLUMN_STATS_ACCURATE"])
    assert (set(state["COLUMN_STATS"]) == set("abc")) is catalog.guarded
