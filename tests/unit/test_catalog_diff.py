"""Differences are whole, sorted, and of what changed alone; equal partitions lie in equal files."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.catalog import build, ddl, diff, documents, names, ranges, text
from lakehouse.catalog.diff import Action, Change, Look
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Batch, Overlay
from lakehouse.catalog.store import Store, Writer
from lakehouse.errors import UsageError

WORDS = st.text(min_size=1, max_size=6)
COLUMNS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcdefgh"), "type": st.sampled_from(["int", "string", "a<b:int>"])}
    ),
    unique_by=lambda one: str(one["name"]),
)
PARAMETERS = st.dictionaries(WORDS, st.one_of(st.none(), WORDS), max_size=4)
TABLES = st.fixed_dictionaries(
    {"type": st.sampled_from(["EXTERNAL_TABLE", "VIRTUAL_VIEW"]), "owner": WORDS},
    optional={
        "parameters": PARAMETERS,
        "partition_keys": COLUMNS,
        "storage": st.fixed_dictionaries(
            {"columns": COLUMNS},
            optional={
                "location": WORDS,
                "serde": st.fixed_dictionaries({"parameters": PARAMETERS}),
                "buckets": st.integers(),
            },
        ),
    },
)
DATES = st.lists(st.dates(), unique=True, max_size=300)


def partition(name: str, **more: object) -> tuple[str, str]:
    return name, documents.line({"name": name, "shape": "s", **more})


def tree(overlay: Writer, tables: dict[str, tuple[dict[str, Any], dict[str, str]]]) -> str:
    """Make a commit's tree of tables, each a document and its lines of partitions."""
    root = build.Folder()
    for table, (said, lines) in tables.items():
        path = (build.CATALOG, *Name("hive", "d", table).path)
        root.put((*path, build.TABLE), overlay.add_blob(documents.pretty(said)))
        if lines:
            root.put((*path, build.SHAPES), overlay.add_blob(documents.pretty({"s": {"buckets": 1}})))
            build.put_lines(root.at(path), overlay, sorted(lines.items()))
    return root.write(overlay)


@given(TABLES, TABLES)
def test_differences_are_what_makes_one_the_other(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = diff.fields(one)
    for field, before, after in diff.differences(one, other):
        if field == diff.ORDER:
            continue
        assert found.get(field) == before
        kept = (
            {key: value for key, value in after.items() if key != "position"}
            if isinstance(after, dict)
            else after
        )
        found[field] = kept
    told = {key: value for key, value in found.items() if value is not None}
    assert told == {key: value for key, value in diff.fields(other).items() if value is not None}
    assert list(diff.differences(one, one)) == []


@given(COLUMNS, st.randoms(use_true_random=False))
def test_another_order_of_columns_is_one_change(columns: list[dict[str, str]], dice: Any) -> None:
    mixed = list(columns)
    dice.shuffle(mixed)
    found = list(diff.differences({"storage": {"columns": columns}}, {"storage": {"columns": mixed}}))
    assert [field for field, *_ in found] == ([diff.ORDER] if mixed != columns else [])


def test_a_column_in_the_middle_is_one_change_with_its_place() -> None:
    one, other = ([{"name": name, "type": "int"} for name in letters] for letters in ("ac", "abc"))
    [(field, before, after)] = diff.differences(
        {"storage": {"columns": one}}, {"storage": {"columns": other}}
    )
    assert (field, before, after) == ("column b", None, {"type": "int", "position": 2})


@settings(max_examples=60)
@given(DATES, DATES)
def test_partitions_are_told_one_by_one_whatever_file_they_are_in(one: list[Any], other: list[Any]) -> None:
    overlay = Overlay(None)
    before, after = (
        tree(overlay, {"t": ({"type": "X"}, dict(partition(f"ds={day}") for day in days))})
        for days in (one, other)
    )
    found = list(diff.changes(overlay, before, after))
    added = {f"ds={day}" for day in other} - {f"ds={day}" for day in one}
    removed = {f"ds={day}" for day in one} - {f"ds={day}" for day in other}
    assert {change.name.partition for change in found if change.action is Action.ADDED} == added
    assert {change.name.partition for change in found if change.action is Action.REMOVED} == removed
    assert len(found) == len(added) + len(removed)
    assert [change.name for change in found] == sorted(change.name for change in found)


@given(st.lists(WORDS, unique=True, max_size=400))
def test_files_hold_every_partition_once_and_in_order(found: list[str]) -> None:
    lines = sorted(partition(name) for name in found)
    files = [one for _, folder in ranges.folders(lines) for one in folder]
    assert [line for _, texts in files for line in texts] == [line for _, line in lines]
    assert len({name for name, _ in files}) == len(files)


def test_one_partition_among_many_changes_one_file() -> None:
    days = [f"ds={number:06d}" for number in range(20_000)]
    whole = _files(days)
    assert 200 < len(whole) < 450
    for number in range(0, 20_000, 997):
        less = _files([*days[:number], *days[number + 1 :]])
        assert len(whole - less) <= 2, days[number]


def _files(days: list[str]) -> set[tuple[str, ...]]:
    found = ranges.folders(partition(day) for day in days)
    return {tuple(texts) for _, folder in found for _, texts in folder}


@given(st.text(min_size=1, alphabet=st.characters(codec="utf-8")))
def test_a_name_is_that_of_one_file(name: str) -> None:
    assert names.plain(names.escaped(name)) == name
    assert not set(names.escaped(name)) & set("/.~ :\\\0")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("sales", Name("hive", "sales")),
        ("sales.orders", Name("hive", "sales", "orders")),
        ("other.far.plain", Name("other", "far", "plain")),
        ("sales.orders/ds=1.5/h=2", Name("hive", "sales", "orders", "ds=1.5/h=2")),
        ("sales.a/b", Name("hive", "sales", "a/b")),
        ("other.sales.a/b/ds=1/h=2", Name("other", "sales", "a/b", "ds=1/h=2")),
        ("sales.orders/", Name("hive", "sales", "orders")),
        ("sales.mask_it()", Name("hive", "sales", function="mask_it")),
    ],
)
def test_names_are_read_as_people_write_them(said: str, name: Name) -> None:
    assert names.parse(said) == name
    assert names.parse(str(name).removeprefix("hive.")) == name


