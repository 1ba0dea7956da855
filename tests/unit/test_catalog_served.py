"""A commit of a real metastore's database is a metastore to its clients, and changes for none of them."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hive_metastore import ThriftHiveMetastore
from hive_metastore import ttypes as hive
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import NoSuchTableError
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lakehouse import cli
from lakehouse.bind_address import LOOPBACK
from lakehouse.catalog import diff, source
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Batch, Overlay
from lakehouse.catalog.served.handler import ANSWERED, METHODS, UNSUPPORTED, Handler, refused, waits
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.served.server import Server
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Entry, Store
from lakehouse.metastore import Metastore, catalog_reader, model
from lakehouse.metastore.catalog_reader import CommitCalls
from lakehouse.run import ROOT
from tests.unit import metastore_database, patience

KINDS = Path(__file__).with_name("metastore_kinds.sql").read_text(encoding="utf-8")
# Python's bindings cannot read a map whose keys are lists; Java's can.
READABLE = 'DELETE FROM "SKEWED_COL_VALUE_LOC_MAP"'
TRIPS = "hdfs://lake/warehouse/sales.db/trips"
REFUSED = tuple(sorted(set(METHODS) - ANSWERED.keys()))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A repository with one commit of one of each kind."""
    path = tmp_path_factory.mktemp("served") / "history.git"
    with metastore_database.server() as database, closing(Store.made(path)) as store:
        database.run(KINDS + READABLE)

        @contextmanager
        def ask(script: str) -> Iterator[Iterator[bytes]]:
            with closing(database.lines(script)) as lines:
                yield lines

        batch = Batch(store)
        built = source.read(ask, batch, None, lambda _: {TRIPS: "12"})
        batch.flush()
        store.record(built.tree, None, "a <a@example.org>", 1_800_000_000, "all kinds\n\nEvent: none\n")
        yield path


class Served:
    """A server of the commit, and what it said of itself."""

    def __init__(self, server: Server, entry: Entry, reports: list[str]) -> None:
        self.server, self.entry, self.reports = server, entry, reports
        self.port = int(server.server_address[1])

    @contextmanager
    def connected(self) -> Iterator[Any]:
        transport = TBufferedTransport(TSocket(LOOPBACK, self.port))
        transport.open()
        with closing(transport):
            yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))


@pytest.fixture(scope="module")
def served(history: Path) -> Iterator[Served]:
    reports: list[str] = []
    with closing(Store(history)) as store:
        entry = store.resolve("HEAD")
        asked = Request(
            SnapshotReader(store, entry.tree),
            entry,
            lambda name, field: reports.append(f"{name}: {field}"),
            7,
        )
        handler = Handler(asked, reports.append)
        with Server(LOOPBACK, 0, lambda: handler) as server:
            thread = Thread(target=server.serve_forever)
            thread.start()
            yield Served(server, entry, reports)
            server.shutdown()
            thread.join()


@pytest.fixture
def client(served: Served) -> Iterator[Any]:
    # A class would do as well; no error of these bindings is thrown into it while a test expects them.
    transport = TBufferedTransport(TSocket(LOOPBACK, served.port))
    transport.open()
    yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    transport.close()


def test_catalogs_databases_and_functions_are_as_they_were(client: Any) -> None:
    assert client.get_catalogs().names == ["hive", "other"]
    assert client.get_catalog(hive.GetCatalogRequest("other")).catalog.locationUri == "hdfs://lake/other"
    assert client.get_all_databases() == ["default", "sales"]
    assert client.get_databases("s*|x") == ["sales"]
    # As a client of Hive 3 names a catalog with its database.
    assert client.get_databases("@other#*") == client.get_databases("@other#!") == ["far"]
    sales = client.get_database("SALES")
    assert (sales.name, sales.description, sales.locationUri, sales.ownerName) == (
        "sales", "what is sold", "hdfs://lake/warehouse/sales.db", "ann",
    )  # fmt: skip
    assert sales.parameters == {"owner-team": "shop"}
    assert client.get_database_req(hive.GetDatabaseRequest("far", "other")).ownerName == "bob"
    with pytest.raises(hive.NoSuchObjectException):
        client.get_database("lost")
    assert client.get_functions("sales", "*") == ["mask_it"]
    [mask] = client.get_all_functions().functions
    assert mask == client.get_function("sales", "mask_it")
    assert (mask.className, mask.ownerName, [one.uri for one in mask.resourceUris]) == (
        "org.example.Mask", "ann", ["hdfs://lake/jars/mask.jar"],
    )  # fmt: skip


