"""Which features of a table other engines misread, and how they are found in its metadata."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hive_metastore.ttypes import SerDeInfo, StorageDescriptor, Table
from pyarrow import parquet

from lakehouse import features, risky
from lakehouse.features import CUT, REFUSED, WRONG, delta_risks, iceberg_risks
from lakehouse.risky import Finding

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
    assert iceberg_risks({"format-version": 2}) == []
    assert [risk.effect for risk in iceberg_risks({"format-version": 3})] == [REFUSED]


def test_rows_that_are_gone_by_their_key_count_in_the_current_version_alone() -> None:
    versions = [
        {"snapshot-id": number, "summary": {"total-equality-deletes": str(deletes)}}
        for number, deletes in ((1, 7), (2, 0), (3, 4))
    ]
    metadata = {"format-version": 2, "snapshots": [*versions, {"snapshot-id": 4}]}
    found = {
        current: [risk.feature for risk in iceberg_risks({**metadata, "current-snapshot-id": current})]
        for current in (-1, 2, 3, 4)
    }
    assert found == {-1: [], 2: [], 3: ["equality deletes"], 4: []}


class Folder(risky.Files):
    """A folder without a cluster."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents

    def names(self, folder: str) -> list[str]:  # noqa: ARG002 (as the real one)
        return list(self.contents)

    def read(self, path: str) -> bytes:
        return self.contents[path.rpartition("/")[2]]


def commit(*actions: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, actions)).encode()


def test_the_newest_action_holds() -> None:
    folder = Folder({
        "_last_checkpoint": b"",
        f"{0:020}.json": commit({"protocol": {"minReaderVersion": 1}}, {"metaData": {"id": "old"}}),
        f"{1:020}.json": commit({"add": {}}, {"metaData": {"id": "new"}}),
    })  # fmt: skip
    assert risky.last_actions("/t/_delta_log", folder) == {
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
    folder = Folder({f"{9:020}.checkpoint.parquet": sink.getvalue(), f"{10:020}.json": commit({"add": {}})})
    assert risky.last_actions("/t/_delta_log", folder) == {
        "protocol": {"minReaderVersion": 3},
        "metaData": {"configuration": {"a": "b"}},
    }


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"spark.sql.sources.provider": "delta"}, "delta"),
        ({"spark.sql.sources.provider": "DELTA"}, "delta"),
        ({"table_type": "iceberg"}, "iceberg"),
        ({}, None),
    ],
)
def test_the_metastore_knows_the_format(parameters: dict[str, str], kind: str | None) -> None:
    assert risky.format_of(parameters) == kind


def row(location: str, **parameters: str) -> Table:
    """What the metastore knows of a table."""
    storage = StorageDescriptor(location=location, serdeInfo=SerDeInfo(parameters={}))
    return Table(dbName="db", tableName="lost", parameters=parameters, sd=storage)


@pytest.mark.parametrize(
    ("parameters", "missing"),
    [
        ({"table_type": "ICEBERG", "metadata_location": "hdfs://lake/lost/v1.json"}, "v1.json"),
        ({"spark.sql.sources.provider": "delta"}, "no commit in /lost/_delta_log"),
    ],
)
def test_a_table_whose_metadata_is_gone_is_a_finding_of_its_own(
    parameters: dict[str, str], missing: str
) -> None:
    [finding] = risky.judge(row("hdfs://lake/lost", **parameters), Folder({}))
    assert (finding.table, finding.risk.effect) == ("db.lost", features.UNKNOWN)
    assert missing in str(finding)


def test_what_is_merely_cut_shares_a_line() -> None:
    wrong = features.Risk("f", WRONG, "c", "https://x")
    cut = features.Risk("timestamp: a", CUT, "c", "https://x")
    found = [Finding("a.b", "delta", wrong), Finding("a.c", "delta", cut), Finding("a.d", "delta", cut)]
    assert risky.summary(found) == [
        "a.b (delta) f: wrong rows: c; https://x",
        "cut values: c: a.c, a.d; https://x",
    ]
    assert len(risky.summary([])) == 1
