"""The metastore accepts no location that equals, contains or lies in another object's."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    AlreadyExistsException,
    Database,
    MetaException,
    NoSuchObjectException,
    Table,
)

from lakehouse.model.inventory import Inventory
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.trino import Trino
from tests.cluster import side_metastore
from tests.cluster.machines import Machine, Machines
from tests.cluster.metastore_port import connected, iceberg_table
from tests.cluster.test_flink import flink  # noqa: F401 -- a fixture
from tests.cluster.test_python_clients import CONNECT
from tests.cluster.test_python_clients import Client as Python

pytestmark = pytest.mark.cluster

SHARED = "lakehouse.shared-location"
SETTING = "lakehouse.metastore.overlapping.locations"
AT_ONCE, ROUNDS = 6, 20


@dataclass(frozen=True)
class Ground:
    """Two databases of a run, `<name>_a` and `<name>_b`; in the first the Iceberg table `t`."""

    host: str
    port: int
    users: dict[str, str]
    name: str
    machine: Machine

    @property
    def root(self) -> str:
        return f"/tmp/{self.name}"  # noqa: S108 -- in HDFS

    @property
    def a(self) -> str:
        return f"{self.name}_a"

    @property
    def b(self) -> str:
        return f"{self.name}_b"

    def client(self, user: str | None = None) -> AbstractContextManager[Client]:
        """Connect as a member, or as another user."""
        return connected(self.host, self.port, user or self.users["spark"])

    def create(self, table: Table) -> None:
        with self.client() as client:
            client.create_table(table)

    def refused(self, table: Table) -> str:
        """Return why the metastore creates no such table; it must not."""
        with self.client() as client, pytest.raises(MetaException) as refusal:
            client.create_table(table)
        [line] = refusal.value.message.splitlines()
        assert "another location" in line
        return str(line)

    def table(self, database: str, name: str, place: str, **parameters: str) -> Table:
        """Return an external table of Hive's own format."""
        table = iceberg_table(database, name, "v1")
        table.parameters = {"EXTERNAL": "TRUE", **parameters}
        table.sd.location = place
        return table

    def iceberg(self, database: str, name: str, place: str, **parameters: str) -> Table:
        """Return a table of Iceberg."""
        made = {"table_type": "ICEBERG", "metadata_location": f"{place}/metadata/v1", **parameters}
        return self.table(database, name, place, **made)

    def delta(self, database: str, name: str, place: str) -> Table:
        """Return an external Delta table as Spark enters it."""
        table = self.table(
            database, name, f"{self.root}/{database}/{name}-__PLACEHOLDER__",
            **{"spark.sql.sources.provider": "delta"},
        )  # fmt: skip
        table.sd.serdeInfo.parameters = {"path": place}
        return table


@pytest.fixture
def ground(cluster: Inventory, machines: Machines) -> Iterator[Ground]:
    [host] = cluster.group("metastore")
    made = Ground(
        host.address, host.variables["lakehouse_ports"]["metastore"], host.variables["lakehouse_users"],
        f"kit_places_{secrets.token_hex(4)}", machines[host.name],
    )  # fmt: skip
    with made.client() as client:
        for name in (made.a, made.b):
            client.create_database(Database(name=name, locationUri=f"{made.root}/{name}"))
        client.create_table(made.iceberg(made.a, "t", f"{made.root}/{made.a}/t"))
    yield made
    with made.client() as client:
        for name in filter(lambda name: name.startswith(made.name), client.get_all_databases()):
            client.drop_database(name, True, True)


def folder_of(ground: Ground, name: str) -> str:
    return f"{ground.root}/{ground.a}/{name}"


SPELLINGS: tuple[Callable[[Ground, str], str], ...] = (
    lambda _, path: path,
    lambda ground, path: f"hdfs://{ground.machine.variable('lakehouse_nameservice')}{path}/",
    lambda _, path: path.replace("_a/", "_a//"),
)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("below", "relation"),
    [("t", "is"), ("t/data", "is in"), ("t/data/more", "is in")],
)
def test_a_table_has_a_folder_of_its_own(
    ground: Ground, spelling: Callable[[Ground, str], str], below: str, relation: str
) -> None:
    place = spelling(ground, folder_of(ground, below))
    for made in (
        ground.iceberg(ground.a, "other", place),
        ground.table(ground.a, "other", place),
        ground.delta(ground.a, "other", place),
    ):
        said = ground.refused(made)
        assert f"{relation} the location of table {ground.a}.t (hdfs://" in said
        assert f"{SHARED}=true" in said


def test_a_table_holds_no_other_and_no_database(ground: Ground) -> None:
    assert "contains" in ground.refused(ground.table(ground.a, "other", ground.root))
    # Its own database's folder: the next table would be in it.
    said = ground.refused(ground.table(ground.a, "other", f"{ground.root}/{ground.a}"))
    assert f"is the location of database {ground.a}" in said or "contains the location of table" in said
    said = ground.refused(ground.table(ground.b, "other", f"{ground.root}/{ground.a}/other"))
    assert f"is in the location of database {ground.a}" in said
    # Its metadata lies in another table's folder.
    lodger = ground.iceberg(ground.b, "other", f"{ground.root}/{ground.b}/other")
    lodger.parameters["metadata_location"] = folder_of(ground, "t/metadata/v1")
    assert "is in the location of" in ground.refused(lodger)


