"""The catalog of another metastore, read by Thrift: the documents of a commit, and no answer breaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hive_metastore import ttypes
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse import cli
from lakehouse.bind_address import LOOPBACK
from lakehouse.catalog import build, diff, documents
from lakehouse.catalog import text as screen
from lakehouse.catalog.bindings import access, objects
from lakehouse.catalog.bindings.constraints import constraints
from lakehouse.catalog.documents import Document, in_order
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Overlay
from lakehouse.catalog.served.handler import Handler
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.served.server import Server
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Entry, Store
from lakehouse.errors import LakehouseError
from lakehouse.metastore import (
    Metastore,
    MetastoreError,
    Options,
    catalog_reader,
    grants_and_constraints,
    model,
)
from lakehouse.metastore.catalog_reader import CommitCalls, Reading
from lakehouse.metastore.errors import UnsupportedError
from tests.unit import catalog_states as states
from tests.unit.catalog_states import Databases, days, iceberg, table
from tests.unit.metastore_fake import Catalog, Fake, dead
from tests.unit.metastore_garbage import GARBAGE, LISTS
from tests.unit.test_metastore_model import over_the_wire

TABLE = Name("hive", "sales", "orders")
STATE: Databases = {
    "empty": {},
    "sales": {
        "orders": table("id:bigint", "city:string", partitions=days(*range(1, 200))),
        "ice": iceberg(3, "id"),
        "odd/näme": table("a", parameters={"why": "because", "numRows": "9"}),
        "seen": table("a", type="VIRTUAL_VIEW", view="SELECT 1"),
    },
}
FUNCTIONS = {"mask": {"class": "org.example.Mask", "type": 1, "owner_type": "USER"}}

# Documents

WORDS = st.text("abcXYZ_ é☃/%'\n", max_size=8)
NAMES = st.text("abc_1", min_size=1, max_size=6)
NUMBERS = st.integers(1, 2**31 - 1)
PRINCIPALS = st.sampled_from(["USER", "ROLE", "GROUP"])


def document(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[Document]:
    """Give documents as a commit has them: without empty values."""
    return st.fixed_dictionaries(required, optional=optional).map(documents.without_nothing)


def granted(**more: Any) -> dict[str, Any]:
    return {"to_type": PRINCIPALS, "to": NAMES, "by": NAMES, "by_type": PRINCIPALS} | more


PRIVILEGES = document(
    granted(privilege=NAMES), column=NAMES, authorizer=NAMES, may_grant=st.just(1), created=NUMBERS
)
MEMBERS = document(
    {"name": NAMES, "type": PRINCIPALS, "by": NAMES, "by_type": PRINCIPALS},
    may_grant=st.just(1),
    created=NUMBERS,
)
FLAGS = st.integers(0, 7)
CONSTRAINTS = st.one_of(
    document({"name": NAMES, "position": NUMBERS, "column": NAMES}, type=st.just(2), flags=FLAGS),
    document(
        {"name": NAMES, "position": st.just(1), "column": NAMES, "type": st.sampled_from([3, 4, 5])},
        flags=FLAGS,
    ).flatmap(
        lambda row: st.just(row) if row["type"] == 3 else NAMES.map(lambda value: {**row, "value": value})
    ),
    document(
        {
            "name": NAMES,
            "position": NUMBERS,
            "column": NAMES,
            "type": st.just(1),
            "references": st.tuples(st.just("hive"), NAMES, NAMES, NAMES).map(list),
        },
        flags=FLAGS,
        on_update=NUMBERS,
        on_delete=NUMBERS,
    ),
)
FEW = settings(max_examples=50, deadline=None)


def unexpected(name: str, field: str) -> None:
    raise AssertionError(f"{name}: {field}")


@FEW
@given(document({}, description=WORDS, location=WORDS))
def test_a_catalog_makes_the_round(content: Document) -> None:
    read = model.catalog(over_the_wire(objects.catalog(Name("other"), content, unexpected)), unexpected)
    assert read == model.Described(Name("other"), content, {})


@FEW
@given(
    document(
        {"owner_type": PRINCIPALS, "type": st.just(1)},
        created=NUMBERS,
        owner=NAMES,
        resources=st.lists(st.tuples(st.integers(1, 3), WORDS).map(list), max_size=3),
        **{"class": WORDS},
    )
)
def test_a_function_makes_the_round(content: Document) -> None:
    name = Name("hive", "sales", function="f")
    read = model.function(over_the_wire(objects.function(name, content, unexpected)), unexpected)
    assert read == model.Described(name, content, {})


@FEW
@given(st.lists(CONSTRAINTS, max_size=5))
def test_constraints_make_the_round(rows: list[Document]) -> None:
    thrift = constraints(TABLE, {"constraints": rows}, unexpected)
    read = grants_and_constraints.constraints(thrift)
    assert in_order(read) == in_order(rows)
    restored = constraints(TABLE, {"constraints": read}, unexpected)
    assert restored == thrift


@FEW
@given(st.lists(PRIVILEGES, max_size=4))
def test_privileges_make_the_round(rows: list[Document]) -> None:
    thrift = list(access.privileges(TABLE, {"privileges": rows}, unexpected))
    read = grants_and_constraints.privileges(map(over_the_wire, thrift))
    assert read == rows
    assert list(access.privileges(TABLE, {"privileges": read}, unexpected)) == thrift


@FEW
@given(st.dictionaries(NAMES, st.lists(MEMBERS, min_size=1, max_size=3), max_size=3))
def test_roles_make_the_round(members: dict[str, list[Document]]) -> None:
    content = {"roles": [{"name": name, "members": rows} for name, rows in members.items()]}
    by_role: dict[str, list[Any]] = {name: [] for name in members}
    for grant in access.members(content, unexpected):
        by_role[grant.roleName].append(over_the_wire(grant))
    assert grants_and_constraints.roles(by_role) == content["roles"]


# A whole metastore


class Altered:
    """The calls of a commit, some of which have another answer, or raise an error."""

    def __init__(self, calls: catalog_reader.Calls, **answers: Any) -> None:
        self._calls, self._answers = calls, answers
        self.seen: list[str] = []

    def call(self, method: str, *arguments: Any) -> Any:
        self.seen.append(method)
        if method not in self._answers:
            return self._calls.call(method, *arguments)
        answer = self._answers[method]
        if isinstance(answer, BaseException):
            raise answer
        return (
            answer(lambda: self._calls.call(method, *arguments), *arguments) if callable(answer) else answer
        )


def lost(name: str) -> UnsupportedError:
    return UnsupportedError(f"thrift://old:9083 knows no {name}")


@pytest.fixture
def overlay() -> Overlay:
    return Overlay(None)


@pytest.fixture
def tree(overlay: Overlay) -> str:
    return states.tree(overlay, STATE, FUNCTIONS)


def normal(overlay: Overlay, tree: str) -> Reading:
    """Read a tree as its own metastore returns it."""
    return catalog_reader.read(CommitCalls(overlay, tree), overlay)


def differences(overlay: Overlay, before: str, after: str) -> list[str]:
    return [screen.change(change) for change in diff.changes(overlay, before, after)]


@contextmanager
def serving(reader: Any, tree: str) -> Iterator[str]:
    """Serve a tree; give the URI."""
    request = Request(SnapshotReader(reader, tree), Entry(tree, tree, (), "", 0, ""), lambda *_: None)
    handler = Handler(request, lambda _: None)
    with Server(LOOPBACK, 0, lambda: handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.place
        finally:
            server.shutdown()
            thread.join()


def test_a_served_catalog_is_read_over_a_socket_as_it_is(overlay: Overlay, tree: str) -> None:
    with serving(overlay, tree) as uri, Metastore(uri, Options(user="hdfs")) as metastore:
        reading = catalog_reader.read(metastore, overlay)
    # These states name no owner, and have two values where a read of a database has none.
    assert {line.partition(": ")[2] for line in differences(overlay, tree, reading.tree)} == {
        "owner_type: none -> USER",
        "parameter numRows: 9 -> none",
        "data: {} -> none",
    }
    assert reading.counts == {"databases": 2, "tables": 4, "partitions": 199, "functions": 2}
    assert (reading.left_out, reading.refused) == ((), ())
    # What is read again is the same, to the last byte.
    assert normal(overlay, reading.tree).tree == reading.tree == normal(overlay, tree).tree
    assert SnapshotReader(overlay, reading.tree).volatile(Name("hive", "sales", "odd/näme")) == {
        "parameters": {"numRows": "9"}
    }


def test_all_kinds_of_rows_are_read(overlay: Overlay) -> None:
    rows = [{"name": "pk", "position": 1, "column": "a", "flags": 4}]
    grants = [{"privilege": "SELECT", "to": "eve", "to_type": "USER", "by": "ann", "by_type": "USER"}]
    content = table("a", owner_type="ROLE", constraints=rows, privileges=grants)
    tree = states.tree(overlay, {"sales": {"orders": content}})
    reading = normal(overlay, tree)
    assert SnapshotReader(overlay, reading.tree).document(TABLE) == content.said
    assert differences(overlay, tree, reading.tree) == ["~ database hive.sales: owner_type: none -> USER"]


def test_a_table_that_is_dropped_meanwhile_is_skipped(overlay: Overlay, tree: str) -> None:
    calls = Altered(
        CommitCalls(overlay, tree),
        get_all_tables=lambda answer, _: [*answer(), "gone"],
        get_all_databases=lambda answer: [*answer(), "gone"],
        get_partition_names=lambda answer, *_: [*answer(), "ds=gone"],
    )
    reading = catalog_reader.read(calls, overlay)
    assert reading.tree == normal(overlay, tree).tree
    assert (reading.left_out, reading.refused) == ((), ())


@pytest.mark.parametrize(
    "error", [ttypes.NoSuchObjectException("sales.orders"), ttypes.UnknownDBException("sales")]
)
def test_a_table_that_is_dropped_before_its_partitions_are_read(
    overlay: Overlay, tree: str, error: Exception
) -> None:
    calls = Altered(CommitCalls(overlay, tree), get_partitions_by_names=error, list_privileges=error)
    reading = catalog_reader.read(calls, overlay)
    assert (reading.counts["tables"], reading.counts["partitions"], reading.refused) == (4, 0, ())


def test_what_an_older_metastore_lacks_is_left_out_once(overlay: Overlay, tree: str) -> None:
    without = ["get_catalogs", "get_all_table_constraints", "get_check_constraints", "get_role_names"]
    older = Altered(CommitCalls(overlay, tree), **{name: lost(name) for name in without})
    reading = catalog_reader.read(older, overlay)
    assert [(item.name, item.why) for item in reading.left_out] == [
        ("catalogs", "thrift://old:9083 knows no get_catalogs"),
        ("check constraints", "thrift://old:9083 knows no get_check_constraints"),
        ("role names", "thrift://old:9083 knows no get_role_names"),
    ]
    # Asked once, and not about each table. Tables of a request are read by several threads.
    assert all(older.seen.count(name) <= 4 for name in without)
    direct = catalog_reader.read(CommitCalls(overlay, tree), overlay, reading.unsupported)
    assert direct.tree == reading.tree
    assert differences(overlay, normal(overlay, tree).tree, reading.tree) == [
        f"- catalog hive: {states.LAKE}"
    ]


def test_a_call_that_is_refused_to_the_user_is_left_out(overlay: Overlay, tree: str) -> None:
    refusal = ttypes.MetaException("not for\nyou\x1b[2J")
    calls = Altered(CommitCalls(overlay, tree), list_privileges=refusal)
    reading = catalog_reader.read(calls, overlay)
    [left_out] = reading.left_out
    assert (left_out.name, left_out.why) == ("privileges", "not for you\\x1b[2J")


def test_a_table_that_the_metastore_cannot_return_is_left_out_alone(overlay: Overlay, tree: str) -> None:
    def answer(answer: Any, _: str, names: list[str], __: str | None) -> Any:
        if "ice" in names:
            raise ttypes.MetaException("ice is damaged")
        return answer()

    reading = catalog_reader.read(
        Altered(CommitCalls(overlay, tree), get_table_objects_by_name=answer), overlay
    )
    assert [(item.name, item.why) for item in reading.refused] == [("hive.sales ice", "ice is damaged")]
    assert SnapshotReader(overlay, reading.tree).tables(Name("hive", "sales")) == [
        "odd/näme", "orders", "seen",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".", "a\nb", "a\x1b[2j", "$(touch pwned)", "-rf", "table.json"]
)
def test_no_name_leaves_its_folder(overlay: Overlay, name: str) -> None:
    tree = states.tree(overlay, {name: {name: table("a", partitions={f"ds={name}": {"values": [name]}})}})
    reading = normal(overlay, tree)
    past = SnapshotReader(overlay, reading.tree)
    assert (past.databases("hive"), past.tables(Name("hive", name))) == ([name], [name])
    assert list(past.partitions(Name("hive", name, name))) in ([f"ds={name}"], [])
    assert differences(overlay, reading.tree, normal(overlay, tree).tree) == []


@pytest.mark.parametrize("name", ["", "x" * 257])
def test_a_name_that_hive_cannot_have_is_left_out(overlay: Overlay, tree: str, name: str) -> None:
    calls = Altered(
        CommitCalls(overlay, tree),
        get_all_databases=lambda answer: [*answer(), name],
        get_all_tables=lambda answer, _: [*answer(), name],
        get_functions=lambda answer, *_: [*answer(), name],
    )
    reading = catalog_reader.read(calls, overlay)
    assert reading.tree == normal(overlay, tree).tree
    [refused] = reading.refused
    assert refused.why == f"a name of {len(name)} letters; the same of 4 more objects"
    assert len(refused.name) < 300


def test_a_table_with_values_that_no_metastore_writes_is_left_out(overlay: Overlay, tree: str) -> None:
    def answer(answer: Any, *_: Any) -> Any:
        tables = answer()
        for item in tables:
            item.ownerType = 99 if item.tableName == "orders" else item.ownerType
        return [*tables, ttypes.Table(tableName="more"), ttypes.Table()]

    reading = catalog_reader.read(
        Altered(CommitCalls(overlay, tree), get_table_objects_by_name=answer), overlay
    )
    assert [(item.name, item.why) for item in reading.refused] == [
        ("hive.sales.orders", "the answer is malformed: KeyError: 99")
    ]
    assert reading.counts["tables"] == 3


def test_a_metastore_that_refuses_everything_is_given_up(
    overlay: Overlay, tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_reader, "_MOST_REFUSED", 20)
    calls = Altered(CommitCalls(overlay, tree), get_partitions_by_names=ttypes.MetaException("no"))
    with pytest.raises(MetastoreError, match="more than 20 objects cannot be read; the last is hive"):
        catalog_reader.read(calls, overlay)


def test_fields_of_a_newer_metastore_are_told_once(overlay: Overlay, tree: str) -> None:
    def answer(answer: Any, *_: Any) -> Any:
        tables = answer()
        for item in tables:
            item.writeId = 7
        return tables

    reading = catalog_reader.read(
        Altered(CommitCalls(overlay, tree), get_table_objects_by_name=answer), overlay
    )
    assert [(item.name, item.why) for item in reading.left_out] == [
        ("hive.sales.ice", "writeId: no commit holds it; the same of 3 more objects")
    ]
    assert reading.tree == normal(overlay, tree).tree


def test_a_damaged_commit_is_no_metastore_with_fewer_tables(tmp_path: Path) -> None:
    with closing(Store.made(tmp_path / "catalog.git")) as store:
        entry = states.commit(store, STATE)
        calls = CommitCalls(store, entry.tree)
        number = store.tree(entry.tree)[build.CATALOG]
        for word in (*Name("hive", "sales", "ice").path, build.TABLE):
            number = store.tree(number)[word]
        path = store.path / "objects" / number[:2] / number[2:]
        path.unlink()
        with pytest.raises(LakehouseError, match="is missing"):
            catalog_reader.read(calls, Overlay(store))


class Old(Catalog):
    """A metastore of Hive 2, which has none of the newer calls."""

    def get_table_objects_by_name(self, dbname: str, tbl_names: list[str]) -> list[ttypes.Table]:
        return [
            ttypes.Table(dbName=dbname, tableName=name, partitionKeys=[ttypes.FieldSchema("n", "int")])
            for name in tbl_names
        ]


def test_hive_2_is_read_as_far_as_it_goes(overlay: Overlay) -> None:
    with Fake(Old(count=2500)) as old, Metastore(old.uri) as metastore:
        reading = catalog_reader.read(metastore, overlay)
    assert reading.counts == {"databases": 2, "tables": 6, "partitions": 15_000, "functions": 0}
    assert max(map(len, old.catalog.asked)) <= 1000
    assert {item.name for item in reading.left_out} == {
        "catalogs", "functions", "privileges", "role names", "primary keys", "foreign keys",
        "unique constraints", "not null constraints", "default constraints", "check constraints",
    }  # fmt: skip


# The commands


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.made(tmp_path / "catalog.git")) as store:
        states.commit(store, STATE, functions=FUNCTIONS)
        yield store


@pytest.fixture
def other(history: Store) -> Iterator[str]:
    """The metastore of another cluster, which has one table less and one more."""
    overlay = Overlay(history)
    tables = dict(STATE["sales"] or {})
    del tables["ice"]
    tables["orders"] = table("id:bigint", "city:int", partitions=days(*range(2, 200)))
    with serving(
        overlay, states.tree(overlay, {**STATE, "sales": tables | {"new": table("a")}}, FUNCTIONS)
    ) as uri:
        yield uri


@pytest.fixture
def same(history: Store) -> Iterator[str]:
    with serving(history, history.resolve("HEAD").tree) as uri:
        yield uri


CHANGES = [
    "- table hive.sales.ice: iceberg, 1 column",
    "+ table hive.sales.new: hive, 1 column",
    "~ table hive.sales.orders: column city: string -> int",
    "- partition hive.sales.orders/ds=1",
]


def where(store: Store) -> list[str]:
    return ["--store", str(store.path)]


def test_the_same_catalog_has_no_differences(
    history: Store, same: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["metastore", "compare", same, "--commit", "HEAD", *where(history)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f" to {same}, 2 databases, 4 tables, 199 partitions, 0 differences, not compared: " in err
    assert err.count("\n") == 1


def test_differences_are_lines_and_exit_code_1(
    history: Store, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["metastore", "compare", other, "--commit", "main", *where(history)]
    assert cli.main(words) == 1
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        line.replace("ds=1", "ds=1: hdfs://lake/t/ds=1") for line in CHANGES
    ]
    assert f"DEGRADED metastore.differs {other}: " in err
    assert f"next: .venv/bin/lakehouse catalog commit --from {other} --store {history.path}\n" in err
    assert cli.main([*words, "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert [item["action"] for item in content["changes"]] == ["removed", "added", "changed", "removed"]
    assert (content["verb"], content["exit"], content["to"]) == ("metastore compare", 1, other)
    assert "versions of Delta tables" in content["unread"]


def test_parameters_and_new_rows_can_be_ignored(history: Store, capsys: pytest.CaptureFixture[str]) -> None:
    overlay = Overlay(history)
    tables = dict(STATE["sales"] or {}) | {"ice": iceberg(4, "id", **{"etl.run": "7"})}
    with serving(overlay, states.tree(overlay, {**STATE, "sales": tables}, FUNCTIONS)) as uri:
        words = ["metastore", "compare", uri, "--commit", "main", *where(history)]
        assert cli.main(words) == 1
        assert cli.main([*words, "--no-data", "--ignore", "etl.*"]) == 0
    capsys.readouterr()


def test_a_version_of_a_delta_table_is_no_difference(
    history: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    content = table("a", parameters={"spark.sql.sources.provider": "delta"})
    with_version = states.Table({**content.said, "data": {"format": "delta", "version": "7"}})
    states.commit(history, {"sales": {"trips": with_version}})
    overlay = Overlay(history)
    with serving(overlay, states.tree(overlay, {"sales": {"trips": content}})) as uri:
        assert cli.main(["metastore", "compare", uri, "--commit", "HEAD", *where(history)]) == 0
    assert capsys.readouterr().out == ""


def test_a_branch_gets_the_catalog_once(
    history: Store, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["catalog", "commit", "--from", other, "--author", "Ann", *where(history)]
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"on from-{LOOPBACK}, 2 databases, 4 tables" in err
    assert f"next: .venv/bin/lakehouse catalog diff main from-{LOOPBACK} --store {history.path}\n" in err
    entry = history.resolve(f"from-{LOOPBACK}")
    assert (entry.subject, entry.parents, entry.author) == (f"the catalog of {other}", (), "Ann <>")
    assert entry.facts == {
        "Metastore": other, "Catalog": history.tree(entry.tree)["catalog"], "Event": "none",
    }  # fmt: skip
    assert cli.main([*words, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["changed"], content["commit"], content["branch"]) == (False, entry.id, f"from-{LOOPBACK}")
    # main is as it was, and the other verbs work on the branch.
    assert history.head() == history.resolve("main") != entry
    assert cli.main(["catalog", "show", f"from-{LOOPBACK}", "sales.new", *where(history)]) == 0
    assert cli.main(["catalog", "diff", "main", f"from-{LOOPBACK}", *where(history)]) == 0
    assert "- table hive.sales.ice: iceberg, 1 column\n" in capsys.readouterr().out


def test_a_changed_catalog_is_the_next_commit_of_the_branch(
    history: Store, other: str, same: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--to", "old", *where(history)]
    assert cli.main(["catalog", "commit", "--from", same, *words]) == 0
    first = history.resolve("old")
    capsys.readouterr()
    assert cli.main(["catalog", "commit", "--from", other, *words]) == 0
    assert capsys.readouterr().out.startswith(CHANGES[0])
    second = history.resolve("old")
    assert second.parents == (first.id,)
    assert second.subject == "1 table added, 1 table changed, 1 partition removed, 1 table removed"
    assert history.head() == history.resolve("main")


def test_a_commit_without_all_of_it_ends_with_1(history: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with Fake(Old()) as old:
        assert cli.main(["catalog", "commit", "--from", old.uri, *where(history)]) == 1
        err = capsys.readouterr().err
        assert f"DEGRADED catalog.left_out privileges: {old.uri} knows no list_privileges; next: " in err
        # What it has no call for is no difference, but a line.
        assert (
            cli.main(["metastore", "compare", old.uri, "--commit", f"from-{LOOPBACK}", *where(history)]) == 0
        )
        assert f"not compared: privileges: {old.uri} knows no list_privileges\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["metastore", "compare", "http://old:9083"], "http://old:9083: a metastore's address reads as"),
        (["metastore", "compare", "thrift://old\x1b[2J"], "thrift://old\\x1b[2J: a metastore's address"),
        (["metastore", "compare", ","], "no metastore is named"),
        (
            ["metastore", "compare", "thrift://127.0.0.1:1", "--commit", "lost"],
            "lost: no commit, branch or tag",
        ),
        (["catalog", "commit", "--from", "old:9083"], "old:9083: a metastore's address reads as"),
        (["catalog", "commit", "--from", "thrift://old", "--to", "main"], "--to main: main is what this"),
        (["catalog", "commit", "--from", "thrift://old", "--to", "a/b"], "--to a/b: no name of a branch"),
        (["catalog", "commit", "--from", "thrift://old", "--to", "HEAD"], "--to HEAD: no name of a branch"),
        (["catalog", "commit", "--from", "thrift://old", "--full"], "--full and --from exclude each other"),
        (["catalog", "commit", "--to", "old"], "--to old: the branch for another metastore"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    history: Store, words: list[str], refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words, *where(history)]) == 64
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"error: {refusal}")


@pytest.mark.parametrize("words", [["metastore", "compare"], ["catalog", "commit", "--from"]])
class TestUnreadable:
    """Each of them is one line, exit code 2, and writes no commit."""

    def _fails(self, words: list[str], uri: str, store: Store, capsys: pytest.CaptureFixture[str]) -> str:
        names = store.references.names("heads")
        options = ["--commit", "HEAD"] if words[0] == "metastore" else []
        assert cli.main([*words, uri, *options, *where(store)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), store.references.names("heads")) == ("", 1, names)
        return err

    def test_no_server(self, words: list[str], history: Store, capsys: pytest.CaptureFixture[str]) -> None:
        uri = dead()
        err = self._fails(words, uri, history, capsys)
        assert "Connection refused" in err
        assert err.endswith(f"next: nc -vz {LOOPBACK} {uri.rpartition(':')[2]}\n")

    def test_a_server_that_ends_the_connection(
        self, words: list[str], history: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with Fake(Old(), cut={"get_all_tables"}) as closing_server:
            assert "the connection was ended" in self._fails(words, closing_server.uri, history, capsys)

    @pytest.mark.parametrize("kind", ["HTTP", "all bits", "another method's name", "a list of huge length"])
    def test_a_server_that_answers_garbage(
        self, words: list[str], kind: str, history: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        garble = {**GARBAGE, **LISTS}[kind]
        with Fake(Old(), garble={"get_all_databases": garble}) as garbled:
            assert garbled.uri in self._fails(words, garbled.uri, history, capsys)

    def test_a_refusal_of_its_names(
        self, words: list[str], history: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        class Closed(Old):
            def get_all_databases(self) -> list[str]:
                raise ttypes.MetaException(message="no\x1b[2J")

        with Fake(Closed()) as closed:
            assert "error: the metastore refuses: no\\x1b[2J; next: nc -vz" in self._fails(
                words, closed.uri, history, capsys
            )
