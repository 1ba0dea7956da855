"""A dropped table is there again with its rows: HDFS has a snapshot with each commit of the history."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from io import BytesIO
from threading import Event
from typing import Any

import pytest

from lakehouse.catalog import snapshots
from lakehouse.catalog.hosted.warehouse import Warehouse
from lakehouse.errors import LakehouseError
from lakehouse.model.inventory import Inventory
from plugins.module_utils.lakehouse.webhdfs import WebHdfs
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.trino import Trino
from suites.testbed.waiting import wait_for
from tests.cluster import looking
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

FILES, SECONDS = 1_000, 60
REFUSED = 3


@pytest.fixture
def flink(cluster: Inventory) -> Iterator[Flink]:
    [host] = cluster.group("flink_jobmanager")
    with closing(
        Flink.connect(f"http://{host.address}:{host.variables['lakehouse_ports']['flink_sql_gateway']}")
    ) as made:
        yield made


@pytest.fixture
def client(cluster: Inventory, machines: Machines) -> Machine:
    """A host of the Python clients."""
    return machines[cluster.group("clients")[0].name]


def spark(verb: Verb, *statements: str) -> None:
    done = looking.look(
        "sql", verb.path, "--engine", "spark", "-f", "-", seconds=240, given=";\n".join(statements)
    )
    assert done.code == 0, done.err


def restored(verb: Verb, *words: str) -> Any:
    return verb.json("catalog", "restore", *words, "--yes")


def taken(verb: Verb) -> int:
    """Return what deleted files take in HDFS, as status shows it."""
    said = json.loads(verb.run("status", "--json").stdout)
    return int(said["cluster"]["snapshots"]["value"])


def test_what_each_engine_has_dropped_is_there_again(
    verb: Verb, trino: Trino, schema: str, flink: Flink, client: Machine
) -> None:
    """Three formats, by each engine, with purge where it has the word; PyIceberg leaves the files."""
    spark(
        verb,
        f"CREATE TABLE iceberg.{schema}.by_spark USING iceberg AS SELECT id FROM range(100)",
        f"DELETE FROM iceberg.{schema}.by_spark WHERE id < 10",
        f"CREATE TABLE {schema}.log USING delta PARTITIONED BY (part) AS"
        " SELECT id, id % 3 AS part FROM range(90)",
        f"DELETE FROM {schema}.log WHERE id = 7",
        f"CREATE TABLE {schema}.rows STORED AS PARQUET AS SELECT id FROM range(50)",
    )
    trino.sql(f"create table iceberg.{schema}.by_trino as select * from tpch.tiny.nation")
    trino.sql(f"delete from iceberg.{schema}.by_trino where nationkey = 3")
    trino.sql(
        f"create table hive.{schema}.days with (partitioned_by = array['regionkey'])"
        " as select name, regionkey from tpch.tiny.nation"
    )
    trino.sql(f"create table iceberg.{schema}.by_flink as select 1 id")
    trino.sql(f"create table iceberg.{schema}.by_client as select 2 id")
    catalogs = {"log": "delta", "rows": "hive", "days": "hive"}
    tables = ("by_spark", "log", "rows", "by_trino", "days", "by_flink", "by_client")
    query = {
        name: f"select * from {catalogs.get(name, 'iceberg')}.{schema}.{name} order by 1" for name in tables
    }
    before = {name: trino.sql(query[name]) for name in tables}
    commit = verb.committed()

    spark(
        verb,
        f"DROP TABLE iceberg.{schema}.by_spark PURGE",
        f"DROP TABLE {schema}.log",
        f"DROP TABLE {schema}.rows PURGE",
    )
    trino.sql(f"drop table iceberg.{schema}.by_trino")
    trino.sql(f"drop table hive.{schema}.days")
    flink.run("USE CATALOG iceberg")
    flink.run(f"DROP TABLE {schema}.by_flink")
    program = f"lake = lakehouse_clients.connect(); lake.iceberg.drop_table('{schema}.by_client')"
    person = client.variable("lakehouse_users")["spark"]
    client.run("runuser -u %s -- lakehouse-python -c %s", person, f"import lakehouse_clients; {program}")
    assert trino.sql(f"show tables in hive.{schema}") == []

    said = restored(verb, commit, schema)
    assert {one["deed"] for one in said["plan"]} == {"make"}, said
    assert any("dropped files are back" in fact for fact in said["facts"]), said
    assert {name: trino.sql(query[name]) for name in tables} == before
    # The metastore keeps this word of Iceberg's to itself when a table is made.
    changes = json.loads(verb.run("catalog", "diff", commit, "--json").stdout)["changes"]
    assert {one["field"] for one in changes} <= {"parameter DO_NOT_UPDATE_STATS"}, changes
    # They are tables as before: engines write into them.
    trino.sql(f"insert into iceberg.{schema}.by_spark values 1000")
    spark(verb, f"INSERT INTO {schema}.log VALUES (1000, 1)")
    assert trino.value(f"select count(*) from delta.{schema}.log") == 90
    spark(verb, f"DROP TABLE {schema}.log", f"DROP TABLE {schema}.rows")


@pytest.fixture
def many(trino: Trino, schema: str, hdfs: WebHdfs) -> str:
    """A table of Hive with so many files of a row each."""
    trino.sql(f"create table hive.{schema}.many (a integer) with (format = 'TEXTFILE')")
    folder = f"{_folder(trino, schema)}/many"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: hdfs.write(f"{folder}/{one}", BytesIO(b"1\n"), 2), range(FILES)))
    return f"{schema}.many"


def _folder(trino: Trino, schema: str) -> str:
    """Return the path of a database in HDFS."""
    [[shown]] = trino.sql(f"show create schema hive.{schema}")
    return "/" + str(shown).partition("hdfs://")[2].partition("'")[0].partition("/")[2]


def test_a_table_of_many_files_is_back_soon_while_others_write(
    verb: Verb, trino: Trino, schema: str, many: str, record_property: Any
) -> None:
    trino.sql(f"create table iceberg.{schema}.other (a integer)")
    before = taken(verb)
    commit = verb.committed()
    trino.sql(f"drop table hive.{many}")
    # A snapshot takes what was deleted since: two bytes a file, with each replica.
    assert taken(verb) - before == pytest.approx(2 * 3 * FILES, rel=0.1)
    done, written = Event(), []

    def write() -> None:
        while not done.is_set():
            trino.sql(f"insert into iceberg.{schema}.other values 1")
            written.append(1)

    with ThreadPoolExecutor(1) as beside:
        writer = beside.submit(write)
        began = time.monotonic()
        try:
            said = restored(verb, commit, many)
        finally:
            done.set()
        took = time.monotonic() - began
        writer.result()
    assert f"{FILES} dropped files are back" in said["facts"], said
    assert trino.value(f"select count(*) from hive.{many}") == FILES
    assert trino.value(f"select count(*) from iceberg.{schema}.other") == len(written)
    record_property("note", f"{FILES} files in {took:.0f} s, {len(written)} commits of another meanwhile")
    assert took <= SECONDS


@pytest.fixture
def database(cluster: Inventory, machines: Machines) -> Machine:
    """The host of the history."""
    return machines[cluster.group("postgresql")[0].name]


def _interrupt(machine: Machine) -> None:
    machine.run("pkill -KILL -f 'lakehouse.catalog.hosted .* [b]ring' || true")


def owned(hdfs: WebHdfs, path: str) -> list[str]:
    """Return whose a folder is, and its mode."""
    status = hdfs.status(path)
    assert status
    return [str(status[key]) for key in ("owner", "group", "permission")]


def _staging(root: str) -> str:
    return f"{root}-undo"


def _newest(hdfs: WebHdfs, root: str) -> str:
    return str(snapshots.known(hdfs.names(f"{root}/.snapshot"))[-1])


def test_an_undo_that_is_killed_on_its_way_is_completed_by_resume(
    verb: Verb, trino: Trino, many: str, hdfs: WebHdfs, database: Machine
) -> None:
    """The command is killed, and the program that copies on the host."""
    schema, _, _ = many.partition(".")
    root = str(database.variable("lakehouse_root"))
    folder = f"{_folder(trino, schema)}/many"
    commit, before = verb.committed(), owned(hdfs, folder)
    trino.sql(f"drop table hive.{many}")
    above, _, name = folder.rpartition("/")
    with verb.started("catalog", "restore", commit, many, "--yes") as killed:
        copied = f"{_staging(root)}/{_newest(hdfs, root)}{folder.removeprefix(root)}"
        wait_for("some files", lambda: hdfs.names(copied), seconds=60)
        killed.kill()
    _interrupt(database)
    assert 0 < len(hdfs.names(copied)) < FILES
    # Nobody reads a table before it is whole, nor what its owner would not show.
    assert owned(hdfs, _staging(root)) == [hdfs.user, owned(hdfs, _staging(root))[1], "700"]
    assert name not in hdfs.names(above)
    last = verb.json("runs")["runs"][-1]
    said = verb.json("resume", last["run"], "--yes")
    assert said["outcome"] == "DONE", said
    assert trino.value(f"select count(*) from hive.{many}") == FILES
    assert len(hdfs.names(folder)) == FILES
    assert owned(hdfs, folder) == before
    assert hdfs.status(_staging(root)) is None


def test_a_table_has_another_name_now_or_its_snapshot_is_gone(
    verb: Verb, trino: Trino, schema: str, hdfs: WebHdfs, root: str
) -> None:
    trino.sql(f"create table hive.{schema}.t as select 1 a")
    trino.sql(f"create table iceberg.{schema}.ice as select 1 a")
    commit = verb.committed()
    trino.sql(f"drop table hive.{schema}.t")
    trino.sql(f"drop table iceberg.{schema}.ice")

    # Another table has its name and its folder: nothing is mixed with its rows.
    trino.sql(f"create table hive.{schema}.t as select 2 a")
    trino.sql(f"alter table hive.{schema}.t rename to {schema}.t2")
    trino.sql(f"create table hive.{schema}.t as select 3 a")
    assert "dropped" not in str(restored(verb, commit, f"{schema}.t")["facts"])
    assert trino.value(f"select a from hive.{schema}.t") == 3

    [*every] = snapshots.known(hdfs.names(f"{root}/.snapshot"))
    assert every
    for one in every:
        hdfs.call("DELETE", "DELETESNAPSHOT", root, snapshotname=str(one))
    refused = verb.run("catalog", "restore", commit, f"{schema}.ice", "--yes")
    assert refused.returncode == REFUSED, refused
    assert "no snapshot has it" in refused.stdout
    assert trino.sql(f"show tables in iceberg.{schema} like 'ice'") == []


@pytest.fixture
def warehouse(hdfs: WebHdfs) -> Iterator[tuple[Warehouse, str]]:
    """A folder of its own of which there may be snapshots, gone at the end."""
    path = f"/kit_undo_{secrets.token_hex(4)}"
    hdfs.call("PUT", "MKDIRS", path)
    hdfs.call("PUT", "ALLOWSNAPSHOT", path)
    yield Warehouse(hdfs, path), path
    for name in hdfs.names(f"{path}/.snapshot"):
        hdfs.call("DELETE", "DELETESNAPSHOT", path, snapshotname=name)
    hdfs.call("PUT", "DISALLOWSNAPSHOT", path)
    hdfs.call("DELETE", "DELETE", path, recursive="true")


def _write(hdfs: WebHdfs, root: str, *names: str) -> None:
    for name in names:
        hdfs.write(f"{root}/{name}", BytesIO(name.encode()), len(name.encode()), replication="2")


def _remove(hdfs: WebHdfs, *paths: str) -> None:
    for path in paths:
        hdfs.call("DELETE", "DELETE", path, recursive="true")


def test_only_what_is_lacking_comes_back_as_it_was(warehouse: tuple[Warehouse, str], hdfs: WebHdfs) -> None:
    own, root = warehouse
    _write(hdfs, root, "d/t/a", "d/t/ä b%20", "d/t/p=1/c", "d/t/closed", "d/other")
    hdfs.call("PUT", "SETOWNER", f"{root}/d/t/p=1", owner="ann", group="staff")
    for path, mode in {"d/t/p=1": "1750", "d/t/a": "640", "d/t/closed": "0", "d/t": "70"}.items():
        hdfs.call("PUT", "SETPERMISSION", f"{root}/{path}", permission=mode)
    lists = {
        # With a mask that is narrower than its entries.
        "a": "user::rw-,group::r--,mask::r--,other::---,user:eve:rw-",
        "p=1": "user::rwx,group::r-x,other::---,default:user::rwx,default:group::r-x,default:other::---",
    }
    for path, entries in lists.items():
        hdfs.call("PUT", "SETACL", f"{root}/d/t/{path}", aclspec=entries)

    def access(path: str) -> Any:
        return hdfs.call("GET", "GETACLSTATUS", f"{root}/d/t/{path}")["AclStatus"]

    before = {path: hdfs.status(f"{root}/d/t/{path}".rstrip("/")) for path in ("", "a", "ä b%20", "closed")}
    before |= {path: hdfs.status(f"{root}/d/t/{path}") for path in ("p=1", "p=1/c")}
    allowed = {path: access(path) for path in lists}
    made = str(own.make("a" * 40))
    assert own.lack(made, f"{root}/d/t", alone=True).entries == ()

    _remove(hdfs, f"{root}/d")
    lack = own.lack(made, f"{root}/d/t", alone=True)
    assert (len(lack.files), lack.whole) == (4, ["d"])
    assert lack.bytes == 2 * sum(one.length for one in lack.files)
    own.bring(made, lack)
    kept = ("owner", "group", "permission", "length", "replication", "type")
    for path, status in before.items():
        now = hdfs.status(f"{root}/d/t/{path}".rstrip("/"))
        assert now
        assert status
        assert {key: now[key] for key in kept} == {key: status[key] for key in kept}, path
        assert status["type"] == "DIRECTORY" or now["modificationTime"] == status["modificationTime"]
    assert {path: access(path) for path in lists} == allowed
    assert hdfs.read(f"{root}/d/t/ä b%20").decode() == "d/t/ä b%20"
    assert hdfs.status(f"{root}/d/other") is None
    assert hdfs.status(_staging(root)) is None
    # A second time nothing is lacking.
    assert own.lack(made, f"{root}/d/t", alone=True).entries == ()

    hdfs.write(f"{root}/d/t/new", BytesIO(b"1"), 1)
    assert own.lack(made, f"{root}/d/t", alone=True).stranger == f"{root}/d/t/new"
    assert own.lack(made, f"{root}/d/t", alone=False).stranger == ""
    hdfs.write(f"{root}/d/t/a", BytesIO(b"other"), 5)
    assert own.lack(made, f"{root}/d/t", alone=False).stranger == f"{root}/d/t/a"


def test_what_is_partly_there_is_completed(warehouse: tuple[Warehouse, str], hdfs: WebHdfs) -> None:
    """A table whose folder was left, with and without some of its files."""
    own, root = warehouse
    files = ["t/metadata/1.metadata.json", "t/metadata/m.avro", "t/data/1", "t/_delta_log/0.json", "t/rows"]
    _write(hdfs, root, *files)
    made = str(own.make("a" * 40))
    for gone in (["t/data"], ["t/_delta_log", "t/rows"], ["t/metadata/1.metadata.json", "t/data"]):
        _remove(hdfs, *(f"{root}/{path}" for path in gone))
        lack = own.lack(made, f"{root}/t", alone=True)
        assert len(lack.files) == len(gone)
        own.bring(made, lack)
        assert own.lack(made, f"{root}/t", alone=True).entries == ()
        assert [hdfs.read(f"{root}/{path}").decode() for path in files] == files


def test_a_place_that_somebody_has_taken_meanwhile_is_left_as_it_is(
    warehouse: tuple[Warehouse, str], hdfs: WebHdfs
) -> None:
    own, root = warehouse
    _write(hdfs, root, "t/a", "u/a", "u/b")
    made = str(own.make("a" * 40))
    _remove(hdfs, f"{root}/t", f"{root}/u/a")
    lacks = [own.lack(made, f"{root}/{name}", alone=True) for name in ("t", "u")]
    hdfs.call("PUT", "MKDIRS", f"{root}/t")
    hdfs.write(f"{root}/u/a", BytesIO(b"new"), 3)
    for lack in lacks:
        with pytest.raises(LakehouseError, match=r"^HDFS: RENAME .*(exist|empty)"):
            own.bring(made, lack)
    assert (hdfs.names(f"{root}/t"), hdfs.read(f"{root}/u/a")) == ([], b"new")


def test_copies_are_made_where_the_superuser_alone_may_write(
    warehouse: tuple[Warehouse, str], hdfs: WebHdfs
) -> None:
    own, root = warehouse
    _write(hdfs, root, "t/a", "t/b")
    made = str(own.make("a" * 40))
    lack = own.lack(made, f"{root}/t", alone=True)
    assert lack.entries == ()
    _remove(hdfs, f"{root}/t")
    lack = own.lack(made, f"{root}/t", alone=True)
    hdfs.call("PUT", "MKDIRS", _staging(root))
    hdfs.call("PUT", "SETOWNER", _staging(root), owner="eve", group="eve")
    with pytest.raises(
        LakehouseError, match=f"^HDFS: {_staging(root)} is not {hdfs.user}'s alone: remove it"
    ):
        own.bring(made, lack)
    _remove(hdfs, _staging(root))
    # What another copy has left goes.
    hdfs.call("PUT", "MKDIRS", _staging(root), permission="700")
    hdfs.write(f"{_staging(root)}/history-20260102T030405Z-aaaaaaaaaaaa/t/a", BytesIO(b"old"), 3)
    own.bring(made, lack)
    assert hdfs.read(f"{root}/t/a") == b"t/a"
    assert hdfs.status(_staging(root)) is None


def test_no_room_is_a_line_and_the_next_run_completes_it(
    warehouse: tuple[Warehouse, str], hdfs: WebHdfs, cluster: Inventory, machines: Machines
) -> None:
    own, root = warehouse
    _write(hdfs, root, "d/t/a", "d/t/b")
    made = str(own.make("a" * 40))
    _remove(hdfs, f"{root}/d/t")
    namenode = machines[cluster.group("namenode")[0].name]
    admin = f"runuser -u {hdfs.user} -- hdfs dfsadmin"
    namenode.run(f"{admin} -setSpaceQuota 1 {root}")
    try:
        with pytest.raises(LakehouseError, match=r"^HDFS: .*quota"):
            own.bring(made, own.lack(made, f"{root}/d/t", alone=True))
        assert hdfs.names(f"{root}/d") == []
    finally:
        namenode.run(f"{admin} -clrSpaceQuota {root}")
    own.bring(made, own.lack(made, f"{root}/d/t", alone=True))
    assert sorted(hdfs.names(f"{root}/d/t")) == ["a", "b"]


def test_snapshots_go_when_none_are_wanted_and_those_of_others_stay(
    warehouse: tuple[Warehouse, str], hdfs: WebHdfs
) -> None:
    own, root = warehouse
    hdfs.call("PUT", "CREATESNAPSHOT", root, snapshotname="20260102T030405Z")
    first = own.make("a" * 40)
    assert own.make("a" * 40) == first or len(own.snapshots()) == 2
    own.forget(hours=1, days=0)
    assert first in own.snapshots()
    own.forget(hours=0, days=0)
    assert own.snapshots() == []
    assert hdfs.names(f"{root}/.snapshot") == ["20260102T030405Z"]
    with pytest.raises(LakehouseError, match="is gone"):
        own.lack(str(first), f"{root}/t", alone=True)
    with pytest.raises(LakehouseError, match=f"is not below {root}"):
        own.lack("history-20260102T030405Z-aaaaaaaaaaaa", "/elsewhere/t", alone=True)


def test_a_folder_of_which_nobody_may_make_snapshots_is_a_line(hdfs: WebHdfs) -> None:
    with pytest.raises(LakehouseError, match=r"^HDFS: CREATESNAPSHOT /user: .*snapshottable"):
        Warehouse(hdfs, "/user").make("a" * 40)