@pytest.mark.parametrize("below", ["", "{name}_a", "{name}_a/below", "{name}_a/t"])
def test_a_database_has_a_folder_of_its_own(ground: Ground, below: str) -> None:
    place = f"{ground.root}/{below.format(name=ground.name)}"
    with ground.client() as client:
        with pytest.raises(MetaException, match=r"the location of (table|database)"):
            client.create_database(Database(name=f"{ground.name}_c", locationUri=place))
        moved = client.get_database(ground.b)
        moved.locationUri = place
        with pytest.raises(MetaException, match=r"the location of (table|database)"):
            client.alter_database(ground.b, moved)
        allowed = Database(name=f"{ground.name}_c", locationUri=place, parameters={SHARED: "true"})
        client.create_database(allowed)
        client.drop_database(f"{ground.name}_c", False, True)


def test_what_no_drop_removes_may_be_shared(ground: Ground) -> None:
    """External tables of Hive's formats, and external Delta tables of one folder; and what says so."""
    place = f"{ground.root}/raw"
    ground.create(ground.table(ground.a, "one", place))
    ground.create(ground.table(ground.b, "two", place))
    ground.create(ground.table(ground.b, "part", f"{place}/day=1"))
    said = ground.refused(ground.table(ground.b, "purged", place, **{"external.table.purge": "true"}))
    assert f"is the location of table {ground.a}.one" in said
    ground.create(ground.delta(ground.a, "first", f"{ground.root}/delta"))
    ground.create(ground.delta(ground.b, "second", f"{ground.root}/delta"))
    assert "is in the location of table" in ground.refused(
        ground.delta(ground.b, "third", f"{ground.root}/delta/below")
    )
    ground.create(ground.iceberg(ground.b, "shared", folder_of(ground, "t"), **{SHARED: "true"}))
    view = ground.table(ground.b, "view", folder_of(ground, "t"))
    view.tableType, view.viewOriginalText, view.viewExpandedText = "VIRTUAL_VIEW", "select 1", "select 1"
    ground.create(view)


def test_only_a_changed_location_is_compared(ground: Ground) -> None:
    """Tables that overlap already can be altered, and renamed where that moves no folder."""
    ground.create(ground.iceberg(ground.a, "twin", folder_of(ground, "t"), **{SHARED: "true"}))
    with ground.client() as client:
        twin = client.get_table(ground.a, "twin")
        twin.parameters.pop(SHARED)
        client.alter_table(ground.a, "twin", twin)
        twin.parameters["comment"], twin.tableName = "renamed", "renamed"
        client.alter_table(ground.a, "twin", twin)
        other = ground.table(ground.b, "other", f"{ground.root}/{ground.b}/other")
        client.create_table(other)
        moved = client.get_table(ground.b, "other")
        moved.sd.location = folder_of(ground, "t/data")
        with pytest.raises(MetaException, match=r"is in the location of (table|database)"):
            client.alter_table(ground.b, "other", moved)
        moved.parameters[SHARED] = "true"
        client.alter_table(ground.b, "other", moved)


def test_a_renamed_table_of_hive_gives_its_folder_free(ground: Ground) -> None:
    with ground.client() as client:
        for _ in range(2):
            made = ground.table(ground.a, "o", folder_of(ground, "o"))
            made.tableType, made.parameters = "MANAGED_TABLE", {}
            client.create_table(made)
            there = client.get_table(ground.a, "o")
            there.tableName = f"o_{secrets.token_hex(2)}"
            client.alter_table(ground.a, "o", there)
            assert client.get_table(ground.a, there.tableName).sd.location.endswith(there.tableName)


def test_of_two_tables_for_one_folder_at_the_same_moment_one_is_made(ground: Ground) -> None:
    def attempt(number: int) -> bool:
        with ground.client() as client, suppress(MetaException):
            client.create_table(ground.iceberg(ground.a, f"o{number}", folder_of(ground, "o")))
            return True
        return False

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(attempt, range(AT_ONCE))) == 1


def test_of_creations_at_the_same_moment_the_refused_ones_remove_no_folder(ground: Ground) -> None:
    """Hive makes the folder before the row, and removes it where the row is refused."""
    names = [f"m{number}" for number in range(ROUNDS)]

    def attempt(name: str) -> bool:
        table = ground.table(ground.a, name, folder_of(ground, name))
        table.tableType, table.parameters = "MANAGED_TABLE", {}
        with ground.client() as client, suppress(AlreadyExistsException):
            client.create_table(table)
            return True
        return False

    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = Counter(name for name in names for was_made in pool.map(attempt, [name] * AT_ONCE) if was_made)
    superuser, folder = ground.machine.variable("lakehouse_users")["hdfs"], f"{ground.root}/{ground.a}"
    there = ground.machine.run("cd / && runuser -u %s -- hdfs dfs -ls -C %s", superuser, folder).split()
    assert made == dict.fromkeys(names, 1)
    assert {folder_of(ground, name) for name in names} <= set(there)


