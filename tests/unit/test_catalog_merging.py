"""Two states of a catalog become one, clash by clash, as the bytes that a read of all of it would give."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.catalog import build, diff, documents
from lakehouse.catalog.merging import documents as merging
from lakehouse.catalog.merging.sides import Choice, Side, Three
from lakehouse.catalog.merging.trees import Merged, merge
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.store import Store
from tests.unit.catalog_states import LAKE, SHAPE, Table, Tables, commit, day, days, iceberg, table, tree

COLUMNS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd"), "type": st.sampled_from("xy")}),
    unique_by=lambda one: str(one["name"]),
)
TABLES = st.fixed_dictionaries(
    {
        "parameters": st.dictionaries(st.sampled_from("klm"), st.sampled_from(["1", "2", None])),
        "storage": st.fixed_dictionaries({"columns": COLUMNS, "location": st.sampled_from("pq")}),
    }
)


def _without_nothing(said: dict[str, Any]) -> dict[str, Any]:
    """Return it as a commit has it."""
    return documents.without_nothing(said | {"storage": documents.without_nothing(said["storage"])})


SAID = TABLES.map(_without_nothing)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.made(tmp_path / "history.git")) as made:
        yield made


class Counting(Batch):
    """Remembers which files were read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read: list[str] = []

    def blob(self, number: str) -> bytes:
        self.read.append(number)
        return super().blob(number)


def merged(store: Store, base: Tables, ours: Tables, theirs: Tables, **choice: Any) -> tuple[Batch, Merged]:
    """Merge three states of a database's tables."""
    batch = Batch(store)
    trees = Three(*(tree(batch, {"d": one}) for one in (base, ours, theirs)))
    return batch, merge(batch, trees, Choice(**choice))


def clashes(store: Store, base: Tables, ours: Tables, theirs: Tables, **choice: Any) -> list[str]:
    return [str(one) for one in merged(store, base, ours, theirs, **choice)[1].conflicts]


