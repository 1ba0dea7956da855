"""Which features of a table other engines misread, and how they are found in its metadata."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table
from hypothesis import given
from hypothesis.strategies import text
from pyarrow import parquet

from lakehouse.catalog.readable import UnreadableError
from lakehouse.tables import features, risky, table_files
from lakehouse.tables.features import (
    CUT,
    FILTERED,
    FLINK,
    LATER,
    OF_DELTA,
    OF_HIVE,
    OF_ICEBERG,
    PYTHON,
    REFUSED,
    SPARK,
    SPREADS,
    TRINO,
    UNKNOWN,
    WRONG,
    Risk,
    delta_risks,
    predicted,
)
from lakehouse.tables.hive_features import HiveTable, hive_risks, type_risks
from lakehouse.tables.iceberg_features import NAME_MAPPING, Live, iceberg_risks
from lakehouse.tables.risky import Finding
from plugins.module_utils.lakehouse.webhdfs import WebHdfs
from tests.unit.iceberg_tables import LIST, MANIFEST, PLACE, Memory, Written

PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": list(fields)}}


def field(name: str, kind: Any = "integer", **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def test_a_plain_delta_table_carries_no_risk() -> None:
    assert delta_risks(PLAIN, schema(field("id"), field("at", "timestamp_ntz"))) == []


def test_a_widened_column_is_named_also_inside_of_another() -> None:
    changed = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    inner = {"type": "struct", "fields": [field("b", "long", **changed)]}
    listed = {"type": "array", "elementType": inner, "containsNull": True}
    protocol = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}
    [risk] = delta_risks(
        protocol, schema(field("a", "long", **changed), field("s", inner), field("l", listed))
    )
    assert (risk.feature, risk.effect) == ("typeWidening: a, s.b, l.b", WRONG)


def test_a_change_counts_after_the_feature_was_taken_away() -> None:
    changed = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    assert [risk.effect for risk in delta_risks(PLAIN, schema(field("a", "long", **changed)))] == [WRONG]


@pytest.mark.parametrize(
    ("protocol", "configuration", "feature", "effect"),
    [
        ({"readerFeatures": ["deletionVectors"]}, {}, "deletionVectors", WRONG),
        ({}, {"delta.columnMapping.mode": "name"}, "columnMapping", WRONG),
        ({"readerFeatures": ["typeWidening-preview"]}, {}, "typeWidening", WRONG),
        ({"readerFeatures": ["variantType"]}, {}, "variantType", REFUSED),
    ],
)
def test_a_feature_of_the_protocol_or_a_property(
    protocol: dict[str, Any], configuration: dict[str, str], feature: str, effect: str
) -> None:
    [risk] = delta_risks(protocol, {"configuration": configuration})
    assert (risk.feature, risk.effect) == (feature, effect)
    assert risk.link.startswith("https://")


@pytest.mark.parametrize("mode", ["none", None])
def test_a_mapping_that_is_off_is_none(mode: str | None) -> None:
    configuration = {"delta.columnMapping.mode": mode} if mode else {}
    assert delta_risks({"readerFeatures": ["columnMapping"]}, {"configuration": configuration}) == []


def test_a_timestamp_loses_its_microseconds_also_in_a_map() -> None:
    kind = {"type": "map", "keyType": "string", "valueType": "timestamp", "valueContainsNull": True}
    assert [risk.effect for risk in delta_risks(PLAIN, schema(field("m", kind)))] == [CUT]


def test_a_legacy_protocol_in_a_checkpoint_has_nulls_for_its_features() -> None:
    protocol = {**PLAIN, "readerFeatures": None, "writerFeatures": None}
    assert delta_risks(protocol, {"configuration": None}) == []


def test_a_new_iceberg_format_is_refused() -> None:
    assert iceberg_risks({"format-version": 2}, Live()) == []
    for version, engines in ((3, {TRINO}), (4, set(OF_ICEBERG))):
        [risk] = iceberg_risks({"format-version": version}, Live())
        assert (risk.feature, risk.effect, risk.newer) == (f"format-version {version}", REFUSED, True)
        assert set(risk.engines) == engines


def test_a_new_delta_protocol_is_refused_by_all() -> None:
    [risk] = delta_risks({"minReaderVersion": 4}, schema(field("at", "timestamp")))
    assert (risk.effect, risk.engines) == (REFUSED, OF_DELTA)


def test_rows_that_are_gone_by_their_key_count_in_the_current_version_alone() -> None:
    versions = [
        {"snapshot-id": number, "summary": {"total-equality-deletes": str(deletes)}}
        for number, deletes in ((1, 7), (2, 0), (3, 4))
    ]
    metadata = {"format-version": 2, "snapshots": [*versions, {"snapshot-id": 4}]}
    found = {
        current: [
            risk.feature for risk in iceberg_risks({**metadata, "current-snapshot-id": current}, Live())
        ]
        for current in (-1, 2, 3, 4)
    }
    assert found == {-1: [], 2: [], 3: ["equality deletes"], 4: []}


def commit(*actions: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, actions)).encode()


def test_the_newest_action_holds() -> None:
    old = {"protocol": {"minReaderVersion": 1}}, {"metaData": {"id": "old"}}
    folder = Memory({
        "/t/_delta_log/_last_checkpoint": b"",
        f"/t/_delta_log/{0:020}.json": commit(*old),
        f"/t/_delta_log/{1:020}.json": commit({"add": {}}, {"metaData": {"id": "new"}}),
    })  # fmt: skip
    assert table_files.last_actions("/t/_delta_log", folder) == {
        "protocol": {"minReaderVersion": 1},
        "metaData": {"id": "new"},
    }


def test_a_checkpoint_stands_for_the_commits_that_are_gone() -> None:
    sink = io.BytesIO()
    rows = [
        {"protocol": {"minReaderVersion": 3}, "metaData": None},
        {"protocol": None, "metaData": {"configuration": [("a", "b")]}},
    ]
    kinds = pa.schema({
        "protocol": pa.struct({"minReaderVersion": pa.int32()}),
        "metaData": pa.struct({"configuration": pa.map_(pa.string(), pa.string())}),
    })  # fmt: skip
    parquet.write_table(pa.Table.from_pylist(rows, kinds), sink)
    folder = Memory({
        f"/t/_delta_log/{9:020}.checkpoint.parquet": sink.getvalue(),
        f"/t/_delta_log/{10:020}.json": commit({"add": {}}),
    })  # fmt: skip
    assert table_files.last_actions("/t/_delta_log", folder) == {
        "protocol": {"minReaderVersion": 3},
        "metaData": {"configuration": {"a": "b"}},
    }


def row(location: str = "", columns: Sequence[tuple[str, str]] = (), **parameters: str) -> Table:
    """What the metastore knows of a table."""
    cols = [FieldSchema(name, kind) for name, kind in columns]
    storage = StorageDescriptor(cols, location, serdeInfo=SerDeInfo(parameters={}))
    return Table("odd", "db", parameters=parameters, sd=storage)


def of_iceberg(files: Memory, place: str = PLACE) -> list[Risk]:
    table = row("hdfs://lake/t", table_type="ICEBERG", metadata_location=place)
    found = risky.judge(table, files)
    assert {one.table for one in found} <= {"db.odd"}
    return [one.risk for one in found]


METADATA = PLACE.removeprefix("hdfs://lake")
WHOLE = json.dumps(Written().metadata()).encode()


def test_a_table_whose_metadata_is_gone_is_a_finding_of_its_own() -> None:
    [risk] = of_iceberg(Memory({}))
    assert risk.effect == UNKNOWN
    assert f"{PLACE} is not there" in risk.consequence


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        (METADATA, b"", f"{PLACE} is empty"),
        (METADATA, WHOLE[:-40], f"{PLACE} is damaged: "),
        (METADATA, b"[1, 2]", f"{PLACE} is damaged: it is no metadata of an Iceberg table"),
        (METADATA, b'{"a": ' * 100_000, f"{PLACE} is damaged: "),
        (METADATA, gzip.compress(WHOLE)[:-9], f"{PLACE} is damaged: it ends in the middle"),
        (
            METADATA,
            json.dumps({**Written().metadata(), "schemas": 5}).encode(),
            "'int' object is not iterable",
        ),
        (LIST, None, f"{LIST} is not there"),
        (LIST, b"Obj\x01 and no more", f"{LIST} is damaged: its header cannot be read"),
        (MANIFEST, b"", f"{MANIFEST} is empty"),
    ],
)
def test_metadata_that_cannot_be_understood_is_one_line(path: str, content: bytes | None, why: str) -> None:
    files = Written(data=[("hdfs://lake/t/data/a.parquet", "x")]).files()
    if content is None:
        del files.contents[path]
    else:
        files.contents[path] = content
    [line] = [str(one) for one in risky.judge(row(table_type="ICEBERG", metadata_location=PLACE), files)]
    assert line.startswith("db.odd (iceberg) metadata: unknown: it cannot be read: ")
    assert why in line
    assert "\n" not in line
    assert len(line) < 600


def test_metadata_that_is_packed_is_read() -> None:
    files = Written(changes={"format-version": 3}).files()
    files.contents[METADATA] = gzip.compress(files.contents[METADATA])
    assert of_iceberg(files)[0].feature == "format-version 3"


@pytest.mark.parametrize("place", ["file:///etc/shadow", "s3://bucket/t/1.json", "hdfs://lake/t/../../x", ""])
def test_a_location_that_hdfs_cannot_have_is_a_finding(place: str) -> None:
    hdfs = WebHdfs("http://127.0.0.1:9", "nobody")
    [risk] = [one.risk for one in risky.judge(
        row(table_type="ICEBERG", metadata_location=place), table_files.Files(hdfs))]  # fmt: skip
    assert risk.effect == UNKNOWN


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        ({}, "/lost/_delta_log has no commit"),
        ({f"/lost/_delta_log/{0:020}.json": b""}, "is empty"),
        ({f"/lost/_delta_log/{0:020}.json": b'{"protocol": '}, "is damaged: "),
        ({f"/lost/_delta_log/{0:020}.json": b"[1]"}, "is damaged: an action is no object"),
        (
            {f"/lost/_delta_log/{0:020}.json": b'{"metaData": {"schemaString": "{"}, "protocol": {}}'},
            "cannot be",
        ),
        ({f"/lost/_delta_log/{0:020}.json": b'{"metaData": 7, "protocol": []}'}, "cannot be read"),
        ({f"/lost/_delta_log/{1:020}.checkpoint.parquet": b"PAR1 no more PAR1"}, "is damaged: "),
    ],
)
def test_a_delta_log_that_cannot_be_understood_is_one_line(contents: dict[str, bytes], why: str) -> None:
    table = row("hdfs://lake/lost")
    table.parameters = {"spark.sql.sources.provider": "delta"}
    [line] = [str(one) for one in risky.judge(table, Memory(contents))]
    assert "unknown: it cannot be read: " in line
    assert why in line


DAY = {"id": 2, "name": "p", "required": False, "type": "string"}


@pytest.mark.parametrize(("live_files", "engines"), [(1, (TRINO, FLINK)), (0, (TRINO,))])
def test_manifests_with_a_partition_whose_column_is_dropped(
    live_files: int, engines: tuple[str, ...]
) -> None:
    """Trino reads one, too, in which all files are deleted: it is there until the next commit."""
    risks = of_iceberg(Written(live_files=live_files).files())
    assert [(risk.feature, risk.effect) for risk in risks] == [("partitions of a dropped column: p", REFUSED)]
    assert risks[0].engines == engines
    assert "rewrite_data_files" in risks[0].consequence


@pytest.mark.parametrize(
    "written",
    [
        Written(schema=[*Written().schema, DAY]),
        Written(changes={"current-snapshot-id": -1}),
        Written(changes={"partition-specs": [{"spec-id": 1, "fields": [
            {"name": "p", "transform": "void", "source-id": 2, "field-id": 1000}]}]}),
    ],
)  # fmt: skip
def test_partitions_that_no_file_needs_are_none(written: Written) -> None:
    assert of_iceberg(written.files()) == []


@pytest.mark.parametrize(
    "kind",
    [
        "time",
        {"type": "struct", "fields": [{"id": 9, "name": "at", "type": "time"}]},
        {"type": "list", "element-id": 9, "element": "time"},
        {"type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "time"},
    ],
)
def test_a_time_is_cut_by_flink_and_refused_by_spark(kind: Any) -> None:
    risks = of_iceberg(Written(schema=[DAY, {"id": 3, "name": "t", "required": False, "type": kind}]).files())
    assert {engine: predicted(risks, engine) for engine in OF_ICEBERG} == {
        **{engine: set() for engine in OF_ICEBERG}, SPARK: {REFUSED}, FLINK: {CUT},
    }  # fmt: skip
    assert all(risk.feature.startswith("time: t") for risk in risks)


MAPPING = [
    {"field-id": 1, "names": ["id"]},
    {"field-id": 3, "names": ["st"], "fields": [{"field-id": 4, "names": ["a"]}]},
    {"field-id": 5, "names": ["many"], "fields": [
        {"field-id": 6, "names": ["element"], "fields": [{"field-id": 7, "names": ["b"]}]}]},
]  # fmt: skip
PLAIN_FILE = pa.table({"id": pa.array([1], pa.int32())})
CAPITAL_FILE = pa.table({"id": [1], "st": [{"A": 1}], "many": [[{"B": 2}]]})
OUTSIDE = "hdfs://lake/t/1.parquet"


def packed(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink, **options)
    return sink.getvalue()


def imported(content: bytes, place: str = OUTSIDE, **changes: Any) -> list[Risk]:
    """The risks of a table whose one file of rows no writer of Iceberg has made."""
    properties = {} if changes.pop("unmapped", False) else {NAME_MAPPING: json.dumps(MAPPING)}
    written = Written([*Written().schema, DAY], [(place, "a")], properties, changes)
    return of_iceberg(written.files(**{place.removeprefix("hdfs://lake"): content}))


def test_imported_files_are_wrong_once_a_name_is_used_again() -> None:
    [risk] = imported(packed(PLAIN_FILE))
    assert (risk.effect, risk.engines) == (LATER, ())
    older = {"schema-id": 1, "type": "struct", "fields": [{"id": 9, "name": "id", "type": "int"}]}
    [risk] = imported(
        packed(PLAIN_FILE), schemas=[*Written([*Written().schema, DAY]).metadata()["schemas"], older]
    )
    assert (risk.feature, risk.effect, risk.engines) == ("imported files: id", WRONG, OF_ICEBERG)


def test_imported_columns_with_capitals_are_null_or_refused_but_for_trino() -> None:
    first, second, _ = imported(packed(CAPITAL_FILE))
    assert (first.feature, first.effect) == (
        "imported files with capitals: many.element.B, st.A", WRONG,
    )  # fmt: skip
    assert first.engines == (SPARK, FLINK)
    assert (second.effect, second.engines) == (REFUSED, PYTHON)


def test_imported_times_of_96_bits_are_refused_by_flink() -> None:
    content = packed(
        pa.table({"id": pa.array([0], pa.timestamp("us"))}), use_deprecated_int96_timestamps=True
    )
    first, _ = imported(content)
    assert (first.feature, first.effect) == ("imported files with INT96: id", REFUSED)
    assert first.engines == (FLINK,)


def test_files_without_ids_and_without_a_name_mapping_are_null_or_refused() -> None:
    risks = imported(packed(PLAIN_FILE), unmapped=True)
    assert [(risk.effect, risk.engines) for risk in risks] == [(WRONG, (TRINO,)), (REFUSED, PYTHON)]


def test_a_partition_that_is_the_name_of_a_folder_is_wrong_everywhere() -> None:
    place = "hdfs://lake/t/p=a b%2Fc/1.parquet"
    written = Written([*Written().schema, DAY], [(place, "a b%2Fc")], {NAME_MAPPING: json.dumps(MAPPING)})
    first, _ = of_iceberg(written.files(**{"/t/p=a b%2Fc/1.parquet": packed(PLAIN_FILE)}))
    assert (first.feature, first.effect) == ("imported partitions: p=a b%2Fc", WRONG)
    assert first.engines == OF_ICEBERG


@pytest.mark.parametrize("place", ["hdfs://lake/t/data/1.parquet", "hdfs://lake/elsewhere/1.parquet"])
def test_files_of_iceberg_are_not_imported(place: str) -> None:
    with_ids = pa.schema([pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "1"})])
    assert imported(packed(PLAIN_FILE.cast(with_ids)), place) == []


def test_a_file_of_rows_that_is_damaged_hides_nothing() -> None:
    [risk] = imported(b"PAR1" + b"\xff" * 40 + b"PAR1")
    assert risk.effect == UNKNOWN


def test_a_file_of_rows_of_which_all_is_footer_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "_FOOTER_BYTES", 100)
    [risk] = imported(packed(PLAIN_FILE))
    assert "its footer has more than" in risk.consequence


TYPES = yaml.safe_load((Path(__file__).parent / "data/hive_types.yml").read_text("utf-8"))


@pytest.mark.parametrize("kind", TYPES["accepted"])
def test_types_that_trino_reads(kind: str) -> None:
    assert type_risks([("c", kind)]) == []


@pytest.mark.parametrize("kind", [*TYPES["rejected"], "array<" * 200 + "int" + ">" * 200, "x" * 200_000])
def test_types_with_which_trino_lists_no_table(kind: str) -> None:
    [risk] = type_risks([("a", "int"), ("c", kind)])
    assert (risk.effect, risk.engines) == (SPREADS, (TRINO,))
    assert risk.feature.startswith("type names: c (")
    assert len(risk.feature) < 200


@given(text(alphabet="<>,:()abint19 -_$é", max_size=40))
def test_any_name_of_a_type_is_judged(kind: str) -> None:
    assert len(type_risks([("c", kind)])) <= 1


def test_the_types_of_every_table_are_judged_and_of_views() -> None:
    odd = [("s", "struct<content-type:string>")]
    for table in (row(columns=odd), row(columns=odd, **{"spark.sql.sources.provider": "delta"})):
        assert SPREADS in {one.risk.effect for one in risky.judge(table, Memory({}))}
    view = row(columns=odd)
    view.tableType = "VIRTUAL_VIEW"
    [finding] = risky.judge(view, Memory({}))
    assert finding.format == "view"


TEXT, PARQUET = "org.apache.hadoop.mapred.TextInputFormat", "x.MapredParquetInputFormat"


def of_hive(input_format: str = PARQUET, partitions: Sequence[str] = (), **parameters: str) -> list[Risk]:
    properties = {key.replace("__", "."): value for key, value in parameters.items()}
    return hive_risks(HiveTable(properties, [("id", "int")], [("p", "string")], input_format, partitions))


@pytest.mark.parametrize(
    ("input_format", "count", "engines"),
    [
        (TEXT, "1", {SPARK, FLINK}),
        (TEXT, "0", set()),
        (TEXT, "many", set()),
        (TEXT, "9" * 5_000, set()),
        (PARQUET, "1", set()),
    ],
)
def test_a_header_line(input_format: str, count: str, engines: set[str]) -> None:
    risks = of_hive(input_format, skip__header__line__count=count)
    assert {engine for engine in OF_HIVE if predicted(risks, engine)} == engines


def test_partition_values_that_flink_misreads() -> None:
    null, quote = of_hive(partitions=["p=a", "p=__HIVE_DEFAULT_PARTITION__", "p=it%27s"])
    assert (null.effect, null.engines) == (WRONG, (FLINK,))
    assert (quote.effect, quote.engines) == (FILTERED, ())
    assert of_hive(partitions=["p=a", "p=b c"]) == []


def noted(*names: str) -> str:
    return json.dumps({"type": "struct", "fields": [{"name": name, "type": "integer"} for name in names]})


@pytest.mark.parametrize(
    ("names", "different"), [(["ID", "p"], ""), (["id", "p", "gone"], "gone"), (["p"], "id"), ([], "id, p")]
)
@pytest.mark.parametrize("parts", [1, 3])
def test_a_table_of_spark_that_another_engine_altered(names: list[str], different: str, parts: int) -> None:
    """Spark keeps a long schema in several parameters."""
    whole, name = noted(*names), "spark__sql__sources__schema"
    size = len(whole) // parts + 1
    split = {f"{name}__part__{number}": whole[number * size :][:size] for number in range(parts)}
    written = {name: whole} if parts == 1 else {f"{name}__numParts": str(parts), **split}
    risks = of_hive(spark__sql__sources__provider="parquet", **written)
    assert [(risk.feature, risk.effect, risk.engines) for risk in risks] == (
        [(f"columns: {different}", WRONG, (SPARK,))] if different else []
    )


@pytest.mark.parametrize("provider", ["hive", ""])
def test_spark_reads_a_hive_table_as_the_metastore_has_it(provider: str) -> None:
    schema = {"spark__sql__sources__schema": noted("id", "gone")}
    assert of_hive(spark__sql__sources__provider=provider, **schema) == []


@pytest.mark.parametrize("keys", [[], ["p"]])
@pytest.mark.parametrize(
    ("name", "engines"),
    [
        ("00000_0_part-00000-3d2f-c000", set()),
        ("20261127_145521_00012_abcde_bucket-00003", set()),
        ("_SUCCESS", set()),
        ("part-341ef4d2-task-0-file-0", {TRINO}),
    ],
)
def test_a_file_of_no_bucket_is_refused_by_trino(name: str, engines: set[str], keys: list[str]) -> None:
    table = row("hdfs://lake/t")
    table.sd.bucketCols, table.partitionKeys = ["id"], [FieldSchema(key, "string") for key in keys]
    partitions = [f"{key}=a" for key in keys]
    folder = "/".join([table.sd.location, *partitions])
    files = Memory({f"{folder.removeprefix('hdfs://lake')}/{name}": b""})
    findings = risky.judge(table, files, partitions)
    assert {engine for finding in findings for engine in finding.risk.engines} == engines
    table.sd.bucketCols = []
    assert risky.judge(table, files, partitions) == []


def test_a_table_of_which_others_see_a_stand_in() -> None:
    table = HiveTable({"spark.sql.sources.provider": "json"}, [("col", "array<string>")], [], "x")
    [risk] = hive_risks(table)
    assert (risk.effect, risk.engines) == (REFUSED, (TRINO, FLINK))


@pytest.mark.parametrize(
    ("kind", "effects"),
    [
        ("struct<a:int,b:struct<c:int>>", []),
        ("array<int>", [CUT]),
        ("struct<a:map<string,int>>", [CUT]),
        ("array<struct<a:int>>", [REFUSED]),
        ("struct<a:array<array<int>>>", [REFUSED]),
        ("map<string,array<int>>", [REFUSED]),
        ("map<struct<a:int>,int>", [REFUSED]),
    ],
)
def test_lists_and_maps_in_parquet_are_for_flink_as_far_as_they_are_plain(
    kind: str, effects: list[str]
) -> None:
    found = {
        form: hive_risks(HiveTable({}, [("s", kind)], [], form)) for form in (PARQUET, "x.OrcInputFormat")
    }
    assert [risk.effect for risk in found[PARQUET]] == effects
    assert found["x.OrcInputFormat"] == []
    assert all(risk.engines == ((FLINK,) if risk.effect == REFUSED else ()) for risk in found[PARQUET])


@pytest.mark.parametrize("schema", ["{", "[]", '{"fields": 1}', '{"fields": [{}]}'])
def test_a_schema_of_spark_that_cannot_be_understood_is_one_line(schema: str) -> None:
    parameters = {"spark.sql.sources.provider": "parquet", "spark.sql.sources.schema": schema}
    table = row(columns=[("id", "int")])
    table.parameters = parameters
    [finding] = risky.judge(table, Memory({}))
    assert finding.risk.effect == UNKNOWN


def test_partitions_that_cannot_be_listed_are_a_finding() -> None:
    [finding] = risky.judge(row(), Memory({}), UnreadableError("the metastore does not list its partitions"))
    assert "the metastore does not list its partitions" in str(finding)


def test_a_line_shows_few_names_and_no_control_character() -> None:
    names = [f"column {number}" for number in range(2_000)]
    risk = Risk("f", WRONG, "c", "l").of([*names, "x" * 500])
    assert risk.feature == "f: column 0, column 1, column 2, column 3, column 4 and 1996 more"
    assert "\x1b" not in str(Finding("db.t\x1b[2J", "hive", risk))
    assert len(Risk("f", WRONG, "c", "l").of(["x" * 500]).feature) < 100


def test_what_is_merely_cut_shares_a_line() -> None:
    wrong = features.Risk("f", WRONG, "c", "https://x")
    cut = features.Risk("timestamp: a", CUT, "c", "https://x")
    found = [Finding("a.b", "delta", wrong), Finding("a.c", "delta", cut), Finding("a.d", "delta", cut)]
    assert risky.summary(found) == [
        "a.b (delta) f: wrong rows: c; https://x",
        "cut values: c: a.c, a.d; https://x",
    ]
    assert len(risky.summary([])) == 1