def test_tables_of_every_kind_are_as_they_were(client: Any) -> None:
    assert client.get_all_tables("sales") == ["ice", "orders", "seen", "trips"]
    assert client.get_tables("sales", "*s*") == ["orders", "seen", "trips"]
    assert client.get_tables_by_type("sales", "*", "VIRTUAL_VIEW") == ["seen"]
    assert client.get_all_tables("lost") == []
    told = {(one.tableName, one.tableType, one.comments) for one in client.get_table_meta("*", "*", [])}
    assert ("orders", "EXTERNAL_TABLE", "zürich ☃") in told
    assert len(told) == 4

    orders = client.get_table("sales", "Orders")
    assert [(one.name, one.type, one.comment) for one in orders.sd.cols] == [
        ("id", "bigint", "which"), ("city", "string", None), ("spot", "struct<x:double,y:double>", None),
    ]  # fmt: skip
    assert [one.name for one in orders.partitionKeys] == ["ds", "hr"]
    serde = orders.sd.serdeInfo
    assert (serde.serializationLib, serde.parameters) == (
        "org.example.OrderSerde", {"field.delim": "\t", "back": "a\\b\\\\c"},
    )  # fmt: skip
    assert (orders.sd.numBuckets, orders.sd.bucketCols, [one.col for one in orders.sd.sortCols]) == (
        8, ["id"], ["city"],
    )  # fmt: skip
    assert (orders.sd.skewedInfo.skewedColValues, orders.sd.storedAsSubDirectories) == (
        [["Berlin"], ["Paris"]], True,
    )  # fmt: skip
    # With what engines write by themselves, which a commit keeps beside the rest.
    assert orders.parameters == {
        "EXTERNAL": "TRUE", "comment": "zürich ☃", "numFiles": "7", "spark.sql.statistics.totalSize": "70",
    }  # fmt: skip
    assert (orders.owner, orders.retention, orders.createTime) == ("ann", 5, 1700000010)

    view = client.get_table_req(hive.GetTableRequest("sales", "seen")).table
    assert (view.tableType, view.viewExpandedText) == ("VIRTUAL_VIEW", "SELECT `id` FROM `sales`.`orders`")
    ice, trips = client.get_table_objects_by_name("sales", ["ice", "trips", "lost"])
    assert ice.parameters["metadata_location"].endswith("00001-a.metadata.json")
    assert trips.sd.serdeInfo.parameters == {"path": TRIPS}
    wanted = hive.GetTablesRequest("far", ["plain"], catName="other")
    [plain] = client.get_table_objects_by_name_req(wanted).tables
    assert (plain.tableType, plain.sd.compressed, plain.lastAccessTime) == ("MANAGED_TABLE", True, 1700000099)
    assert (plain.creationMetadata.tablesUsed, plain.rewriteEnabled) == ({"sales.orders"}, True)
    assert [one.name for one in client.get_fields("sales", "orders")] == ["id", "city", "spot"]
    assert [one.name for one in client.get_schema("sales", "orders")][-2:] == ["ds", "hr"]
    with pytest.raises(hive.NoSuchObjectException, match=r"hive\.sales\.lost table not found"):
        client.get_table("sales", "lost")


def test_what_a_client_reads_is_the_document_again(served: Served, history: Path) -> None:
    """One model: what the database said, what the commit has, and what the metastore answers."""
    reports: list[str] = []

    def lost(name: str, field: str) -> None:
        reports.append(f"{name}: {field}")

    def told_elsewhere(said: Any) -> dict[str, Any]:
        # By other calls; the version of a Delta table by its log. Thrift does not name the catalog of a table
        # that a materialized view is made of, and here it is another one than the view's.
        beside = {"constraints", "privileges", "data", "materialized"}
        return {key: value for key, value in said.items() if key not in beside}

    with closing(Store(history)) as store, served.connected() as client:
        past = SnapshotReader(store, served.entry.tree)
        for database, names in (("sales", past.tables(Name("hive", "sales"))), ("@other#far", ["plain"])):
            found = model.database(client.get_database(database), lost)
            assert found.document == told_elsewhere(past.document(found.name))
            for name in names:
                one = model.table(client.get_table(database, name), lost)
                said = past.document(one.name) or {}
                assert told_elsewhere(one.document) == told_elsewhere(said), name
                assert one.format == said.get("data", {}).get("format", "view")
        for name in past.partitions(Name("hive", "sales", "orders")):
            part = model.partition(name, client.get_partition_by_name("sales", "orders", name), lost)
            assert part.document == told_elsewhere(past.partition(part.name))
    assert reports == []