@pytest.mark.parametrize("party", ["reader", "outsider"])
def test_who_may_not_write_learns_nothing_of_other_tables(ground: Ground, party: str) -> None:
    user = "nobody" if party == "outsider" else str(ground.machine.variable("lakehouse_readers")[0])
    with ground.client(user) as client, pytest.raises(MetaException, match="may not write") as refusal:
        client.create_table(ground.iceberg(ground.a, "other", folder_of(ground, "t")))
    assert f"{ground.a}.t" not in refusal.value.message


def test_a_setting_allows_all(ground: Ground) -> None:
    with side_metastore.running(ground.machine, f"kit-{ground.name}", {SETTING: "true"}) as port:
        replace(ground, port=port).create(ground.iceberg(ground.a, "twin", folder_of(ground, "t")))


# --- Engines: CREATE o; RENAME o TO o_old; CREATE o ---


def places(ground: Ground, database: str) -> list[str]:
    with ground.client() as client:
        return [client.get_table(database, name).sd.location for name in ("o", "o_old")]


def test_trino_drops_a_renamed_table_and_no_other(trino: Trino, iceberg_schema: str, ground: Ground) -> None:
    database = f"iceberg.{iceberg_schema}"
    trino.sql(f"CREATE TABLE {database}.o AS SELECT 1 a")
    trino.sql(f"ALTER TABLE {database}.o RENAME TO {database}.o_old")
    trino.sql(f"CREATE TABLE {database}.o AS SELECT 2 a")
    assert len(set(places(ground, iceberg_schema))) == 2
    trino.sql(f"DROP TABLE {database}.o_old")
    assert trino.value(f"SELECT a FROM {database}.o") == 2  # noqa: S608 -- names of the test


def test_flink_gives_the_next_table_another_folder(
    flink: Flink,  # noqa: F811 -- the fixture
    trino: Trino,
    iceberg_schema: str,
    ground: Ground,
) -> None:
    flink.run(f"CREATE TABLE {iceberg_schema}.o (a INT)")
    flink.run(f"ALTER TABLE {iceberg_schema}.o RENAME TO {iceberg_schema}.o_old")
    flink.run(f"CREATE TABLE {iceberg_schema}.o (a INT)")
    assert len(set(places(ground, iceberg_schema))) == 2
    trino.sql(f"DROP TABLE iceberg.{iceberg_schema}.o_old")
    assert trino.value(f"SELECT count(*) FROM iceberg.{iceberg_schema}.o") == 0  # noqa: S608 -- names of the test


def on_a_client(machines: Machines, cluster: Inventory) -> Any:
    hosts = cluster.group("clients")
    return Python(machines[hosts[0].name]) if hosts else pytest.skip("no clients in this inventory")


def test_spark_gives_the_next_table_another_folder(
    machines: Machines, cluster: Inventory, trino: Trino, iceberg_schema: str, ground: Ground
) -> None:
    database = f"iceberg.{iceberg_schema}"
    # Of the last, a table of Hive's: Spark enters it in a form of its own where the first one is refused.
    statements = (
        f"CREATE TABLE {database}.o (a INT); ALTER TABLE {database}.o RENAME TO {database}.o_old;"
        f"CREATE TABLE {database}.o (a INT);"
        f"CREATE TABLE {ground.a}.mine (a INT) USING parquet LOCATION '{folder_of(ground, 't')}'"
    )
    with pytest.raises(AssertionError):
        on_a_client(machines, cluster).spark(statements)
    with ground.client() as client, pytest.raises(NoSuchObjectException):
        client.get_table(ground.a, "mine")
    assert len(set(places(ground, iceberg_schema))) == 2
    trino.sql(f"INSERT INTO {database}.o VALUES 2")  # noqa: S608 -- names of the test
    trino.sql(f"DROP TABLE {database}.o_old")
    assert trino.value(f"SELECT a FROM {database}.o") == 2  # noqa: S608 -- names of the test


def test_pyiceberg_gives_the_next_table_another_folder(
    machines: Machines, cluster: Inventory, trino: Trino, iceberg_schema: str, ground: Ground
) -> None:
    said = on_a_client(machines, cluster).runs(
        f"{CONNECT}\n"
        "from pyiceberg.schema import Schema\n"
        "schema = Schema()\n"
        f"old = lake.iceberg.create_table('{iceberg_schema}.o', schema)\n"
        f"lake.iceberg.rename_table('{iceberg_schema}.o', '{iceberg_schema}.o_old')\n"
        "try:\n"
        f"    lake.iceberg.create_table('{iceberg_schema}.o', schema, location=old.location())\n"
        "except Exception as error:\n"
        "    print(error)\n"
        f"lake.iceberg.create_table('{iceberg_schema}.o', schema)\n"
    )
    assert f"is the location of table {iceberg_schema}.o_old" in said
    assert len(set(places(ground, iceberg_schema))) == 2
    assert trino.value(f'SELECT count(*) FROM iceberg.{iceberg_schema}."o$snapshots"') == 0  # noqa: S608 -- names of the test