VIEW = {"type": "VIRTUAL_VIEW", "view": "select 1"}
CLEAN: dict[str, tuple[Tables, Tables, Tables, Tables]] = {
    "two other partitions": (
        {"t": table(partitions=days(1))},
        {"t": table(partitions=days(1, 2))},
        {"t": table(partitions=days(1, 3))},
        {"t": table(partitions=days(1, 2, 3))},
    ),
    "the same partition, the same content": (
        {"t": table(partitions=days(1))},
        {"t": table(partitions=days(1, 2))},
        {"t": table(partitions=days(1, 2))},
        {"t": table(partitions=days(1, 2))},
    ),
    "the same partition, made at another time": (
        {"t": table(partitions=days(1))},
        {"t": table(partitions=days(1) | day(2, created=20))},
        {"t": table(partitions=days(1) | day(2, created=10))},
        {"t": table(partitions=days(1) | day(2, created=10))},
    ),
    "one partition more, one less": (
        {"t": table(partitions=days(1, 2))},
        {"t": table(partitions=days(1, 2, 3))},
        {"t": table(partitions=days(2))},
        {"t": table(partitions=days(2, 3))},
    ),
    "each side drops another one, and none is left": (
        {"t": table(partitions=days(1, 2))},
        {"t": table(partitions=days(1))},
        {"t": table(partitions=days(2))},
        {"t": table(partitions={})},
    ),
    "one partition has another place, and another parameter": (
        {"t": table(partitions=days(1))},
        {"t": table(partitions=day(1, location=f"{LAKE}/elsewhere"))},
        {"t": table(partitions=day(1, parameters={"k": "v"}))},
        {"t": table(partitions=day(1, location=f"{LAKE}/elsewhere", parameters={"k": "v"}))},
    ),
    "a partition in another form on each side": (
        {"t": table(partitions=day(1, storage={"buckets": 1, "input_format": "i"}))},
        {"t": table(partitions=day(1, storage={"buckets": 2, "input_format": "i"}))},
        {"t": table(partitions=day(1, storage={"buckets": 1, "input_format": "j"}))},
        {"t": table(partitions=day(1, storage={"buckets": 2, "input_format": "j"}))},
    ),
    "more partitions than fit into one file": (
        {"t": table(partitions=days(*range(60)))},
        {"t": table(partitions=days(*range(64)))},
        {"t": table(partitions=days(*range(60), *range(100, 104)))},
        {"t": table(partitions=days(*range(64), *range(100, 104)))},
    ),
    "a column on each side: ours first": (
        {"t": table("a", "b")},
        {"t": table("a", "b", "ours1", "ours2")},
        {"t": table("a", "b", "theirs1", "theirs2")},
        {"t": table("a", "b", "ours1", "ours2", "theirs1", "theirs2")},
    ),
    "columns in the middle: each behind its own": (
        {"t": table("a", "b")},
        {"t": table("first", "a", "b")},
        {"t": table("a", "middle", "b")},
        {"t": table("first", "a", "middle", "b")},
    ),
    "another order on one side, a column on the other one": (
        {"t": table("a", "b", "c")},
        {"t": table("a", "b", "c", "d")},
        {"t": table("c", "a", "b")},
        {"t": table("c", "d", "a", "b")},
    ),
    "a column less on each side": (
        {"t": table("a", "b", "c")}, {"t": table("a", "b")}, {"t": table("b", "c")}, {"t": table("b")},
    ),
    "the same column on each side": (
        {"t": table("a")}, {"t": table("a", "n", "o")}, {"t": table("a", "n", "p")},
        {"t": table("a", "n", "o", "p")},
    ),
    "a parameter on one side only": (
        {"t": table(parameters={"k": "1", "l": "1"})},
        {"t": table(parameters={"k": "2", "l": "1"})},
        {"t": table("a", "b", "c", parameters={"k": "1", "l": "1"})},
        {"t": table("a", "b", "c", parameters={"k": "2", "l": "1"})},
    ),
    "a parameter less, and another one more, and one that is null": (
        {"t": table(parameters={"k": "1"})},
        {"t": table(parameters={"n": None})},
        {"t": table(parameters={"k": "1", "l": "1"})},
        {"t": table(parameters={"n": None, "l": "1"})},
    ),
    "privileges of two people, in the order that a commit has": (
        {"t": table()},
        {"t": table(privileges=[{"privilege": "SELECT", "to": "zoe"}])},
        {"t": table(privileges=[{"privilege": "SELECT", "to": "ann"}])},
        {"t": table(privileges=[{"privilege": "SELECT", "to": "ann"}, {"privilege": "SELECT", "to": "zoe"}])},
    ),
    "the same privilege, granted at another time": (
        {"t": table()},
        {"t": table(privileges=[{"privilege": "SELECT", "to": "ann", "created": 20}])},
        {"t": table(privileges=[{"privilege": "SELECT", "to": "ann", "created": 10}], created=5)},
        {"t": table(privileges=[{"privilege": "SELECT", "to": "ann", "created": 10}], created=5)},
    ),
    "made again as it was on one side, dropped on the other one": (
        {"t": table(created=1, partitions=day(1) | day(2, created=1)), "u": table(created=1)},
        {"t": table(created=1, partitions=day(1) | day(2, created=2)), "u": table(created=2)},
        {"t": table(created=1, partitions=day(1))},
        {"t": table(created=1, partitions=day(1))},
    ),
    "a partition on one side, a column on the other one": (
        {"t": table("a", partitions=days(1))},
        {"t": table("a", partitions=days(1, 2))},
        {"t": table("a", "b", partitions=days(1))},
        {"t": table("a", "b", partitions=days(1, 2))},
    ),
    "other partition keys on one side, a parameter on the other one": (
        {"t": table(partitions=days(1))},
        {"t": table(partitions=days(1), parameters={"k": "v"})},
        {"t": table(partitions={}, partition_keys=[{"name": "hr", "type": "int"}])},
        {"t": table(partitions={}, partition_keys=[{"name": "hr", "type": "int"}], parameters={"k": "v"})},
    ),
    "a table dropped that the other side left alone": (
        {"t": table(), "u": table()}, {"t": table()}, {"t": table(), "u": table(), "v": table()},
        {"t": table(), "v": table()},
    ),
    "a table dropped on each side": (
        {"t": table(), "u": table()}, {"t": table()}, {"t": table()}, {"t": table()},
    ),
    "the same table made on each side": (
        {}, {"t": table(created=20, partitions=days(1))}, {"t": table(created=10, partitions=days(2))},
        {"t": table(created=10, partitions=days(1, 2))},
    ),
    "the data moved on one side, a parameter changed on the other one": (
        {"t": iceberg(1)}, {"t": iceberg(2)}, {"t": iceberg(1, owner="eve")}, {"t": iceberg(2, owner="eve")},
    ),
    "the data moved to the same on each side": (
        {"t": iceberg(1)}, {"t": iceberg(2)}, {"t": iceberg(2, owner="eve")}, {"t": iceberg(2, owner="eve")},
    ),
    "a table becomes one of Iceberg, and gets a parameter": (
        {"t": table(parameters={"k": "1"})},
        {"t": iceberg(1, k="1")},
        {"t": table(parameters={"k": "2"})},
        {"t": iceberg(1, k="2")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CLEAN)
def test_what_each_side_has_changed_alone_is_in_the_merged_catalog(store: Store, case: str) -> None:
    base, ours, theirs, expected = CLEAN[case]
    batch, found = merged(store, base, ours, theirs)
    assert found.conflicts == ()
    # The same bytes as if a metastore with all of it had been read.
    assert found.tree == tree(batch, {"d": expected}), list(
        diff.changes(batch, tree(batch, {"d": expected}), found.tree)
    )


T, P = "hive.d.t", "hive.d.t/ds=2"
CONFLICTS: dict[str, tuple[Tables, Tables, Tables, list[str]]] = {
    "the same partition, another place": (
        {"t": table(partitions=days(1))},
        {"t": table(partitions=days(1) | day(2, location="x"))},
        {"t": table(partitions=days(1) | day(2, location="y"))},
        [f"{P}: location: ours x, theirs y (base none)"],
    ),
    "a partition has another place on each side": (
        {"t": table(partitions=day(2, location="o"))},
        {"t": table(partitions=day(2, location="x"))},
        {"t": table(partitions=day(2, location="y"))},
        [f"{P}: location: ours x, theirs y (base o)"],
    ),
    "a partition dropped, and changed": (
        {"t": table(partitions=days(1, 2))},
        {"t": table(partitions=days(1))},
        {"t": table(partitions=days(1) | day(2, location="y"))},
        [f"{P}: partition: ours dropped, theirs 1 partition changed (base there)"],
    ),
    "the same column, another type": (
        {"t": table("a")},
        {"t": table("a", "n:int")},
        {"t": table("a", "n:string")},
        [f"{T}: column n: ours int, theirs string (base none)"],
    ),
    "a column dropped, and of another type": (
        {"t": table("a", "b:int")},
        {"t": table("a", "b:bigint")},
        {"t": table("a")},
        [f"{T}: column b: ours bigint, theirs none (base int)"],
    ),
    "two other orders": (
        {"t": table("a", "b", "c")},
        {"t": table("b", "a", "c")},
        {"t": table("a", "c", "b")},
        [f'{T}: column order: ours ["b","a","c"], theirs ["a","c","b"] (base ["a","b","c"])'],
    ),
    "a parameter of another value on each side": (
        {"t": table(parameters={"k": "1"})},
        {"t": table(parameters={"k": "2"})},
        {"t": table(parameters={"k": "3"})},
        [f"{T}: parameter k: ours 2, theirs 3 (base 1)"],
    ),
    "a table dropped, and a partition more": (
        {"t": table(partitions=days(1))},
        {},
        {"t": table(partitions=days(1, 2, 3))},
        [f"{T}: table: ours dropped, theirs 2 partitions added (base there)"],
    ),
    "a column more, and a table dropped": (
        {"t": table("a")},
        {"t": table("a", "b")},
        {},
        [f"{T}: table: ours 1 table changed, theirs dropped (base there)"],
    ),
    "a view changed, and dropped": (
        {"t": Table(VIEW)},
        {"t": Table(VIEW | {"view": "select 2"})},
        {},
        [f"{T}: view: ours 1 view changed, theirs dropped (base there)"],
    ),
    "another table of the same name on each side": (
        {},
        {"t": table("a")},
        {"t": table("a", owner="eve")},
        [f"{T}: owner: ours none, theirs eve (base none)"],
    ),
    "other partition keys, and a partition more": (
        {"t": table(partitions=days(1))},
        {"t": table(partitions={}, partition_keys=[{"name": "hr", "type": "int"}])},
        {"t": table(partitions=days(1, 2))},
        [
            f'{T}: partition keys: ours [{{"name":"hr","type":"int"}}],'
            ' theirs [{"name":"ds","type":"string"}] (base [{"name":"ds","type":"string"}])'
        ],
    ),
    "the data moved on each side": (
        {"t": iceberg(1)},
        {"t": iceberg(2)},
        {"t": iceberg(3)},
        [
            f'{T}: data: ours {{"format":"iceberg","metadata":"{LAKE}/m2.json"}}, theirs'
            f' {{"format":"iceberg","metadata":"{LAKE}/m3.json"}}'
            f' (base {{"format":"iceberg","metadata":"{LAKE}/m1.json"}})'
        ],
    ),
}


def key(name: str, *columns: str, kind: int = 0, to: str = "") -> list[dict[str, Any]]:
    """The rows of a constraint: a primary key, or a foreign one to columns of the same names of a table."""
    return [
        {"name": name, "position": place, "column": column}
        | ({"type": kind} if kind else {})
        | ({"type": 1, "references": ["hive", "d", to, column]} if to else {})
        for place, column in enumerate(columns, 1)
    ]


def stored(*columns: str, **storage: Any) -> Table:
    """A table with more in its storage."""
    said = dict(table(*columns).said)
    return Table(said | {"storage": said["storage"] | storage})


def spark(*columns: str, schema: str) -> Table:
    """A table of Hive with the schema as Spark has it."""
    return table(*columns, parameters={"spark.sql.sources.schema": schema})


GRANT = {"privilege": "SELECT", "to": "eve", "column": "b"}
PARENT = table("a", constraints=key("pk", "a"))
# Each side is as a metastore may be, and both together are not.
UNFIT: dict[str, tuple[Tables, Tables, Tables, list[str]]] = {
    "a column and a partition key": (
        {"t": table("a")},
        {"t": table("a", "ds:string")},
        {"t": table("a", partitions={})},
        [f"{T}: partition key ds: the table would have a column ds, too"],
    ),
    "columns that differ by case": (
        {"t": table("a")},
        {"t": table("a", "n")},
        {"t": table("a", "N")},
        [f"{T}: column N: the table would have a column n, too"],
    ),
    "tables that differ by case": (
        {},
        {"t": table("a")},
        {"T": table("a")},
        ["hive.d.t: name: hive.d.T has it, but for large and small letters"],
    ),
    "two primary keys": (
        {"t": table("a", "b")},
        {"t": table("a", "b", constraints=key("one", "a"))},
        {"t": table("a", "b", constraints=key("two", "b"))},
        [f"{T}: primary key: the table would have several: one, two"],
    ),
    "a key of columns of both sides": (
        {"t": table("a", "b", "c")},
        {"t": table("a", "b", "c", constraints=key("one", "a"))},
        {"t": table("a", "b", "c", constraints=key("one", "a", "b")[1:])},
        [f"{T}: constraint one: each side has other columns in it"],
    ),
    "not null on a column that is gone": (
        {"t": table("a", "b")},
        {"t": table("a", "b", constraints=key("nn", "b", kind=3))},
        {"t": table("a")},
        [f"{T}: constraint nn: it is on the column b, which would not be there"],
    ),
    "a privilege on a column that is gone": (
        {"t": table("a", "b")},
        {"t": table("a")},
        {"t": table("a", "b", privileges=[GRANT])},
        [f"{T}: privilege SELECT of eve: it is on the column b, which would not be there"],
    ),
    "buckets by a column that is gone": (
        {"t": table("a", "b")},
        {"t": stored("a", "b", bucket_columns=["b"])},
        {"t": table("a")},
        [f"{T}: bucket column b: it is on the column b, which would not be there"],
    ),
    "sorted by a column that is gone": (
        {"t": table("a", "b")},
        {"t": stored("a", "b", sort_columns=[["b", 1]])},
        {"t": table("a")},
        [f"{T}: sort column b: it is on the column b, which would not be there"],
    ),
    "skewed by a column that is gone": (
        {"t": table("a", "b")},
        {"t": table("a")},
        {"t": stored("a", "b", skewed_columns=["b"])},
        [f"{T}: skewed column b: it is on the column b, which would not be there"],
    ),
    "a foreign key to a table that is gone": (
        {"p": PARENT, "t": table("a")},
        {"p": PARENT, "t": table("a", constraints=key("fk", "a", to="p"))},
        {"t": table("a")},
        [f"{T}: foreign key fk: its table hive.d.p would not be there"],
    ),
    "a foreign key to a column that is gone": (
        {"p": table("a", "b", constraints=key("pk", "a")), "t": table("a")},
        {
            "p": table("a", "b", constraints=key("pk", "a")),
            "t": table("a", constraints=key("fk", "a", to="p")),
        },
        {"p": table("b"), "t": table("a")},
        [f"{T}: foreign key fk: hive.d.p would have no primary or unique key (a int)"],
    ),
    "a foreign key to a column of another type": (
        {"p": PARENT, "t": table("a")},
        {"p": PARENT, "t": table("a", constraints=key("fk", "a", to="p"))},
        {"p": table("a:bigint", constraints=key("pk", "a")), "t": table("a")},
        [f"{T}: foreign key fk: hive.d.p would have no primary or unique key (a int)"],
    ),
    "a name of two constraints": (
        {"s": table("a"), "t": table("a")},
        {"s": table("a", constraints=key("one", "a")), "t": table("a")},
        {"s": table("a"), "t": table("a", constraints=key("ONE", "a", kind=3))},
        [f"{T}: constraint one: hive.d.s would have one of this name, too"],
    ),
    "Spark's schema of one side, and columns of the other one": (
        {"t": spark("a", schema="a")},
        {"t": spark("a", "b", schema="a, b")},
        {"t": spark("a", "c", schema="a")},
        [f"{T}: parameter spark.sql.sources.schema: it would be of other columns than the table's"],
    ),
    "an Iceberg table that both sides have renamed": (
        {"t": iceberg(1)},
        {"a": iceberg(1)},
        {"b": iceberg(1)},
        ["hive.d.b: files: hive.d.a would have the same files (/m1.json)"],
    ),
    "a managed table that both sides have renamed": (
        {"t": table("a", type="MANAGED_TABLE")},
        {"a": table("a", type="MANAGED_TABLE")},
        {"b": table("a", type="MANAGED_TABLE")},
        ["hive.d.b: files: hive.d.a would have the same files (/t)"],
    ),
    "a partition that is sorted by a column that is gone": (
        {"t": table(partitions=day(1, storage=SHAPE))},
        {"t": table(partitions=day(1, storage=SHAPE | {"sort_columns": [["a", 1]]}))},
        {"t": table(partitions=day(1, storage={"buckets": -1}))},
        [f"{T}/ds=1: sort column a: it is on the column a, which would not be there"],
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_does_not_fit_together_is_a_conflict(store: Store, case: str) -> None:
    base, ours, theirs, expected = UNFIT[case]
    assert clashes(store, base, ours, theirs) == expected
    # What a line says depends on whose side is ours; that there is one does not.
    assert len(clashes(store, base, theirs, ours)) == len(expected)


@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.parametrize("side", Side)
def test_one_side_decides_what_does_not_fit(store: Store, case: str, side: Side) -> None:
    base, *sides, _ = UNFIT[case]
    batch, found = merged(store, base, *sides, side=side)
    chosen = sides[side is Side.THEIRS]
    assert found.tree == tree(batch, {"d": chosen}), list(
        diff.changes(batch, tree(batch, {"d": chosen}), found.tree)
    )


def test_what_a_side_has_already_is_no_conflict_of_a_merge(store: Store) -> None:
    broken = stored("a", sort_columns=[["gone", 1]])
    base = {"t": broken, "u": table("a")}
    ours = {"t": Table({**broken.said, "owner": "eve"}), "u": table("a")}
    theirs = {"t": stored("a", "b", sort_columns=[["gone", 1]]), "u": table("a", "b")}
    assert clashes(store, base, ours, theirs) == []


def test_a_table_that_its_key_needs_comes_back_with_its_database(store: Store) -> None:
    batch = Batch(store)
    child = {
        "t": table(
            "a", constraints=[one | {"references": ["hive", "e", "p", "a"]} for one in key("fk", "a", to="p")]
        )
    }
    base, ours, theirs = (
        tree(batch, {"d": one, "e": other})
        for one, other in (
            ({"t": table("a")}, {"p": PARENT}),
            (child, {"p": PARENT}),
            ({"t": table("a")}, None),
        )
    )
    found = merge(batch, Three(base, ours, theirs), Choice())
    assert [str(one) for one in found.conflicts] == [
        f"{T}: foreign key fk: its table hive.e.p would not be there"
    ]
    for side, tree_of in ((Side.OURS, ours), (Side.THEIRS, theirs)):
        assert merge(batch, Three(base, ours, theirs), Choice(side)).tree == tree_of


def test_statistics_of_a_column_that_is_gone_are_gone(store: Store) -> None:
    batch = Batch(store)

    def of(said: Table, counted: dict[str, Any]) -> str:
        path = (build.STATISTICS, *Name("hive", "d", "t").path, build.TABLE)
        root = build.Folder()
        root.put(path, batch.add_blob(documents.pretty(counted)))
        made = dict(batch.tree(tree(batch, {"d": {"t": said}})))
        return build.folder(batch, made | dict(batch.tree(root.write(batch))))

    spark_counted = "spark.sql.statistics.colStats."
    counted = {
        "columns": [{"COLUMN_NAME": "a"}, {"COLUMN_NAME": "b"}],
        "parameters": {f"{spark_counted}a.min": "1", f"{spark_counted}b.min": "1", "numRows": "7"},
    }
    left = {
        "columns": [{"COLUMN_NAME": "a"}],
        "parameters": {f"{spark_counted}a.min": "1", "numRows": "7"},
    }
    trees = Three(
        of(table("a", "b"), counted), of(table("a", "b", owner="eve"), counted), of(table("a"), counted)
    )
    assert merge(batch, trees, Choice()) == Merged(of(table("a", owner="eve"), left), ())


@pytest.mark.parametrize("case", CONFLICTS)
def test_what_both_sides_have_changed_is_named_with_both_values(store: Store, case: str) -> None:
    base, ours, theirs, expected = CONFLICTS[case]
    assert clashes(store, base, ours, theirs) == expected


@pytest.mark.parametrize("case", CONFLICTS)
@pytest.mark.parametrize("side", Side)
def test_one_side_decides_all_conflicts(store: Store, case: str, side: Side) -> None:
    base, *sides, _ = CONFLICTS[case]
    batch, found = merged(store, base, *sides, side=side)
    assert len(found.conflicts) == 1
    # In these cases nothing else has changed.
    assert found.tree == tree(batch, {"d": sides[side is Side.THEIRS]})


def test_what_is_no_conflict_is_merged_beside_one_that_is_decided(store: Store) -> None:
    base = {"t": table(parameters={"k": "1"}), "u": table(partitions=days(1))}
    ours = {"t": table(parameters={"k": "2", "o": "1"}), "u": table(partitions=days(1, 2))}
    theirs = {"t": table(parameters={"k": "3", "t": "1"}), "u": table(partitions=days(1, 3))}
    batch, found = merged(store, base, ours, theirs, side=Side.THEIRS)
    expected = {
        "t": table(parameters={"k": "3", "o": "1", "t": "1"}),
        "u": table(partitions=days(1, 2, 3)),
    }
    assert found.tree == tree(batch, {"d": expected})


def test_a_database_dropped_is_a_conflict_where_a_table_came_and_else_none(store: Store) -> None:
    batch = Batch(store)
    base, dropped, added = (
        tree(batch, {"d": {"t": table()}, "e": one})
        for one in ({"t": table()}, None, {"t": table(), "new": table()})
    )
    [conflict] = merge(batch, Three(base, dropped, added), Choice()).conflicts
    assert str(conflict) == "hive.e: database: ours dropped, theirs 1 table added (base there)"
    assert merge(batch, Three(base, dropped, added), Choice(Side.THEIRS)).tree == added
    other = tree(batch, {"d": {"t": table(), "u": table()}, "e": {"t": table()}})
    found = merge(batch, Three(base, dropped, other), Choice())
    assert (found.tree, found.conflicts) == (tree(batch, {"d": {"t": table(), "u": table()}}), ())


def test_functions_are_merged_too(store: Store) -> None:
    batch = Batch(store)
    base, ours, theirs, both = (
        tree(batch, {"d": {}}, {name: {"class": kind} for name, kind in said.items()})
        for said in ({"f": "A"}, {"f": "A", "g": "B"}, {"f": "C"}, {"f": "C", "g": "B"})
    )
    assert merge(batch, Three(base, ours, theirs), Choice()) == Merged(both, ())
    gone = tree(batch, {"d": {}})
    [conflict] = merge(batch, Three(base, gone, theirs), Choice()).conflicts
    assert str(conflict) == "hive.d.f(): function: ours dropped, theirs 1 function changed (base there)"


def test_roles_and_parameters_of_a_database_are_merged_by_name(store: Store) -> None:
    batch = Batch(store)

    def of(roles: list[str], **parameters: str) -> str:
        root = build.Folder()
        access = {"roles": [{"name": name} for name in roles]}
        for path, said in (
            ((build.SETTINGS,), json.loads(build.settings())),
            ((build.ACCESS,), access),
            (("hive", "db", "d", "database.json"), {"parameters": parameters}),
        ):
            root.put((build.CATALOG, *path), batch.add_blob(documents.pretty(said)))
        return root.write(batch)

    trees = Three(of(["a"], k="1"), of(["a", "z"], k="1", o="1"), of(["a", "b"], k="2"))
    assert merge(batch, trees, Choice()) == Merged(of(["a", "b", "z"], k="2", o="1"), ())
    trees = Three(of(["a"], k="1"), of(["a"], k="2"), of(["a"], k="3"))
    [conflict] = merge(batch, trees, Choice()).conflicts
    assert str(conflict) == "hive.d: parameter k: ours 2, theirs 3 (base 1)"


def test_without_data_a_table_keeps_the_state_of_its_files(store: Store) -> None:
    base, ours = {"t": iceberg(1), "u": iceberg(1)}, {"t": iceberg(2), "u": iceberg(1)}
    theirs = {"t": iceberg(3, "a", "b", "c"), "u": iceberg(4, owner="eve")}
    batch, found = merged(store, base, ours, theirs, data=False)
    expected = {"t": iceberg(2, "a", "b", "c"), "u": iceberg(1, owner="eve")}
    assert (found.tree, found.conflicts) == (tree(batch, {"d": expected}), ())


def test_statistics_are_those_of_the_side_whose_table_it_is(store: Store) -> None:
    def of(number: int, **said: Table) -> dict[str, Table]:
        return {name: Table(one.said, one.partitions, number) for name, one in said.items()}

    base = of(1, same=table(), ours=table(), theirs=table(), gone=table())
    ours = of(2, same=table(), ours=table("o"), theirs=table(), gone=table())
    theirs = of(3, same=table(), ours=table(), theirs=table("t"), new=table())
    batch, found = merged(store, base, ours, theirs)
    assert found.tree == tree(
        batch, {"d": of(2, same=table(), ours=table("o")) | of(3, theirs=table("t"), new=table())}
    )


def test_histories_with_nothing_in_common_clash_where_they_differ(store: Store) -> None:
    batch = Batch(store)
    ours, theirs = (
        tree(batch, {"d": said})
        for said in (
            {"o": table(), "both": table(created=1), "t": table("a")},
            {"n": table(), "both": table(created=2), "t": table("b")},
        )
    )
    found = merge(batch, Three(None, ours, theirs), Choice())
    assert [str(one) for one in found.conflicts] == [
        f"{T}: column a: ours int, theirs none (base none)",
        f"{T}: column b: ours none, theirs int (base none)",
    ]
    chosen = merge(batch, Three(None, ours, theirs), Choice(Side.THEIRS))
    expected = {"o": table(), "n": table(), "both": table(created=1), "t": table("b")}
    assert chosen.tree == tree(batch, {"d": expected})


@pytest.mark.parametrize("seed", range(6))
def test_many_partitions_give_the_files_that_a_read_of_all_gives(store: Store, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 -- which days, not secrets
    count = [40, 80, 500, 5000, 8000, 12000][seed]
    numbers = [f"{number:06}" for number in range(count)]
    base = days(*numbers)
    mine, yours = (dice.sample(numbers, 30) for _ in range(2))
    # Some are new, at the end and between, some are gone, and some have another parameter.
    sides = []
    for said, more in ((mine, "x"), ([one for one in yours if one not in mine], "y")):
        changed = {name: one | {"parameters": {more: more}} for name, one in days(*said[10:]).items()}
        new = days(*(f"{one}{more}" for one in said[:5]), *(f"{count + 1}{more}{one}" for one in range(5)))
        sides.append((set(days(*said[:10])), changed | new))
    ours, theirs, both = (
        {name: said for name, said in (base | new).items() if name not in gone}
        for gone, new in (*sides, (sides[0][0] | sides[1][0], sides[0][1] | sides[1][1]))
    )
    batch, found = merged(
        store, *({"t": table(partitions=one, parameters={"k": "v"})} for one in (base, ours, theirs))
    )
    assert found.conflicts == ()
    assert found.tree == tree(batch, {"d": {"t": table(partitions=both, parameters={"k": "v"})}})


def test_of_a_large_table_only_the_files_that_both_have_changed_are_read(store: Store) -> None:
    numbers = [f"{number:06}" for number in range(8000)]
    base = days(*numbers)
    places = [base | day(numbers[place], location="x") for place in (10, 7000)]
    main = commit(store, {"d": {"t": table(partitions=base), "other": table()}})
    one, two = (
        commit(store, {"d": {"t": table(partitions=said), "other": table()}}, branch)
        for said, branch in zip(places, ("one", "two"), strict=True)
    )
    batch = Counting(store)
    found = merge(batch, Three(main.tree, one.tree, two.tree), Choice())
    assert found.conflicts == ()
    # Two files on three sides, what tables and partitions have in common, and the form of each commit.
    assert len(batch.read) < 20
    both = days(*numbers) | day(numbers[10], location="x") | day(numbers[7000], location="x")
    assert found.tree == tree(Batch(store), {"d": {"t": table(partitions=both), "other": table()}})


@given(SAID, SAID)
def test_what_one_side_alone_has_changed_is_what_it_has(base: dict[str, Any], other: dict[str, Any]) -> None:
    for sides in (Three(base, other, base), Three(base, base, other), Three(base, other, other)):
        assert merging.merged(sides, Choice()) == (other, [])


@given(SAID, SAID, SAID)
def test_a_clash_is_told_whichever_side_is_ours_and_each_decides_all(
    base: dict[str, Any], one: dict[str, Any], other: dict[str, Any]
) -> None:
    _, found = merging.merged(Three(base, one, other), Choice())
    turned, swapped = merging.merged(Three(base, other, one), Choice())
    assert sorted(clash.field for clash in found) == sorted(clash.field for clash in swapped)
    decided, _ = merging.merged(Three(base, one, other), Choice(Side.THEIRS))
    fields = diff.fields(decided)
    for clash in found:
        if clash.field != diff.ORDER:
            assert fields.get(clash.field) == diff.fields(other).get(clash.field)
    if not found:
        # Columns that each side has put at the same place are ours first.
        assert diff.fields(decided) == diff.fields(turned)
