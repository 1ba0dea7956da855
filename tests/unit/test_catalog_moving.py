"""A clone has the same files under another database; a catalog that moved has the new cluster's places."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lakehouse.catalog import build, diff, documents, relocation, restoring
from lakehouse.catalog.diff import Action
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Overlay
from lakehouse.catalog.relocation import Rule
from lakehouse.catalog.restoring import Operation, RestoreTarget
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.errors import UsageError
from tests.unit import catalog_states as states
from tests.unit.catalog_files import Complete
from tests.unit.catalog_states import LAKE

SALES, DEV = Name("hive", "sales"), Name("hive", "dev")
DAYS = Name("hive", "sales", "days")
OTHER = "hdfs://other/copy"


@pytest.fixture
def overlay() -> Overlay:
    return Overlay(None)


@pytest.fixture
def tree(overlay: Overlay) -> str:
    serde = {"buckets": -1, "serde": {"parameters": {"path": f"{LAKE}/t"}}}
    tables = {
        "days": states.table(partitions=states.days(*range(200)) | states.day("x", storage=serde)),
        "ice": states.iceberg(3),
        "look": states.table(type="VIRTUAL_VIEW", view="select 1"),
        "child": states.table(
            constraints=[
                {"name": "fk", "references": ["hive", "sales", "days", "a"]},
                {"name": "far", "references": ["hive", "hr", "people", "a"]},
            ]
        ),
    }
    return states.tree(overlay, {"sales": tables, "hr": {"people": states.table()}})


def said(overlay: Overlay, tree: str, database: Name, table: str) -> dict[str, Any]:
    return dict(
        SnapshotReader(overlay, tree).document(Name(database.catalog, database.database, table)) or {}
    )


def texts(value: Any) -> Iterator[str]:
    """Give every text in a document."""
    if isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, (int, float)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def test_a_clone_is_a_database_more_and_nothing_else(overlay: Overlay, tree: str) -> None:
    clone, _ = relocation.cloned(overlay, tree, SALES, "dev")
    found = list(diff.changes(overlay, tree, clone))
    assert {(one.action, one.name.database) for one in found} == {(Action.ADDED, "dev")}
    assert {one.name.table for one in found} == {"", "days", "look", "child"}
    past = SnapshotReader(overlay, clone)
    days = Name("hive", "dev", "days")
    own = Name("hive", "sales", "days")
    assert past.partitions(days) == past.partitions(own)
    assert past.partition(Name("hive", "dev", "days", "ds=x")) == past.partition(
        Name("hive", "sales", "days", "ds=x")
    )


def test_the_files_of_a_clone_are_not_its_own(overlay: Overlay, tree: str) -> None:
    clone, _ = relocation.cloned(overlay, tree, SALES, "dev")
    days, before = said(overlay, clone, DEV, "days"), said(overlay, tree, SALES, "days")
    assert days["type"] == "EXTERNAL_TABLE"
    # Its own folder is none: the metastore has to accept the other one's.
    assert days["parameters"] == {
        "EXTERNAL": "TRUE", "external.table.purge": "FALSE", "lakehouse.shared-location": "true",
    }  # fmt: skip
    assert days["storage"] == before["storage"]
    assert said(overlay, clone, DEV, "look") == said(overlay, tree, SALES, "look")
    # New tables of the clone do not land among the other's.
    assert (SnapshotReader(overlay, clone).document(DEV) or {})["location"] == "hdfs://dev"
    assert (SnapshotReader(overlay, clone).document(SALES) or {})["location"] == LAKE


def test_a_table_that_describes_itself_is_left_out_and_named(overlay: Overlay, tree: str) -> None:
    clone, [left] = relocation.cloned(overlay, tree, SALES, "dev")
    assert str(left) == "! table hive.dev.ice: two tables of iceberg on the same files"
    assert SnapshotReader(overlay, clone).tables(DEV) == ["child", "days", "look"]


def test_a_transactional_table_has_no_clone(overlay: Overlay) -> None:
    acid = states.table(parameters={"transactional": "true"})
    known = states.tree(overlay, {"sales": {"acid": acid, "plain": states.table()}})
    clone, [left] = relocation.cloned(overlay, known, SALES, "dev")
    assert str(left) == f"! table hive.dev.acid: {restoring.TRANSACTIONAL}"
    assert SnapshotReader(overlay, clone).tables(DEV) == ["plain"]


def test_keys_of_a_clone_refer_to_the_clone(overlay: Overlay, tree: str) -> None:
    child = said(overlay, relocation.cloned(overlay, tree, SALES, "dev")[0], DEV, "child")
    assert [one["references"][1] for one in child["constraints"]] == ["dev", "hr"]
    # Names are unique in the metastore.
    assert [one["name"] for one in child["constraints"]] == ["dev_fk", "dev_far"]


@pytest.mark.parametrize(
    ("database", "other", "why"),
    [
        (SALES, "hr", "--as hr: the commit has a database of that name"),
        (SALES, "HR", "--as HR: small letters, digits and _ alone"),
        (SALES, "../hr", "--as ../hr: small letters, digits and _ alone"),
        (Name("hive", "nobody"), "dev", "hive.nobody is no database of the commit"),
        (Name("spark", "sales"), "dev", "spark.sales is no database of the commit"),
    ],
)
def test_a_clone_needs_a_database_and_a_new_name(
    overlay: Overlay, tree: str, database: Name, other: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        relocation.cloned(overlay, tree, database, other)


def test_a_clone_is_planned_like_a_restore(overlay: Overlay, tree: str) -> None:
    clone, _ = relocation.cloned(overlay, tree, SALES, "dev")
    steps = restoring.plan(overlay, tree, RestoreTarget(clone, DEV, shares=True), Complete())
    assert {one.operation for one in steps} == {Operation.MAKE}
    assert len(steps) == 1 + 3 + 201
    assert restoring.plan(overlay, clone, RestoreTarget(clone, DEV, shares=True), Complete()) == ()


def test_every_place_moves_and_what_is_beside_it_stays(overlay: Overlay, tree: str) -> None:
    made = relocation.moved(overlay, tree, [Rule(f"{LAKE}/t", f"{OTHER}/t")])
    past = SnapshotReader(overlay, made)
    known = [one for _, one in past.tables_in(Name())]
    known += [past.partition(replace(DAYS, partition=one)) or {} for one in past.partitions(DAYS)]
    found = [text for one in known for text in texts(one) if "hdfs://" in text]
    assert {text.split("/t")[0] for text in found if "/m3" not in text} == {OTHER}
    # Not below the place of the rule.
    assert said(overlay, made, SALES, "ice")["data"]["metadata"] == f"{LAKE}/m3.json"
    moved = relocation.moved(overlay, tree, [Rule(LAKE, OTHER)])
    assert said(overlay, moved, SALES, "ice")["data"]["metadata"] == f"{OTHER}/m3.json"


def test_partitions_that_moved_are_as_a_read_would_have_them(overlay: Overlay, tree: str) -> None:
    made = relocation.moved(overlay, tree, [Rule(LAKE, OTHER)])
    files = overlay.tree(made)
    for word in (build.CATALOG, *Name("hive", "sales", "days").path):
        number = files[word]
        files = overlay.tree(number)
    shapes = json.loads(overlay.blob(files[build.SHAPES]))
    assert {documents.digest(documents.line(one)) for one in shapes.values()} == set(shapes)
    used = {
        json.loads(text)["shape"]
        for one in diff.ranges_of(overlay, files)
        for text in overlay.blob(one).splitlines()
    }
    assert used == set(shapes)
    assert f"{OTHER}/t" in set(texts(shapes))


def test_there_and_back_is_the_same_tree(overlay: Overlay, tree: str) -> None:
    there = relocation.moved(overlay, tree, [Rule(LAKE, OTHER)])
    assert there != tree
    assert relocation.moved(overlay, there, [Rule(OTHER, LAKE)]) == tree


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("hdfs://a/x", "hdfs://b/y/x"),
        ("hdfs://a", "hdfs://b/y"),
        ("hdfs://ab/x", "hdfs://ab/x"),
        ("s3://a/x", "s3://a/x"),
    ],
)
def test_a_rule_is_about_whole_words_of_a_path(place: str, found: str) -> None:
    assert relocation.rule("hdfs://a/=hdfs://b/y/")(place) == found


@pytest.mark.parametrize("text", ["", "hdfs://a", "=hdfs://a", "hdfs://a=", "/a=/b"])
def test_a_rule_names_two_places(text: str) -> None:
    with pytest.raises(UsageError, match="FROM=TO"):
        relocation.rule(text)
