"""A condition on an Iceberg table means to scans, counts, deletes and overwrites what it means in SQL."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lakehouse_clients import ClientError
from lakehouse_clients.conditions import exact
from lakehouse_clients.tables import Table
from pyiceberg import expressions
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType

NAN = math.nan
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "k", StringType()),
    NestedField(3, "x", DoubleType()),
    NestedField(4, "at", TimestampType()),
)
ARROW = pa.schema([("id", pa.int64()), ("k", pa.string()), ("x", pa.float64()), ("at", pa.timestamp("us"))])
BY_KEY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "k"))

Row = tuple[str | None, float | None]


class InMemory(NoopCatalog):
    """A catalog of one table, which it keeps in memory; the table's files lie in a folder."""

    def __init__(self, folder: Path, spec: PartitionSpec) -> None:
        super().__init__("test")
        self.io = PyArrowFileIO()
        self.place = f"{folder.as_uri()}/metadata/0.json"
        self.metadata = new_table_metadata(SCHEMA, spec, UNSORTED_SORT_ORDER, folder.as_uri())

    def load_table(self, identifier: Any) -> Table:
        return Table(identifier, self.metadata, self.place, self.io, self)

    def commit_table(self, table: Any, _requirements: Any, updates: Any) -> CommitTableResponse:
        self.metadata = update_table_metadata(table.metadata, updates, enforce_validation=True)
        return CommitTableResponse.model_validate(
            {"metadata": self.metadata, "metadata-location": self.place}
        )


def new_table(folder: Path, spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC) -> Table:
    return InMemory(folder, spec).load_table(("db", "t"))


def equal_to(column: str, value: str) -> expressions.BooleanExpression:
    return expressions.EqualTo(column, value)  # type: ignore[call-arg, arg-type]


def rows_of(*rows: Row, first: int = 0) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    ids = range(first, first + len(rows))
    return pa.table([list(ids), columns[0], columns[1], [None] * len(rows)], schema=ARROW)


# --- What SQL says: None is neither true nor false ---


def _compare(operation: Callable[[Any, Any], bool], value: Any, literal: Any) -> bool | None:
    return None if value is None else operation(value, literal)


def _both(one: bool | None, two: bool | None) -> bool | None:
    return False if False in (one, two) else None if None in (one, two) else True


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


Meaning = Callable[[Row], bool | None]
Condition = tuple[str, Meaning]
OPERATIONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COLUMNS = {"k": 0, "x": 1}
TEXTS = ["", "a", "b", "it's", "B"]
NUMBERS = [0.0, 1.0, 2.5]


def _text(value: str | float) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def comparison(column: str, sign: str, literal: str | float) -> Condition:
    return (
        f"{column} {sign} {_text(literal)}",
        lambda row: _compare(OPERATIONS[sign], row[COLUMNS[column]], literal),
    )


def membership(column: str, literals: list[Any], negated: bool) -> Condition:
    def meaning(row: Row) -> bool | None:
        value = row[COLUMNS[column]]
        found = None if value is None else value in literals
        return _not(found) if negated else found

    return f"{column} {'not ' * negated}in ({', '.join(map(_text, literals))})", meaning


def prefix(text: str, negated: bool) -> Condition:
    def meaning(row: Row) -> bool | None:
        found = None if row[0] is None else row[0].startswith(text)
        return _not(found) if negated else found

    return f"k {'not ' * negated}like {_text(text + '%')}", meaning


def is_null(column: str, negated: bool) -> Condition:
    return (
        f"{column} is {'not ' * negated}null",
        lambda row: (row[COLUMNS[column]] is None) != negated,
    )


def is_nan(negated: bool) -> Condition:
    return (
        f"x is {'not ' * negated}nan",
        lambda row: None if row[1] is None else math.isnan(row[1]) != negated,
    )


def _negation(one: Condition) -> Condition:
    return f"not ({one[0]})", lambda row: _not(one[1](row))


def _conjunction(one: Condition, two: Condition) -> Condition:
    return f"({one[0]}) and ({two[0]})", lambda row: _both(one[1](row), two[1](row))