@pytest.mark.parametrize("said", ["", ".", "a.", "a..b", "a.b.c.d", "a/b", "/ds=1", "a/b.c"])
def test_what_is_no_name_is_refused(said: str) -> None:
    with pytest.raises(UsageError, match="no name; as in"):
        names.parse(said)


def test_parameters_are_left_out_by_pattern_and_data_by_wish() -> None:
    said = {
        "parameters": {
            "etl.run": "1",
            "table_type": "ICEBERG",
            "metadata_location": "m",
            "current-snapshot-id": "7",
        },
        "data": {"format": "iceberg"},
    }
    assert diff.fields(said) == {
        "parameter etl.run": "1",
        "parameter table_type": "ICEBERG",
        "data": said["data"],
    }
    assert diff.fields(said, Look(ignored=("etl.*",), data=False)) == {"parameter table_type": "ICEBERG"}


@pytest.mark.parametrize(
    ("parameters", "kind", "found"),
    [
        ({"table_type": "ICEBERG", "metadata_location": "m"}, "EXTERNAL_TABLE", "iceberg"),
        ({"table_type": "iceberg", "metadata_location": "m"}, "VIRTUAL_VIEW", "iceberg"),
        ({"table_type": "ICEBERG"}, "EXTERNAL_TABLE", "hive"),
        ({"spark.sql.sources.provider": "DELTA"}, "MANAGED_TABLE", "delta"),
        ({"spark.sql.sources.provider": "hudi"}, "EXTERNAL_TABLE", "hudi"),
        ({"spark.sql.sources.provider": "parquet"}, "EXTERNAL_TABLE", "hive"),
        ({}, "VIRTUAL_VIEW", "view"),
    ],
)
def test_the_format_is_what_parameters_say(parameters: dict[str, str], kind: str, found: str) -> None:
    assert documents.table_format({"type": kind, "parameters": parameters}) == found


TABLE = Name("hive", "d", "it's")
CREATED = {
    "type": "EXTERNAL_TABLE",
    "partition_keys": [{"name": "ds", "type": "string"}],
    "parameters": {"EXTERNAL": "TRUE", "a": "it's"},
    "storage": {
        "columns": [{"name": "x`y", "type": "int", "comment": "a\nb"}], "location": "hdfs://l/t",
        "input_format": "I", "output_format": "O", "serde": {"library": "S", "parameters": {"p": "\\"}},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "statement"),
    [
        (
            Change(Action.ADDED, "table", TABLE, "", None, CREATED, 3, "hive"),
            "CREATE EXTERNAL TABLE `d`.`it's` (`x``y` int COMMENT 'a\\nb') PARTITIONED BY (`ds` string)"
            " ROW FORMAT SERDE 'S' WITH SERDEPROPERTIES ('p'='\\\\')"
            " STORED AS INPUTFORMAT 'I' OUTPUTFORMAT 'O' LOCATION 'hdfs://l/t'"
            " TBLPROPERTIES ('a'='it\\'s'); -- without its 3 partitions",
        ),
        (
            Change(Action.CHANGED, "table", TABLE, "parameter k", "1", None, 0, "hive"),
            "ALTER TABLE `d`.`it's` UNSET TBLPROPERTIES IF EXISTS ('k');",
        ),
        (
            Change(
                Action.CHANGED, "table", TABLE, "column c", None, {"type": "int", "position": 4}, 0, "hive"
            ),
            "ALTER TABLE `d`.`it's` ADD COLUMNS (`c` int); -- as the last; it is column 4",
        ),
        (
            Change(
                Action.ADDED,
                "partition",
                Name("hive", "d", "t", "a=x%3Dy/b=1"),
                "",
                None,
                {"location": "l"},
                0,
                "hive",
            ),
            "ALTER TABLE `d`.`t` ADD IF NOT EXISTS PARTITION (`a`='x=y', `b`='1') LOCATION 'l';",
        ),
        (
            Change(
                Action.ADDED,
                "database",
                Name("hive", "d"),
                "",
                None,
                {"location": "l", "description": "it's"},
            ),
            "CREATE DATABASE IF NOT EXISTS `d` COMMENT 'it\\'s' LOCATION 'l';",
        ),
    ],
)
def test_a_change_is_a_statement_where_there_is_one(change: Change, statement: str) -> None:
    assert list(ddl.statements([change])) == [statement]