def test_all_of_a_catalog_is_read_back_by_thrift(served: Served, history: Path) -> None:
    """What the interface cannot hold, or a client does not ask for, is all that differs."""
    with closing(Store(history)) as store:
        overlay = Overlay(store)
        with Metastore(served.server.place) as metastore:
            reading = catalog_reader.read(metastore, overlay)
        differences = [
            (str(change.name), change.field)
            for change in diff.changes(overlay, served.entry.tree, reading.tree)
        ]
        direct = catalog_reader.read(CommitCalls(store, served.entry.tree), overlay)
    assert differences == [
        # Owner and time of creation of a role.
        ("", "role analysts"),
        # A foreign key to another catalog.
        ("hive.sales.orders", "constraint fk_orders 1"),
        ("hive.sales.orders", "privilege DELETE on id to USER hal by ann"),
        ("hive.sales.orders/ds=2026-01-01/hr=00", "privilege UPDATE on city to USER finn by ann"),
        ("hive.sales.orders/ds=2026-01-01/hr=00", "privilege SELECT to USER eve by ann"),
        # The version of a Delta table, and the tables of another catalog in a materialized view.
        ("hive.sales.trips", "data"),
        ("other.far.plain", "materialized"),
    ]
    assert (reading.refused, reading.left_out) == ((), ())
    assert direct.tree == reading.tree


def test_partitions_are_found_in_every_way(client: Any) -> None:
    names = ["ds=2026-01-01/hr=00", "ds=2026-01-02/hr=a%3Db"]
    own = "sales", "orders"
    assert client.get_partition_names(*own, -1) == names
    assert client.get_partition_names(*own, 1) == names[:1]
    assert client.get_partition_names_ps(*own, ["2026-01-02"], -1) == names[1:]
    assert client.get_partition_names_ps(*own, ["", "00"], -1) == names[:1]
    every = client.get_partitions(*own, -1)
    assert [one.values for one in every] == [["2026-01-01", "00"], ["2026-01-02", "a=b"]]
    assert every[0].parameters == {"why": "because", "numRows": "1000"}
    assert (every[0].sd.inputFormat, every[0].sd.location) == (
        "org.example.DayIn", "hdfs://lake/warehouse/sales.db/orders/ds=2026-01-01/hr=00",
    )  # fmt: skip
    assert [one.name for one in every[0].sd.cols] == ["id"]
    assert client.get_partition(*own, ["2026-01-02", "a=b"]) == every[1]
    assert client.get_partition_by_name(*own, names[1]) == every[1]
    assert client.get_partitions_by_names(*own, [names[1], "ds=1/hr=2"]) == [every[1]]
    request = hive.GetPartitionsByNamesRequest(*own, names)
    assert client.get_partitions_by_names_req(request).partitions == every
    assert client.get_partitions_ps_with_auth(*own, ["2026-01-01"], -1, "eve", []) == every[:1]
    assert client.get_partitions_by_filter(*own, 'ds > "2026-01-01" and hr like ".*=b"', -1) == every[1:]
    assert client.get_num_partitions_by_filter(*own, "ds = '2026-01-01' or hr = 'a=b'") == 2
    assert client.partition_name_to_spec(names[1]) == {"ds": "2026-01-02", "hr": "a=b"}
    with pytest.raises(hive.NoSuchObjectException, match=r"orders/ds=2026-01-03/hr=1 partition not found"):
        client.get_partition(*own, ["2026-01-03", "1"])
    with pytest.raises(hive.MetaException, match="city is no partition key"):
        client.get_partitions_by_filter(*own, "city = 'Rome'", -1)
    with pytest.raises(hive.MetaException, match="cannot be asked with a serialized expression"):
        client.get_partitions_by_expr(hive.PartitionsByExprRequest(*own, b"\x01"))


