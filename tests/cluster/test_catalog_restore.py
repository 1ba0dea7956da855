"""`lakehouse catalog restore` of the cluster: what was dropped is there again; nothing else is touched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import (
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    FieldSchema,
    Function,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    ResourceUri,
    SkewedInfo,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
)

from lakehouse.catalog import hooks
from lakehouse.catalog.shared_files import SHARED
from lakehouse.clients import Files
from lakehouse.metastore import Metastore
from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Inventory
from suites.testbed.engines.trino import Trino
from tests.cluster.changing import Verb

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

# Of a constraint that is not checked, and optimizers believe.
FLAGS = {"enable_cstr": False, "validate_cstr": False, "rely_cstr": True}


@pytest.fixture
def tables(trino: Trino, schema: str) -> Iterator[str]:
    """An Iceberg table, and an external Hive table with two partitions: the files of both outlive a drop."""
    trino.sql(f"create table iceberg.{schema}.ice as select 1 a")
    trino.sql(
        f"create table hive.{schema}.days (a integer, ds varchar)"
        " with (partitioned_by = array['ds'], format = 'PARQUET')"
    )
    trino.sql(f"insert into hive.{schema}.days values (1, '1'), (2, '2')")
    yield schema
    trino.sql(f"drop table if exists hive.{schema}.days")


def restored(verb: Verb, *words: str) -> Any:
    return verb.json("catalog", "restore", *words, "--yes")


def test_what_was_dropped_is_there_again_and_a_second_time_nothing_is_done(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str
) -> None:
    commit = verb.committed(*store)
    # The files stay, as they do of an external table of Spark.
    trino.sql(f"call iceberg.system.unregister_table('{tables}', 'ice')")
    trino.sql(f"call hive.system.unregister_partition('{tables}', 'days', array['ds'], array['2'])")
    assert trino.value(f"select count(*) from hive.{tables}.days") == 1
    said = restored(verb, commit, tables, *store)
    assert {one["name"] for one in said["plan"]} == {f"hive.{tables}.ice", f"hive.{tables}.days/ds=2"}
    assert trino.value(f"select count(*) from iceberg.{tables}.ice") == 1
    assert trino.value(f"select count(*) from hive.{tables}.days") == 2
    same = verb.run("catalog", "diff", "--expect", commit, *store)
    assert same.returncode == 0, same.stdout
    again = restored(verb, commit, tables, *store)
    assert again["facts"] == ["there is nothing to do"]


def test_a_dropped_table_has_its_partitions_constraints_and_privileges_again(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str, metastore: Metastore
) -> None:
    named = {"table_db": tables, "table_name": "days", "column_name": "a", "catName": "hive"}
    key = SQLPrimaryKey(key_seq=1, pk_name=f"pk_{tables}", **named, **FLAGS)
    metastore.call("add_primary_key", AddPrimaryKeyRequest([key]))
    filled = SQLNotNullConstraint(nn_name=f"nn_{tables}", **named, **FLAGS)
    metastore.call("add_not_null_constraint", AddNotNullConstraintRequest([filled]))
    commit = verb.committed(*store)
    metastore.call("drop_table", tables, "days", False)
    said = restored(verb, commit, f"{tables}.days", *store)
    assert len(said["plan"]) == 3, said
    assert trino.value(f"select count(*) from hive.{tables}.days") == 2
    same = verb.run("catalog", "diff", "--expect", commit, *store)
    assert same.returncode == 0, same.stdout


def test_a_table_that_was_altered_is_as_it_was(
    verb: Verb, store: tuple[str, str], tables: str, metastore: Metastore
) -> None:
    commit = verb.committed(*store)
    there = metastore.call("get_table", tables, "days")
    there.sd.cols = [*there.sd.cols, FieldSchema("mistake", "string", "")]
    metastore.call("alter_table", tables, "days", there)
    days = HiveObjectRef(HiveObjectType.TABLE, tables, "days", [], None, "hive")
    grant = PrivilegeGrantInfo("select", 0, "ann", PrincipalType.USER, False)
    someone = HiveObjectPrivilege(days, "someone", PrincipalType.USER, grant, "SQL")
    metastore.call("grant_privileges", PrivilegeBag([someone]))
    said = restored(verb, commit, f"{tables}.days", *store)
    assert [one["deed"] for one in said["plan"]] == ["alter"], said
    same = verb.run("catalog", "diff", "--expect", commit, *store)
    assert same.returncode == 0, same.stdout


def test_a_change_that_is_reverted_on_a_branch_is_taken_back_alone(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str
) -> None:
    verb.committed(*store)
    trino.sql(f"alter table hive.{tables}.days add column mistake varchar")
    mistake = verb.committed(*store)
    trino.sql(f"insert into hive.{tables}.days values (3, null, '3')")
    verb.committed(*store)
    done = verb.run("catalog", "revert", mistake, "--into", "desired", *store, "--json")
    assert done.returncode == 0, done
    restored(verb, "desired", tables, *store)
    assert [name for name, *_ in trino.sql(f"describe hive.{tables}.days")] == ["a", "ds"]
    assert trino.value(f"select count(*) from hive.{tables}.days") == 3


def test_a_name_that_is_nowhere_is_no_success(verb: Verb, store: tuple[str, str], tables: str) -> None:
    commit = verb.committed(*store)
    for words in (("restore", commit, f"{tables}x", "--yes"), ("check", commit, f"{tables}.daysx")):
        refused = verb.run("catalog", *words, *store)
        assert refused.returncode == 64, refused
        assert words[2] in refused.stderr
    assert restored(verb, commit, tables.upper(), *store)["facts"] == ["there is nothing to do"]


def test_a_table_that_changes_after_the_plan_is_left_as_it_is(
    verb: Verb, store: tuple[str, str], tables: str, cluster: Inventory, metastore: Metastore
) -> None:
    commit = verb.committed(*store)
    there = metastore.call("get_table", tables, "days")
    there.parameters["mine"] = "1"
    metastore.call("alter_table", tables, "days", there)
    # Between plan and writing.
    hook = Path(store[1]) / "hooks" / hooks.PRE_RESTORE
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!{sys.executable}\n"
        "from lakehouse.model import inventory\n"
        "from lakehouse.clients import MetastoreSession\n"
        "from lakehouse.model import placement\n"
        f"with MetastoreSession(placement.read(inventory.load({str(cluster.path)!r}))) as metastore:\n"
        f"    there = metastore.call('get_table', {tables!r}, 'days')\n"
        "    there.parameters['mine'] = '2'\n"
        f"    metastore.call('alter_table', {tables!r}, 'days', there)\n",
        encoding="utf-8",
    )
    hook.chmod(0o700)
    refused = verb.run("catalog", "restore", commit, f"{tables}.days", *store, "--yes")
    assert refused.returncode == 3, refused
    assert f"hive.{tables}.days has changed since the plan was made" in refused.stdout
    assert metastore.call("get_table", tables, "days").parameters["mine"] == "2"


def test_what_was_counted_outlives_a_restore_of_a_table_with_its_partitions(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str, metastore: Metastore
) -> None:
    """The metastore itself writes into partitions when the columns of their table are changed."""
    trino.sql(f"analyze hive.{tables}.days")
    commit = verb.committed(*store)
    there = metastore.call("get_table", tables, "days")
    there.sd.cols = [*there.sd.cols, FieldSchema("mistake", "string", "")]
    metastore.call("alter_table", tables, "days", there)
    parts = metastore.call("get_partitions_by_names", tables, "days", ["ds=1", "ds=2"])
    for one in parts:
        one.sd.cols = there.sd.cols
        one.parameters["mine"] = "1"
    metastore.call("alter_partitions", tables, "days", parts)
    counted = metastore.call("get_partition_by_name", tables, "days", "ds=1").parameters["numRows"]
    said = restored(verb, commit, f"{tables}.days", *store)
    assert [one["deed"] for one in said["plan"]] == ["alter"] * 3, said
    assert metastore.call("get_partition_by_name", tables, "days", "ds=1").parameters["numRows"] == counted
    same = verb.run("catalog", "diff", "--expect", commit, *store)
    assert same.returncode == 0, same.stdout


def test_a_table_with_other_partition_keys_is_in_the_way_of_itself_alone(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str, metastore: Metastore
) -> None:
    commit = verb.committed(*store)
    there = metastore.call("get_table", tables, "days")
    metastore.call("drop_table", tables, "days", False)
    there.partitionKeys[0].name = "day"
    metastore.call("create_table", there)
    trino.sql(f"call iceberg.system.unregister_table('{tables}', 'ice')")
    said = restored(verb, commit, tables, *store)
    assert [one["name"] for one in said["plan"]] == [f"hive.{tables}.ice"], said
    assert "1 left alone" in said["facts"]
    assert trino.value(f"select count(*) from iceberg.{tables}.ice") == 1
    alone = verb.run("catalog", "restore", commit, f"{tables}.days/ds=1", *store, "--yes")
    assert alone.returncode == 3, alone
    assert "the metastore changes no partition keys (day): drop it first" in alone.stdout


def test_a_transactional_table_is_not_made_without_its_transactions(
    verb: Verb, store: tuple[str, str], tables: str, metastore: Metastore
) -> None:
    there = metastore.call("get_table", tables, "days")
    there.tableName, there.partitionKeys, there.sd.location = "acid", [], None
    there.tableType = "MANAGED_TABLE"
    # Of the other kind of them, the metastore of the kit takes none: it has no format of Hive's.
    there.parameters = {"transactional": "true", "transactional_properties": "insert_only"}
    metastore.call("create_table", there)
    commit = verb.committed(*store)
    metastore.call("drop_table", tables, "acid", False)
    refused = verb.run("catalog", "restore", commit, f"{tables}.acid", *store, "--yes")
    assert refused.returncode == 3, refused
    assert f"hive.{tables}.acid: it is transactional: " in refused.stdout.splitlines()[-1]


def test_a_function_has_its_files_again_and_what_cannot_be_taken_back_is_told(
    verb: Verb, store: tuple[str, str], tables: str, metastore: Metastore
) -> None:
    function = Function(
        "f", tables, "org.Udf", "ann", PrincipalType.USER, 0, 1, [ResourceUri(1, "hdfs://lake/a.jar")], "hive"
    )
    metastore.call("create_function", function)
    commit = verb.committed(*store)
    metastore.call("drop_function", tables, "f")
    function.resourceUris = [ResourceUri(1, "hdfs://lake/b.jar")]
    metastore.call("create_function", function)
    database = metastore.call("get_database", tables)
    database.description = "a mistake"
    metastore.call("alter_database", tables, database)
    done = verb.run("catalog", "restore", commit, tables, *store, "--yes")
    assert done.returncode == 0, done
    [jar] = metastore.call("get_function", tables, "f").resourceUris
    assert jar.uri == "hdfs://lake/a.jar"
    assert f"hive.{tables} no description: is not as in the commit" in done.stderr
    metastore.call("drop_function", tables, "f")


def test_a_foreign_key_without_its_table_is_told_and_the_child_is_there(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str, metastore: Metastore
) -> None:
    trino.sql(f"create table hive.{tables}.child (a integer) with (format = 'PARQUET')")
    trino.sql(f"insert into hive.{tables}.child values 1")
    key = SQLPrimaryKey(tables, "days", "a", 1, f"pk_{tables}", catName="hive", **FLAGS)
    metastore.call("add_primary_key", AddPrimaryKeyRequest([key]))
    refers = SQLForeignKey(
        tables, "days", "a", tables, "child", "a", 1, 0, 0, f"fk_{tables}", catName="hive", **FLAGS
    )
    metastore.call("add_foreign_key", AddForeignKeyRequest([refers]))
    commit = verb.committed(*store)
    for name in ("child", "days"):
        metastore.call("drop_table", tables, name, False)
    done = verb.run("catalog", "restore", commit, f"{tables}.child", *store, "--yes")
    assert done.returncode == 0, done
    assert f"hive.{tables}.child foreign key fk_{tables} (" in done.stderr
    assert trino.value(f"select count(*) from hive.{tables}.child") == 1
    trino.sql(f"drop table hive.{tables}.child")


def test_a_table_with_places_of_skewed_values_is_as_it_was(
    verb: Verb, store: tuple[str, str], tables: str, metastore: Metastore
) -> None:
    table = metastore.call("get_table", tables, "days")
    table.tableName, table.partitionKeys = "skewed", []
    table.sd.location = f"{table.sd.location}/ds=1"
    table.sd.skewedInfo = SkewedInfo(["a"], [["1"]], {("1",): f"{table.sd.location}/a=1"})
    table.tableType, table.parameters = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE", SHARED: "true"}
    metastore.call("create_table", table)
    commit = verb.committed(*store)
    there = metastore.call("get_table", tables, "skewed")
    there.parameters["mine"] = "1"
    metastore.call("alter_table", tables, "skewed", there)
    restored(verb, commit, f"{tables}.skewed", *store)
    same = verb.run("catalog", "diff", "--expect", commit, *store)
    assert same.returncode == 0, same.stdout
    metastore.call("drop_table", tables, "skewed", False)


def test_a_clone_is_another_database_on_the_same_files(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str, metastore: Metastore
) -> None:
    key = SQLPrimaryKey(tables, "days", "a", 1, f"pk_{tables}", catName="hive", **FLAGS)
    metastore.call("add_primary_key", AddPrimaryKeyRequest([key]))
    commit, other = verb.committed(*store), f"{tables}_dev"
    said = restored(verb, commit, tables, "--as", other, *store)
    names = {f"hive.{other}", f"hive.{other}.days", *(f"hive.{other}.days/ds={number}" for number in (1, 2))}
    assert {one["name"] for one in said["plan"]} == names
    assert "1 left alone" in said["facts"]
    assert trino.value(f"select count(*) from hive.{other}.days") == 2
    assert restored(verb, commit, tables, "--as", other, *store)["facts"] == ["there is nothing to do"]
    trino.sql(f"alter table hive.{other}.days add column tried varchar")
    assert [name for name, *_ in trino.sql(f"describe hive.{tables}.days")] == ["a", "ds"]
    trino.sql(f"drop table hive.{other}.days")
    metastore.call("drop_database", other, False, False)
    # Whoever drops the clone leaves the files.
    assert trino.value(f"select count(*) from hive.{tables}.days") == 2


def test_an_iceberg_table_that_is_there_is_not_moved_backwards(
    verb: Verb, store: tuple[str, str], trino: Trino, tables: str
) -> None:
    commit = verb.committed(*store)
    trino.sql(f"insert into iceberg.{tables}.ice values (2)")
    refused = verb.run("catalog", "restore", commit, f"{tables}.ice", *store, "--yes")
    assert refused.returncode == 3, refused
    assert "a table of iceberg that is there keeps its state" in refused.stdout.splitlines()[-1]
    assert trino.value(f"select count(*) from iceberg.{tables}.ice") == 2


def test_what_the_commit_does_not_have_leaves_only_if_asked_and_its_files_stay(
    verb: Verb, store: tuple[str, str], cluster: Inventory, trino: Trino, tables: str
) -> None:
    commit = verb.committed(*store)
    trino.sql(f"create table iceberg.{tables}.more as select 1 a")
    [metadata] = trino.sql(f'select file from iceberg.{tables}."more$metadata_log_entries"')[-1:]
    folder, _, file = str(metadata[0]).rpartition("/metadata/")
    assert restored(verb, commit, tables, *store)["facts"] == ["there is nothing to do"]
    words = ("catalog", "restore", commit, tables, "--drop", *store)
    unconfirmed = verb.run(*words, "--yes")
    assert unconfirmed.returncode == 4, unconfirmed
    assert "1 object leaves the catalog; files stay" in unconfirmed.stdout.splitlines()[-1]
    done = verb.run(*words, "--confirm", str(cluster.hosts[0].variables["lakehouse_cluster"]))
    assert done.returncode == 0, done
    assert ("more",) not in [tuple(row) for row in trino.sql(f"show tables from iceberg.{tables}")]
    trino.sql(f"call iceberg.system.register_table('{tables}', 'more', '{folder}', '{file}')")
    assert trino.value(f"select count(*) from iceberg.{tables}.more") == 1


def test_a_table_that_was_renamed_gets_no_twin_on_its_files(
    verb: Verb, store: tuple[str, str], cluster: Inventory, trino: Trino, tables: str
) -> None:
    commit = verb.committed(*store)
    trino.sql(f"alter table iceberg.{tables}.ice rename to iceberg.{tables}.renamed")
    refused = verb.run("catalog", "restore", commit, f"{tables}.ice", *store, "--yes")
    assert refused.returncode == 3, refused
    assert f"hive.{tables}.renamed uses its files" in refused.stdout.splitlines()[-1]
    name = str(cluster.hosts[0].variables["lakehouse_cluster"])
    said = verb.json("catalog", "restore", commit, tables, "--drop", *store, "--confirm", name)
    # The old entry goes first, and both mean the same files.
    assert [one["name"] for one in said["plan"]] == [f"hive.{tables}.renamed", f"hive.{tables}.ice"]
    assert trino.value(f"select count(*) from iceberg.{tables}.ice") == 1


def test_a_table_without_a_manifest_is_left_alone_and_others_come_back(
    verb: Verb, store: tuple[str, str], trino: Trino, metastore: Metastore, tables: str
) -> None:
    [[manifest]] = trino.sql(f'select path from iceberg.{tables}."ice$manifests"')
    commit = verb.committed(*store)
    for table in ("ice", "days"):
        metastore.call("drop_table", tables, table, False)
    hdfs = Files.of(placement.read(inventory.load(verb.path))).hdfs
    path = f"/{str(manifest).partition('://')[2].partition('/')[2]}"
    hdfs.call("DELETE", "DELETE", path)
    done = verb.run("catalog", "restore", commit, tables, *store, "--yes")
    assert done.returncode == 0, done
    assert f"! table hive.{tables}.ice: {manifest} is not there" in done.stderr + done.stdout
    assert trino.value(f"select count(*) from hive.{tables}.days") == 2
    lost = verb.run("catalog", "check", commit, tables, *store)
    assert (lost.returncode, f"hive.{tables}.ice: {manifest} is not there" in lost.stdout) == (1, True), lost
