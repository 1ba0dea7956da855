"""What may be read of a Delta table, without a cluster: the tables lie in a folder of the test."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from lakehouse_clients import ClientError, delta
from lakehouse_clients.arrow import plain
from lakehouse_clients.metastore import delta_row, format_of
from lakehouse_clients.names import Name
from pyarrow import parquet

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "at": pa.array([1_700_000_000_123_456, None], pa.timestamp("us", "UTC")),
        "Odd name": ["x", "y"],
        "many": pa.array([["a", None], None], pa.list_(pa.string())),
        "inner": pa.array([{"s": "q"}, None], pa.struct([("s", pa.string())])),
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    write_deltalake(str(tmp_path / "t"), ROWS)
    return str(tmp_path / "t")


def test_all_rows_come_with_microseconds_in_utc_and_without_views(folder: str) -> None:
    read = delta.read(delta.load(folder, {}), None, None)
    assert read.sort_by("id").to_pylist() == ROWS.to_pylist()
    assert read.schema.field("at").type == pa.timestamp("us", "UTC")
    assert read.schema.field("Odd name").type == pa.string()


def test_columns_and_condition_narrow_it_down(folder: str) -> None:
    read = delta.read(delta.load(folder, {}), ["Odd name"], "id > 1")
    assert read.to_pydict() == {"Odd name": ["y"]}


def test_an_older_version_is_read(folder: str) -> None:
    write_deltalake(folder, ROWS, mode="append")
    assert [delta.read(delta.load(folder, {}, version), ["id"], None).num_rows for version in (0, 1)] == [
        2,
        4,
    ]


def test_a_column_mapped_table_is_not_read_as_null(tmp_path: Path) -> None:
    folder = str(tmp_path / "mapped")
    write_deltalake(folder, ROWS.select(["id"]))
    log = Path(folder, "_delta_log", "00000000000000000000.json")
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
            schema = json.loads(action["metaData"]["schemaString"])
            for number, column in enumerate(schema["fields"]):
                column["metadata"] = {
                    "delta.columnMapping.id": number + 1,
                    "delta.columnMapping.physicalName": column["name"],
                }
            action["metaData"]["schemaString"] = json.dumps(schema)
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    table = delta.load(folder, {})
    for way in (table.to_pyarrow_dataset, table.to_pyarrow_table, table.to_pandas):
        with pytest.raises(ClientError, match=r"has column mapping, .* next: read it with lake\.arrow"):
            way()


LONG = Decimal("-123456789.123456789123456789")
DECIMALS = pa.table({"x": pa.array([LONG], pa.decimal128(38, 18)), "Odd": [1]})
NEGATIVE = f"x = CAST('{LONG}' AS DECIMAL(38, 18))"


def test_long_decimals_are_found_by_a_filter(tmp_path: Path) -> None:
    folder = str(tmp_path / "decimals")
    write_deltalake(folder, DECIMALS, writer_properties=delta.writer_properties(DECIMALS.schema))
    for condition in (NEGATIVE, "x < 0", '"Odd" = 1'):
        assert delta.read(delta.load(folder, {}), None, condition).to_pylist() == DECIMALS.to_pylist()


def test_deltalake_alone_still_loses_long_decimals(tmp_path: Path) -> None:
    """The day that it does not, `writer_properties` can go."""
    folder = str(tmp_path / "decimals")
    write_deltalake(folder, DECIMALS)
    assert delta.read(delta.load(folder, {}), None, NEGATIVE).num_rows == 0


NAN = math.nan
NUMBERS = [pa.table({"x": rows, "i": [0] * len(rows)}) for rows in ([1.0, NAN], [1.0, 2.0, NAN], [NAN])]
# DataFusion, DuckDB and Spark order NaN above all numbers.
CONDITIONS = {
    "x > 1.0": lambda x: x > 1.0 or math.isnan(x),
    "x > 5.0": lambda x: x > 5.0 or math.isnan(x),
    "x != 1.0": lambda x: x != 1.0,
    "not x > 1.0": lambda x: x == 1.0,
    "x not in (1.0)": lambda x: x != 1.0,
    "isnan(x)": math.isnan,
}


def _texts(numbers: Iterable[float]) -> list[str]:
    """Numbers as text, for NaN equals nothing."""
    return sorted(map(str, numbers))


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("rows", NUMBERS, ids=lambda rows: str(rows["x"].to_pylist()))
def test_a_condition_finds_and_changes_nan_as_spark_does(
    tmp_path: Path, rows: pa.Table, condition: str
) -> None:
    numbers = rows["x"].to_pylist()
    meant = [each for each in numbers if CONDITIONS[condition](each)]

    def table(name: str) -> delta.Table:
        write_deltalake(str(tmp_path / name), rows, writer_properties=delta.writer_properties(rows))
        return delta.load(str(tmp_path / name), {})

    assert _texts(delta.read(table("read"), ["x"], condition)["x"].to_pylist()) == _texts(meant)
    updated = table("updated")
    updated.update(updates={"i": "1"}, predicate=condition)
    updated.optimize.compact()
    updated.update(updates={"i": "i + 1"}, predicate=condition)
    after = delta.read(updated, None, None)
    assert _texts(after["x"].to_pylist()) == _texts(numbers)
    assert sum(after["i"].to_pylist()) == 2 * len(meant)
    deleted = table("deleted")
    deleted.delete(condition)
    assert len(delta.read(deleted, None, None)) == len(numbers) - len(meant)


def test_a_table_of_deltalake_alone_is_read_right(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), NUMBERS[0])
    table = delta.load(str(tmp_path), {})
    assert _texts(delta.read(table, ["x"], "x > 1.0")["x"].to_pylist()) == ["nan"]
    assert _texts(delta.read(table, ["x"], "not lake.x > 1.0")["x"].to_pylist()) == ["1.0"]


def test_deltalake_still_changes_nan(tmp_path: Path) -> None:
    """The day that it does not, floating-point columns may have their statistics again."""
    write_deltalake(str(tmp_path), NUMBERS[0])
    table = DeltaTable(str(tmp_path))
    table.update(updates={"i": "1"}, predicate="not x > 1.0")
    assert delta.read(table, None, None)["x"].to_pylist() == [1.0, 1.0]


FAR = ["1000-01-01 12:00:00.000001", "9999-12-31 23:59:59.999999"]
NEAR = ["1969-12-31 23:59:59.999999", "2024-05-01 10:00:00.123456"]


def of_spark(folder: Path, moments: list[str]) -> str:
    """A table of Spark's: its instants are INT96, and the log has their limits in milliseconds."""
    instants = pa.array(map(dt.datetime.fromisoformat, moments), pa.timestamp("us", "UTC"))
    rows = pa.table({"id": range(len(moments)), "at": instants})
    write_deltalake(str(folder), rows)
    [path] = folder.glob("*.parquet")
    parquet.write_table(rows, path, use_deprecated_int96_timestamps=True, store_schema=False)
    [log] = folder.glob("_delta_log/*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).update(size=path.stat().st_size)
    log.write_text("\n".join(map(json.dumps, actions)))
    return str(folder)


@pytest.mark.parametrize("moments", [FAR, NEAR], ids=["far", "near"])
def test_instants_of_spark_are_read_as_they_are(moments: list[str], tmp_path: Path) -> None:
    table = delta.load(of_spark(tmp_path / "t", moments), {})
    for read in (delta.read(table, None, None), table.to_pyarrow_table()):
        instants = read.sort_by("id")["at"].cast(pa.timestamp("us")).to_pylist()
        assert [value.isoformat(" ") for value in instants] == moments


def test_deltalake_alone_still_changes_far_instants(tmp_path: Path) -> None:
    """Once it fails, the client need refuse nothing."""
    table = DeltaTable(of_spark(tmp_path / "t", FAR))
    table.delete("id = 0")
    instants = delta.read(delta.load(table.table_uri, {}), ["at"], None)["at"].cast(pa.timestamp("us"))
    assert instants.to_pylist() != [dt.datetime.fromisoformat(FAR[1])]


CHANGES: list[Callable[[delta.Table], object]] = [
    lambda table: table.delete("id = 0"),
    lambda table: table.update({"id": "7"}, predicate="id = 0"),
    lambda table: table.merge(pa.table({"id": [0]}), "t.id = s.id", source_alias="s", target_alias="t"),
    lambda table: table.optimize.compact(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_far_instants_of_spark_are_copied_by_no_change(
    change: Callable[[delta.Table], object], tmp_path: Path
) -> None:
    with pytest.raises(ClientError, match="before 1678 or after 2261"):
        change(delta.load(of_spark(tmp_path / "spark", FAR), {}))
    change(delta.load(of_spark(tmp_path / "near", NEAR), {}))
    rows = pa.table(
        {"id": [0, 1], "at": pa.array(map(dt.datetime.fromisoformat, FAR), pa.timestamp("us", "UTC"))}
    )
    write_deltalake(str(tmp_path / "own"), rows)
    change(delta.load(str(tmp_path / "own"), {}))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("value", ["it's", "%2F:#?=", "a b", "ü"])
def test_a_file_in_a_folder_with_odd_letters_is_found(
    change: Callable[[delta.Table], object], value: str, tmp_path: Path
) -> None:
    rows = pa.table(
        {"id": [0], "at": pa.array([dt.datetime.fromisoformat(FAR[0])], pa.timestamp("us")), "w": [value]}
    )
    write_deltalake(str(tmp_path), rows, partition_by=["w"])
    change(delta.load(str(tmp_path), {}))


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_without_a_row_is_changed(change: Callable[[delta.Table], object], tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([], pa.int64()), "at": pa.array([], pa.timestamp("us"))})
    DeltaTable.create(str(tmp_path), rows.schema)
    change(delta.load(str(tmp_path), {}))


def test_a_filter_of_pyarrow_is_refused(folder: str) -> None:
    for way in (delta.load(folder, {}).to_pyarrow_table, delta.load(folder, {}).to_pandas):
        with pytest.raises(ClientError, match=r"leaves out rows .* next: read it with lake\.arrow"):
            way(filters=[("id", "=", 1)])


def test_a_feature_that_was_not_read_right_is_refused() -> None:
    assert delta.refusal("db.t", None) is None
    assert delta.refusal("db.t", ["deletionVectors", "columnMapping", "timestampNtz"]) is None
    refused = delta.refusal("db.t", ["variantType", "typeWidening", "deletionVectors"])
    assert refused is not None
    assert "typeWidening, variantType" in refused


def test_a_forked_child_is_refused_instead_of_waiting_for_ever(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "_started", [os.getpid() + 1])
    with pytest.raises(ClientError, match="used before this process was forked"):
        delta.load(folder, {})


def row(parameters: dict[str, str], path: str | None = None) -> Any:
    serde = SimpleNamespace(parameters={"path": path} if path else {})
    storage = SimpleNamespace(serdeInfo=serde, location="hdfs://l/t-__PLACEHOLDER__")
    return SimpleNamespace(
        dbName="db", tableName="t", tableType="EXTERNAL_TABLE", parameters=parameters, sd=storage
    )


def test_a_table_lies_where_its_serde_says() -> None:
    assert delta.location(row({"spark.sql.sources.provider": "delta"}, "hdfs://l/real")) == "hdfs://l/real"


def test_a_table_of_another_format_is_named() -> None:
    with pytest.raises(
        ClientError, match=r"db\.t is not a Delta table but iceberg; next: try iceberg\.db\.t"
    ):
        delta.location(row({"table_type": "ICEBERG"}))


def test_what_is_registered_is_found_again() -> None:
    made = delta_row(Name("delta", "db", "t"), "hdfs://l/db/t", "ada")
    assert format_of(made.parameters) == "delta"
    assert delta.location(made) == "hdfs://l/db/t"


def test_views_are_replaced_also_inside() -> None:
    views = pa.table({"a": pa.array(["x"], pa.string_view()), "b": pa.array([b"x"], pa.binary_view())})
    assert plain(views).schema.types == [pa.string(), pa.binary()]