def test_statistics_constraints_and_access_are_as_they_were(client: Any) -> None:
    own = "sales", "orders"
    found = client.get_table_column_statistics(*own, "city")
    assert (found.statsDesc.lastAnalyzed, found.statsObj[0].statsData.stringStats.numNulls) == (1700000034, 3)
    request = hive.TableStatsRequest(*own, ["id", "city"])
    assert [one.colName for one in client.get_table_statistics_req(request).tableStats] == ["city"]
    part = "ds=2026-01-01/hr=00"
    asked = hive.PartitionsStatsRequest(*own, ["city"], [part, "ds=2026-01-02/hr=a%3Db"])
    assert client.get_partitions_statistics_req(asked).partStats.keys() == {part}
    with pytest.raises(hive.NoSuchObjectException, match="no statistics of column id"):
        client.get_table_column_statistics(*own, "id")

    [key] = client.get_primary_keys(hive.PrimaryKeysRequest("far", "plain", catName="other")).primaryKeys
    assert (key.column_name, key.pk_name, key.enable_cstr, key.rely_cstr) == ("k", "pk_plain", True, False)
    [key] = client.get_foreign_keys(hive.ForeignKeysRequest(None, None, *own)).foreignKeys
    assert (key.fkcolumn_name, key.pktable_name, key.update_rule, key.delete_rule) == ("ds", "plain", 2, 3)
    wanted = hive.DefaultConstraintsRequest("hive", *own)
    [default] = client.get_default_constraints(wanted).defaultConstraints
    assert (default.column_name, default.default_value) == ("city", "'Rome'")
    assert (
        client.get_not_null_constraints(hive.NotNullConstraintsRequest("hive", *own)).notNullConstraints == []
    )

    assert client.get_role_names() == ["analysts"]
    assert [one.roleName for one in client.list_roles("dora", hive.PrincipalType.USER)] == ["analysts"]
    here = hive.HiveObjectRef(hive.HiveObjectType.TABLE, *own, [], None)
    [grant] = client.list_privileges("gus", hive.PrincipalType.USER, here)
    assert (grant.grantInfo.privilege, grant.authorizer) == ("INSERT", "SQL")
    here = hive.HiveObjectRef(hive.HiveObjectType.PARTITION, *own, ["2026-01-01", "00"], None)
    assert [one.principalName for one in client.list_privileges(None, None, here)] == ["eve"]


def test_a_client_asks_about_the_server_and_says_goodbye(served: Served, client: Any) -> None:
    assert client.set_ugi("ann", ["staff"]) == ["staff"]
    assert client.getMetaConf("hive.metastore.try.direct.sql") == "true"
    assert client.get_config_value("hive.exec.x", "50") == "50"
    assert client.get_current_notificationEventId().eventId == 0
    assert (client.getStatus(), client.getVersion(), client.aliveSince()) == (2, "3.0", 7)
    assert client.getStatusDetails() == f"serves commit {served.entry.id} read-only"
    # A client of Hive means itself by it.
    client.shutdown()
    assert client.get_all_databases()


def test_what_thrift_has_no_place_for_is_told(history: Path) -> None:
    lost: list[str] = []
    with closing(Store(history)) as store:
        entry = store.resolve("HEAD")
        past = SnapshotReader(store, entry.tree)
        handler: Any = Handler(
            Request(past, entry, lambda *words: lost.append(": ".join(words))), lost.append
        )
        for database in ("default", "sales", "@other#far"):
            handler.get_database(database)
            for name in handler.get_all_tables(database):
                handler.get_table(database, name)
                handler.get_partitions(database, name, -1)
        handler.get_all_functions()
        assert lost == []
        handler.get_foreign_keys(hive.ForeignKeysRequest(None, None, "sales", "orders"))
        handler.get_table_column_statistics("sales", "orders", "city")
    assert lost == [
        "hive.sales.orders constraint fk_orders: references of the catalog other",
        "hive.sales.orders statistics of city: BIG_DECIMAL_LOW_VALUE",
        "hive.sales.orders statistics of city: DOUBLE_LOW_VALUE",
    ]


def test_what_is_no_answer_changes_something_or_is_of_nobody_here() -> None:
    """A developer who adds a call to the interface has to look at it: it is refused until then."""
    changing = {
        method
        for method in METHODS
        if method.startswith(("create", "alter", "drop", "add", "append", "grant"))
    }
    assert changing <= set(REFUSED)
    assert not {method for method in ANSWERED if not method.startswith(("get", "list", "partition_name"))} - {
        "lock", "check_lock", "unlock", "heartbeat", "show_locks", "set_ugi", "shutdown", "aliveSince",
    }  # fmt: skip
    assert len(ANSWERED) + len(REFUSED) == len(METHODS)


@pytest.mark.parametrize("method", REFUSED)
def test_every_other_call_is_refused_in_one_sentence(served: Served, client: Any, method: str) -> None:
    arguments = inspect.signature(getattr(ThriftHiveMetastore.Iface, method)).parameters
    call = getattr(client, method)
    if not waits(method):
        call()
    else:
        with pytest.raises((hive.MetaException, TApplicationException)) as refusal:
            call(*[None] * (len(arguments) - 1))
        assert refusal.value.message == refused(served.entry, method)
    # The connection is as good as before.
    assert client.get_all_databases() == ["default", "sales"]