def _disjunction(one: Condition, two: Condition) -> Condition:
    return f"({one[0]}) or ({two[0]})", lambda row: _not(_both(_not(one[1](row)), _not(two[1](row))))


negated = st.booleans()
leaves = st.one_of(
    st.builds(comparison, st.just("k"), st.sampled_from(list(OPERATIONS)), st.sampled_from(TEXTS)),
    st.builds(comparison, st.just("x"), st.sampled_from(list(OPERATIONS)), st.sampled_from(NUMBERS)),
    st.builds(membership, st.just("k"), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3), negated),
    st.builds(membership, st.just("x"), st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3), negated),
    st.builds(prefix, st.sampled_from(["", "a", "it's"]), negated),
    st.builds(is_null, st.sampled_from(["k", "x"]), negated),
    st.builds(is_nan, negated),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(_negation, inner),
        st.builds(_conjunction, inner, inner),
        st.builds(_disjunction, inner, inner),
    ),
    max_leaves=4,
)
rows = st.tuples(st.none() | st.sampled_from(TEXTS), st.none() | st.sampled_from([*NUMBERS, NAN]))
files = st.lists(st.lists(rows, min_size=1, max_size=3), min_size=1, max_size=3)
specs = st.sampled_from([UNPARTITIONED_PARTITION_SPEC, BY_KEY])

A_FILE_EACH: list[list[Row]] = [[("a", 1.0)], [("b", 2.5)], [(None, None)], [("", NAN)]]


