"""The plan of a restore: what is made, what is altered, and what is left alone with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from lakehouse.catalog import build, documents, names, restoring
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Overlay
from lakehouse.catalog.restoring import Copy, RestoreTarget
from tests.unit.catalog_files import Complete

ROOT = "hdfs://lake/d"
Tables = Mapping[str, dict[str, Any]]


def hive(name: str, **more: Any) -> dict[str, Any]:
    columns = [{"name": "a", "type": "int"}]
    return {"type": "EXTERNAL_TABLE", "storage": {"columns": columns, "location": f"{ROOT}/{name}"}, **more}


def iceberg(version: int) -> dict[str, Any]:
    place = f"{ROOT}/ice/metadata/{version}.json"
    said = hive("ice", parameters={"table_type": "ICEBERG", "metadata_location": place})
    return said | {"data": documents.data(said)}


def delta() -> dict[str, Any]:
    said = hive("log", parameters={"spark.sql.sources.provider": "delta"})
    said["storage"] |= {"serde": {"parameters": {"path": f"{ROOT}/log"}}}
    return said


VIEW = {"type": "VIRTUAL_VIEW", "view": "select 1"}


def tree(overlay: Overlay, tables: Tables, days: Collection[str] = (), *, database: bool = True) -> str:
    """Make the tree of a database `d`; the table `days` has a partition for each day."""
    root = build.Folder()
    root.put((build.CATALOG, build.SETTINGS), overlay.add_blob(build.settings()))
    if database:
        said = {"location": ROOT, "owner": "eve"}
        root.put(
            (build.CATALOG, "hive", "db", "d", "database.json"), overlay.add_blob(documents.pretty(said))
        )
    for table, said in tables.items():
        path = (build.CATALOG, *Name("hive", "d", table).path)
        root.put((*path, build.TABLE), overlay.add_blob(documents.pretty(said)))
        if table == "days" and days:
            shapes = {"s": {"columns": [{"name": "a", "type": "int"}]}}
            root.put((*path, build.SHAPES), overlay.add_blob(documents.pretty(shapes)))
            lines = {
                f"ds={day}": documents.line(
                    {"name": f"ds={day}", "shape": "s", "values": [day], "location": f"{ROOT}/days/ds={day}"}
                )
                for day in days
            }
            build.put_lines(root.at(path), overlay, sorted(lines.items()))
    return root.write(overlay)


def planned(
    now: Tables, then: Tables, scope: str = "d", missing: Collection[str] = (), **more: Any
) -> list[str]:
    overlay = Overlay(None)
    drop, days = more.pop("drop", False), more.pop("days", ())
    trees = tree(overlay, now, **more), tree(overlay, then, days)
    wanted = RestoreTarget(trees[1], names.parse(scope), drop)
    return list(map(str, restoring.plan(overlay, trees[0], wanted, Complete(missing))))


def test_what_is_as_it_was_needs_nothing() -> None:
    assert planned({"one": hive("one")}, {"one": hive("one")}) == []


def test_a_dropped_database_comes_back_parents_first() -> None:
    then = {"days": hive("days"), "ice": iceberg(1), "log": delta(), "seen": VIEW}
    assert planned({}, then, database=False, days=["1", "2"]) == [
        "+ database hive.d",
        "+ table hive.d.days",
        "+ table hive.d.ice",
        "+ table hive.d.log",
        "+ view hive.d.seen",
        "+ partition hive.d.days/ds=1",
        "+ partition hive.d.days/ds=2",
    ]


def test_one_table_takes_its_database_along_and_nothing_beside_it() -> None:
    then = {"one": hive("one"), "other": hive("other")}
    assert planned({}, then, "d.one", database=False) == ["+ database hive.d", "+ table hive.d.one"]


def undone(now: Tables, then: Tables, copies: Mapping[str, Copy], days: Collection[str] = ()) -> list[str]:
    """Return the plan where no folder of the commit is there, and snapshots have some of the tables."""
    overlay = Overlay(None)
    trees = tree(overlay, now), tree(overlay, then, days)
    missing = {said["storage"]["location"] for said in then.values()}
    found = {names.parse(name): copy for name, copy in copies.items()}
    wanted = RestoreTarget(trees[1], names.parse("d"))
    return list(map(str, restoring.plan(overlay, trees[0], wanted, Complete(missing), lambda _: found)))


def test_a_dropped_table_comes_back_out_of_a_snapshot_without_what_that_lacks() -> None:
    gone = f"{ROOT}/days/ds=2"
    copy = Copy("s1", "/d/days", exclusive=True, files=3, absent=(gone,))
    assert undone({}, {"days": hive("days"), "one": hive("one")}, {"d.days": copy}, ["1", "2"]) == [
        "+ table hive.d.days: 3 files come back from s1",
        f"! table hive.d.one: {ROOT}/one is not there",
        "+ partition hive.d.days/ds=1",
        f"! partition hive.d.days/ds=2: {gone} is neither there nor in the snapshot of its table",
    ]


def test_no_files_come_back_into_the_folder_of_another_table() -> None:
    other = hive("other", storage=hive("one")["storage"], type="MANAGED_TABLE")
    [line, *_] = undone(
        {"other": other}, {"one": hive("one")}, {"d.one": Copy("s1", "/d/one", exclusive=True)}
    )
    assert line.startswith("! table hive.d.one: hive.d.other uses its files (/d/one), and ")


def test_what_holds_a_table_is_not_altered_for_it() -> None:
    overlay = Overlay(None)
    now, then = tree(overlay, {}), tree(overlay, {"one": hive("one")})
    changed = {"location": ROOT, "owner": "ann"}
    root = build.Folder()
    root.put((build.CATALOG, build.SETTINGS), overlay.add_blob(build.settings()))
    root.put((build.CATALOG, "hive", "db", "d", "database.json"), overlay.add_blob(documents.pretty(changed)))
    now = root.write(overlay)
    found = [
        [
            str(one)
            for one in restoring.plan(overlay, now, RestoreTarget(then, names.parse(scope)), Complete())
        ]
        for scope in ("d.one", "d")
    ]
    assert found == [["+ table hive.d.one"], ["~ database hive.d", "+ table hive.d.one"]]


def test_one_partition_comes_back_alone() -> None:
    table = {"days": hive("days")}
    assert planned(table, table, "d.days/ds=2", days=["1", "2"]) == ["+ partition hive.d.days/ds=2"]


def test_a_changed_hive_table_becomes_what_it_was() -> None:
    assert planned({"one": hive("one", owner="ann")}, {"one": hive("one")}) == ["~ table hive.d.one"]


KEYS = "the metastore changes no partition keys ({}): drop it first"
BY_DAY = [{"name": "ds", "type": "string"}]
KEPT = "a table of iceberg that is there keeps its state; as it was: lakehouse catalog serve"


@pytest.mark.parametrize(
    ("now", "then", "line"),
    [
        (iceberg(2), iceberg(1), f"! table hive.d.ice: {KEPT}"),
        (iceberg(2), VIEW, f"! view hive.d.ice: {KEPT}"),
        (hive("ice"), iceberg(1), "! table hive.d.ice: a table of Hive has its name now: drop that first"),
        (VIEW, iceberg(1), "! table hive.d.ice: a view has its name now: drop that first"),
        (hive("ice", partition_keys=BY_DAY), hive("ice"), f"! table hive.d.ice: {KEYS.format('ds')}"),
        (hive("ice", partition_keys=BY_DAY), VIEW, f"! view hive.d.ice: {KEYS.format('ds')}"),
        (hive("ice"), hive("ice", partition_keys=BY_DAY), f"! table hive.d.ice: {KEYS.format('none')}"),
    ],
)
def test_a_table_with_a_state_of_its_own_is_never_moved_backwards(
    now: dict[str, Any], then: dict[str, Any], line: str
) -> None:
    assert planned({"ice": now}, {"ice": then}) == [line]


@pytest.mark.parametrize(
    ("scope", "lines"),
    [
        ("d", [f"! table hive.d.days: {KEYS.format('day')}"]),
        # Who asks for it alone is told why.
        ("d.days/ds=1", [f"! partition hive.d.days/ds=1: {KEYS.format('day')}"]),
    ],
)
def test_partitions_stay_with_a_table_that_is_left_alone(scope: str, lines: list[str]) -> None:
    now = hive("days", partition_keys=[{"name": "day", "type": "string"}])
    then = hive("days", partition_keys=BY_DAY)
    assert planned({"days": now}, {"days": then}, scope, days=["1", "2"]) == lines


def test_keys_of_another_type_are_changed() -> None:
    now = hive("one", partition_keys=[{"name": "ds", "type": "date", "comment": "of UTC"}])
    assert planned({"one": now}, {"one": hive("one", partition_keys=BY_DAY)}) == ["~ table hive.d.one"]


def test_a_transactional_table_is_altered_and_never_made() -> None:
    acid = hive("one", parameters={"transactional": "TRUE"})
    assert planned({}, {"one": acid}) == [f"! table hive.d.one: {restoring.TRANSACTIONAL}"]
    assert planned({"one": {**acid, "owner": "ann"}}, {"one": acid}) == ["~ table hive.d.one"]


def test_what_a_catalog_says_of_itself_is_left_as_it_is() -> None:
    overlay = Overlay(None)
    trees = []
    for said in ({"location": ROOT}, {"location": f"{ROOT}/other"}):
        root = build.Folder()
        root.put((build.CATALOG, build.SETTINGS), overlay.add_blob(build.settings()))
        root.put((build.CATALOG, "hive", "catalog.json"), overlay.add_blob(documents.pretty(said)))
        trees.append(root.write(overlay))
    wanted = RestoreTarget(trees[1], names.Name(), True)
    found = list(map(str, restoring.plan(overlay, trees[0], wanted, Complete())))
    assert found == ["! catalog hive: what a catalog says of itself is not restored"]


@pytest.mark.parametrize(
    ("name", "said", "place"),
    [
        ("ice", iceberg(1), f"{ROOT}/ice/metadata/1.json"),
        ("log", delta(), f"{ROOT}/log/_delta_log"),
        ("one", hive("one"), f"{ROOT}/one"),
    ],
)
def test_a_table_whose_files_are_gone_is_not_made(name: str, said: dict[str, Any], place: str) -> None:
    assert planned({}, {name: said}, missing=[place]) == [f"! table hive.d.{name}: {place} is not there"]


def test_a_table_with_a_file_that_is_gone_takes_its_partitions_along_and_others_go_on() -> None:
    then = {"days": hive("days"), "one": hive("one")}
    lines = planned({}, then, missing=[f"{ROOT}/days"], days=["1", "2"])
    assert lines == [f"! table hive.d.days: {ROOT}/days is not there", "+ table hive.d.one"]


def test_folders_of_partitions_are_looked_for_in_one_listing() -> None:
    overlay, files = Overlay(None), Complete([f"{ROOT}/days/ds=7"])
    table = {"days": hive("days")}
    now, then = tree(overlay, table), tree(overlay, table, [str(day) for day in range(100)])
    steps = restoring.plan(overlay, now, RestoreTarget(then, names.parse("d")), files)
    assert files.asked == [f"{ROOT}/days"]
    left = [(str(one), one.missing) for one in steps if one.operation is restoring.Operation.LEAVE]
    place = f"{ROOT}/days/ds=7"
    assert left == [(f"! partition hive.d.days/ds=7: {place} is not there", (place,))]


def test_what_the_commit_does_not_have_stays_unless_asked_for_and_goes_last() -> None:
    now, then = {"new": hive("new")}, {"old": hive("old")}
    why = "the commit does not have it; --drop takes it out of the catalog"
    assert planned(now, then) == [f"! table hive.d.new: {why}", "+ table hive.d.old"]
    assert planned(now, then, drop=True) == ["+ table hive.d.old", "- table hive.d.new"]


def managed(folder: str) -> dict[str, Any]:
    said = hive(folder)
    return said | {"type": "MANAGED_TABLE"}


def at(said: dict[str, Any], location: str) -> dict[str, Any]:
    return said | {"storage": said["storage"] | {"location": location}}


def uses(name: str, path: str) -> str:
    return restoring._SHARED.format(table=f"hive.d.{name}", path=path)


RENAMED = {
    "iceberg": (iceberg(5), iceberg(1), "/d/ice"),
    "the same metadata file": (at(iceberg(1), f"{ROOT}/other"), iceberg(1), "/d/ice/metadata/1.json"),
    "managed": (managed("old"), managed("old"), "/d/old"),
    "delta": (delta(), delta(), "/d/log"),
    "in its folder": (managed("old/in"), managed("old"), "/d/old/in"),
    "around its folder": (managed("old"), managed("old/in"), "/d/old"),
    "another spelling": (at(managed("x"), "hdfs://other:8020/d//old/"), at(managed("x"), "/d/old"), "/d/old"),
    "external, with a purge": (
        hive("old", parameters={"external.table.purge": "TRUE"}), hive("old"), "/d/old"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RENAMED)
def test_a_table_does_not_get_the_files_of_one_that_was_renamed(case: str) -> None:
    now, then, path = RENAMED[case]
    assert planned({"new": now}, {"t": then}, "d.t") == [f"! table hive.d.t: {uses('new', path)}"]
    # Outside of what is asked for, nothing is dropped.
    assert planned({"new": now}, {"t": then}, "d.t", drop=True) == [f"! table hive.d.t: {uses('new', path)}"]
    # The old entry goes first.
    assert planned({"new": now}, {"t": then}, drop=True) == ["- table hive.d.new", "+ table hive.d.t"]


def test_folders_with_a_common_beginning_are_two() -> None:
    assert planned({"one": managed("old2")}, {"one": managed("old2"), "t": managed("old")}) == [
        "+ table hive.d.t"
    ]


def test_two_names_of_a_merge_do_not_become_two_tables_on_the_same_files() -> None:
    then = {"a": iceberg(1), "b": iceberg(1)}
    left = f"! table hive.d.b: {uses('a', '/d/ice/metadata/1.json')}"
    assert planned({"t": iceberg(1)}, then, drop=True) == ["- table hive.d.t", "+ table hive.d.a", left]
    assert planned({}, then) == ["+ table hive.d.a", left]


def test_tables_that_swap_their_folders_are_altered_and_others_stay() -> None:
    now = {"a": managed("1"), "b": managed("2"), "c": managed("3")}
    assert planned(now, {"a": managed("2"), "b": managed("1"), "c": managed("3")}) == [
        "~ table hive.d.a",
        "~ table hive.d.b",
    ]
    # One that cannot get its files is in the way of the next one.
    assert planned(now, {"a": managed("2"), "b": managed("3"), "c": managed("3")}) == [
        f"! table hive.d.a: {uses('b', '/d/2')}",
        f"! table hive.d.b: {uses('c', '/d/3')}",
    ]


def test_external_tables_of_hive_share_files_as_in_the_commit() -> None:
    both = {"one": hive("shared"), "two": hive("shared")}
    assert planned({"one": hive("shared")}, both) == ["+ table hive.d.two"]
    # They did not in the commit.
    assert planned({"one": hive("shared")}, {"two": hive("shared")}, "d.two") == [
        f"! table hive.d.two: {uses('one', '/d/shared')}"
    ]


def test_a_partition_does_not_get_the_folder_of_another_table() -> None:
    table = {"days": at(managed("days"), f"{ROOT}/elsewhere")}
    now = {**table, "archive": managed("days/ds=1")}
    lines = planned(now, table, days=["1", "2"])
    assert f"! partition hive.d.days/ds=1: {uses('archive', '/d/days/ds=1')}" in lines
    assert "+ partition hive.d.days/ds=2" in lines


def test_a_clone_shares_the_files_of_its_tables() -> None:
    overlay = Overlay(None)
    now, then = tree(overlay, {"one": hive("one")}), tree(overlay, {"one": hive("one"), "two": hive("one")})
    wanted = RestoreTarget(then, names.parse("d"), shares=True)
    assert list(map(str, restoring.plan(overlay, now, wanted, Complete()))) == ["+ table hive.d.two"]


def test_a_function_is_no_part_of_a_table() -> None:
    function, table = names.parse("d.f()"), names.parse("d.t")
    assert not restoring._overlaps(function, table)
    assert not restoring._overlaps(table, function)