@pytest.mark.parametrize(
    "change",
    [
        Change(Action.REMOVED, "table", TABLE, "", CREATED, None, 3, "hive"),
        Change(
            Action.ADDED,
            "table",
            TABLE,
            "",
            CREATED | {"type": "MANAGED_TABLE"},
            CREATED | {"type": "X"},
            0,
            "hive",
        ),
        Change(Action.CHANGED, "table", TABLE, "data", {"snapshot": "1"}, {"snapshot": "2"}, 0, "iceberg"),
        Change(
            Action.CHANGED, "table", TABLE, "column a", None, {"type": "int); DROP", "position": 1}, 0, "hive"
        ),
        Change(Action.CHANGED, "table", TABLE, "column a", {"type": "int"}, None, 0, "hive"),
        Change(Action.REMOVED, "partition", Name("hive", "d", "t", "a=1"), "", {}, None, 0, "hive"),
        Change(
            Action.ADDED,
            "partition",
            Name("hive", "d", "t", "a=__HIVE_DEFAULT_PARTITION__"),
            "",
            None,
            {},
            0,
            "hive",
        ),
        Change(Action.ADDED, "table", Name("other", "d", "t"), "", None, CREATED, 0, "hive"),
    ],
)
def test_what_no_statement_does_is_a_comment_of_one_line(change: Change) -> None:
    [line] = ddl.statements([change])
    assert line.startswith("-- no statement: ")
    assert "\n" not in line


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\x0b"])
def test_a_name_with_a_line_break_ends_no_line(end: str) -> None:
    name, said = f"t{end}DROP DATABASE d; --", {"type": "int", "position": 1}
    for change in (
        Change(Action.ADDED, "table", Name("hive", "d", name), "", None, CREATED, 0, "hive"),
        Change(Action.ADDED, "database", Name("hive", name), "", None, {"location": "l"}),
        Change(Action.CHANGED, "table", TABLE, f"column {name}", None, said, 0, "hive"),
        Change(Action.ADDED, "partition", Name("hive", "d", "t", f"{name}=1"), "", None, {}, 0, "hive"),
    ):
        [line] = ddl.statements([change])
        assert line.startswith("-- no statement: ")
        assert len(line.splitlines()) == 1
    [line] = ddl.statements([Change(Action.CHANGED, "table", TABLE, "location", "l", name, 0, "hive")])
    assert len(line.splitlines()) == 1
    assert line.startswith("ALTER TABLE `d`.`it's` SET LOCATION 't\\")


@given(TABLES, TABLES)
def test_every_change_is_one_line_of_text_and_of_json(one: dict[str, Any], other: dict[str, Any]) -> None:
    overlay = Overlay(None)
    found = diff.changes(
        overlay, tree(overlay, {"t": (one, {})}), tree(overlay, {"t": (other, {}), "u": (one, {})})
    )
    for change in found:
        assert text.change(change).count("\n") == 0
        assert json.loads(json.dumps(change.json()))["database"] == "d"


def test_a_tree_is_readable_by_git(tmp_path: Any) -> None:
    """A checkout of a commit has the files that docs/catalog-history.md shows."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    store = Store.made(tmp_path / "h.git")
    batch = Batch(store)
    lines = dict(partition(f"ds={day:04d}") for day in range(200))
    made = tree(batch, {"a b": ({"type": "X"}, lines)})
    batch.flush()
    with store.locked():
        store.record(made, None, "a <a@b>", 1, "one")
    subprocess.run(["git", "clone", "-q", str(store.path), str(tmp_path / "out")], check=True)
    files = sorted((tmp_path / "out").rglob("*.jsonl"))
    assert files[0].relative_to(tmp_path / "out").parts[:7] == (
        "catalog",
        "hive",
        "db",
        "d",
        "table",
        "a%20b",
        "partitions",
    )
    assert "".join(path.read_text() for path in files).count("\n") == 200