@given(files, conditions, specs)
@example(A_FILE_EACH, comparison("k", "!=", "a"), UNPARTITIONED_PARTITION_SPEC)
@example(A_FILE_EACH, membership("k", ["a", "b"], True), UNPARTITIONED_PARTITION_SPEC)
@example(A_FILE_EACH, _negation(comparison("k", "=", "a")), BY_KEY)
@example(A_FILE_EACH, comparison("x", "!=", 1.0), UNPARTITIONED_PARTITION_SPEC)
@example([[(None, 1.0), ("a", NAN)]], comparison("x", "!=", 1.0), UNPARTITIONED_PARTITION_SPEC)
@example([[("a", 2.5), ("b", NAN)]], comparison("x", ">", 1.0), UNPARTITIONED_PARTITION_SPEC)
@example([[("a", NAN)]], _negation(comparison("x", ">", 1.0)), UNPARTITIONED_PARTITION_SPEC)
@example(
    [[(None, 1.0), (None, 2.5), ("a", 1.0)]],
    _disjunction(_conjunction(is_null("k", False), comparison("x", "=", 1.0)), comparison("k", "=", "a")),
    UNPARTITIONED_PARTITION_SPEC,
)
@example(
    [[("b", None), (None, None)]],
    _disjunction(comparison("k", "<=", "a"), membership("x", [1.0], True)),
    BY_KEY,
)
@example([[("a", NAN), ("b", None)]], is_null("x", True), UNPARTITIONED_PARTITION_SPEC)
@example(
    [[("a", NAN), ("b", None)]],
    _disjunction(is_null("x", False), comparison("k", "=", "a")),
    UNPARTITIONED_PARTITION_SPEC,
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_scan_a_count_and_a_delete_select_what_sql_selects(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[list[Row]],
    condition: Condition,
    spec: PartitionSpec,
) -> None:
    text, meaning = condition
    table = new_table(tmp_path_factory.mktemp("table"), spec)
    model: dict[int, Row] = {}
    for part in parts:
        table.append(rows_of(*part, first=len(model)))
        model |= dict(enumerate(part, len(model)))
    wanted = sorted(each for each, row in model.items() if meaning(row) is True)
    scan = table.scan(row_filter=text)
    assert sorted(scan.to_arrow()["id"].to_pylist()) == wanted, f"scan {text} of {model}"
    assert scan.count() == len(wanted), f"count {text} of {model}"
    batches = table.scan(row_filter=text, selected_fields=("id",)).to_arrow_batch_reader()
    assert sorted(batches.read_all()["id"].to_pylist()) == wanted, f"batches {text} of {model}"
    table.delete(text)
    left = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert left == sorted(model.keys() - set(wanted)), f"delete {text} of {model}"


def test_conditions_may_be_expressions_and_are_added_to_a_scan(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows_of(("a", 1.0), (None, 1.0), ("b", NAN), ("c", 1.0)))
    assert table.scan(~equal_to("k", "a")).filter("x != 2.0").to_arrow()["id"].to_pylist() == [2, 3]
    assert table.scan("x != 2.0", limit=2).to_arrow().num_rows == 2
    assert table.scan("x > 5.0", selected_fields=("k",)).to_arrow().schema.names == ["k"]
    appended = table.incremental_append_scan(row_filter="k not in ('a', 'b')")
    assert appended.to_arrow()["id"].to_pylist() == [3]
    assert appended.filter("x != 1.0").to_arrow_batch_reader().read_all().num_rows == 0


def test_an_overwrite_replaces_what_its_condition_finds_and_no_more(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for row in [("a", 1.0), (None, 1.0), ("b", 1.0)]:
        table.append(rows_of(row))
    table.overwrite(rows_of(("new", 1.0)), overwrite_filter="k != 'a'")
    assert sorted(table.scan().to_arrow()["k"].to_pylist(), key=str) == [None, "a", "new"]


def test_an_upsert_refuses_keys_that_equal_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows_of(("a", 1.0)))
    with pytest.raises(ClientError, match="the key k is NULL or NaN in some rows"):
        table.upsert(rows_of(("a", 2.0), (None, 2.0)), join_cols=["k"])
    assert table.upsert(rows_of(("a", 2.0), ("it's", NAN)), join_cols=["k"]).rows_inserted == 1
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == ["a", "it's"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (r"k = 'it\'s'", "has a backslash.*write '' for a quote"),
        (r"k in ('a\', 'b')", "has a backslash"),
        ("k like 'a_c%'", "LIKE with _, which is no wildcard"),
        ("k NOT LIKE'_'", "LIKE with _"),
        ("k like '%a'", "cannot read the condition.*only supports wildcard, '%', at the end"),
        ("k = null", "cannot read the condition 'k = null'"),
        ("lower(k) = 'a'", "cannot read"),
        ("k = 'a'; true", "cannot read"),
    ],
)
def test_a_condition_that_pyiceberg_reads_otherwise_than_sql_is_one_line(text: str, why: str) -> None:
    with pytest.raises(ClientError, match=why) as raised:
        exact(text)
    assert "\n" not in str(raised.value)


def test_an_underscore_or_a_quote_outside_of_like_is_text() -> None:
    assert exact("k = 'like _'") == exact(equal_to("k", "like _"))
    assert exact("k = 'it''s _'") == exact(equal_to("k", "it's _"))


@pytest.mark.parametrize(
    ("source", "transform"),
    [
        (4, YearTransform()),
        (4, MonthTransform()),
        (4, DayTransform()),
        (4, HourTransform()),
        (2, TruncateTransform(1)),
        (1, BucketTransform(2)),
    ],
    ids=str,
)
def test_tables_of_every_partitioning_are_written(tmp_path: Path, source: int, transform: Any) -> None:
    """What PyIceberg needs for it is in the locked requirements."""
    table = new_table(tmp_path, PartitionSpec(PartitionField(source, 1000, transform, "p")))
    at = pa.array([0, 86_400_000_000 * 40, None], pa.timestamp("us"))
    rows = rows_of(("aa", 1.0), ("b", 2.0), (None, 3.0)).set_column(3, "at", at)
    table.append(rows)
    table.upsert(rows.slice(0, 2).set_column(2, "x", pa.array([9.0, 9.0])), join_cols=["id"])
    table.delete("k = 'b'")
    left = table.scan().to_arrow().select(["id", "x"]).sort_by("id").to_pylist()
    assert left == [{"id": 0, "x": 9.0}, {"id": 2, "x": 3.0}]