def test_a_reading_that_is_not_supported_is_no_change_and_is_on_the_page(served: Served) -> None:
    assert refused(served.entry, "drop_table").endswith("read-only; drop_table is refused")
    assert refused(served.entry, "get_lock_materialization_rebuild").endswith("is refused")
    assert refused(served.entry, "get_open_txns").endswith("; it does not support reading by get_open_txns")
    page = (ROOT / "docs" / "catalog-history.md").read_text(encoding="utf-8")
    _, _, section = page.partition("### Unsupported readings")
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    assert {word for row in rows for word in re.findall(r"`(\w+)`", row)} == UNSUPPORTED


def test_pyiceberg_reads_names_and_is_refused_a_change(served: Served) -> None:
    catalog = HiveCatalog("past", uri=f"thrift://{LOOPBACK}:{served.port}")
    assert catalog.list_namespaces() == [("default",), ("sales",)]
    assert catalog.list_tables("sales") == [("sales", "ice")]
    assert catalog.load_namespace_properties("sales")["location"] == "hdfs://lake/warehouse/sales.db"
    assert catalog.table_exists("sales.lost") is False
    with pytest.raises(NoSuchTableError):
        catalog.load_table("sales.lost")
    with pytest.raises(hive.MetaException, match="create_database is refused"):
        catalog.create_namespace("more")


def test_many_clients_at_once_get_their_own_answers(served: Served) -> None:
    def read(number: int) -> set[str]:
        name = ("ice", "orders", "seen", "trips")[number % 4]
        with served.connected() as client:
            return {client.get_table("sales", name).tableName for _ in range(20)} ^ {name}

    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(read, range(64))) == [set()] * 64


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 64, b"\x80\x01\x00\x01\x7f\xff\xff\xff"]
)
def test_who_speaks_something_else_is_left_alone(served: Served, client: Any, sent: bytes) -> None:
    with socket.create_connection((LOOPBACK, served.port), timeout=patience.SECONDS) as stranger:
        stranger.sendall(sent)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(100) == b""
    assert client.get_all_databases()


def test_an_object_that_is_damaged_is_one_sentence(history: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.git"
    shutil.copytree(history, path)
    reports: list[str] = []
    with closing(Store(path)) as store:
        entry = store.resolve("HEAD")
        past = SnapshotReader(store, entry.tree)
        handler: Any = Handler(Request(past, entry, lambda *_: None), reports.append)
        # Before the commit's first object of a table is read.
        [number] = {
            store.tree(store.tree(folder)["orders"])["table.json"] for folder in tables(store, entry.tree)
        }
        (path / "objects" / number[:2] / number[2:]).unlink()
        with pytest.raises(hive.MetaException, match=f"object {number} is missing"):
            handler.get_table("sales", "orders")
        assert handler.get_table("sales", "ice").tableName == "ice"
    assert reports[0].startswith("get_table: ")
    assert reports[0].endswith("next: .venv/bin/lakehouse catalog fsck")


def tables(store: Store, tree: str) -> Iterator[str]:
    """Give the folder of the tables of `sales`."""
    number = store.tree(tree)["catalog"]
    for word in Name("hive", "sales").path:
        number = store.tree(number)[word]
    yield store.tree(number)["table"]


def test_a_person_serves_a_commit_and_ends_it(history: Path) -> None:
    argv = [sys.executable, "-m", "lakehouse.cli", "catalog", "serve", "HEAD", "--port", "0", "--json"]
    with subprocess.Popen(
        [*argv, "--store", str(history)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = json.loads(process.stdout.readline())
            listed = HiveCatalog("past", uri=said["uri"]).list_tables("sales")
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=patience.SECONDS)
    assert listed == [("sales", "ice")]
    assert (process.returncode, errors) == (128 + signal.SIGTERM, "")


@pytest.mark.parametrize(
    ("words", "code", "refusal"),
    [
        (["nothing"], 64, "error: nothing: no commit, branch or tag of"),
        (["HEAD~7"], 64, "error: HEAD~7: no more than 0 commits before HEAD"),
        (["HEAD", "--address", "192.0.2.1"], 2, "error: port 9084 of 192.0.2.1: Cannot assign"),
        (["HEAD", "--host", "here"], 64, "error: 'here' is no address; next: "),
    ],
)
def test_what_cannot_be_served_is_one_line(
    history: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, refusal: str
) -> None:
    assert cli.main(["catalog", "serve", *words, "--store", str(history)]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err.startswith(refusal)) == ("", 1, True), err


def test_a_port_in_use_is_one_line(history: Path, served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["catalog", "serve", "HEAD", "--port", str(served.port), "--store", str(history)]
    assert cli.main(words) == 2
    assert capsys.readouterr().err == (
        f"error: port {served.port} of {LOOPBACK}: Address already in use;"
        " next: .venv/bin/lakehouse catalog serve --port 0\n"
    )
