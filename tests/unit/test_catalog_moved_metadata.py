"""Iceberg metadata that names its files at other paths: what changes, and what is copied byte for byte."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest
from pyiceberg.manifest import (
    ManifestEntryStatus,
)

from lakehouse.catalog import avro, manifests, moved_metadata
from lakehouse.catalog.avro import DamagedAvroError
from lakehouse.catalog.moved_metadata import Moved, PositionDeletesError
from tests.unit.iceberg_files import DATA, EQUALITY, POSITIONS, manifest, manifest_list


def moved(uri: str) -> str:
    return uri.replace("hdfs://c/", "hdfs://c/.snapshot/s/")


def entries(content: bytes) -> list[dict[str, Any]]:
    """What PyIceberg reads of a manifest: every field."""
    found = manifests.from_path("m").fetch_manifest_entry(manifests._Contents(content), discard_deleted=False)
    return [{"entry": entry._data[:4], "file": entry.data_file._data} for entry in found]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_manifest_names_its_files_elsewhere_and_says_all_else_as_before(codec: Any) -> None:
    files = [("hdfs://c/ä/d1", DATA), ("s3://other/d2", DATA), ("hdfs://c/e", EQUALITY)]
    content = manifest(*files, codec=codec)
    new = moved_metadata.manifest(content, moved)
    assert new.startswith(content[: content.index(b"avro.schema")])
    before, after = entries(content), entries(new)
    assert [one["file"][1] for one in after] == [moved(path) for path, _ in files]
    for one in (*before, *after):
        one["file"][1] = ""
    assert after == before
    # Nothing is moved: the same records, byte for byte.
    assert entries(moved_metadata.manifest(content, lambda uri: uri)) == entries(content)
    if codec == "null":
        assert moved_metadata.manifest(content, lambda uri: uri) == content


def test_position_deletes_are_refused_and_deleted_ones_are_not() -> None:
    with pytest.raises(PositionDeletesError):
        moved_metadata.manifest(manifest(("hdfs://c/p", POSITIONS)), moved)
    gone = manifest(("hdfs://c/p", POSITIONS), status=ManifestEntryStatus.DELETED)
    assert moved_metadata.manifest(gone, moved)


def test_a_manifest_list_says_where_and_how_long_its_manifests_are() -> None:
    content = manifest_list("hdfs://c/m1", "hdfs://c/m2")
    assert moved_metadata.manifests(content) == ["hdfs://c/m1", "hdfs://c/m2"]
    places = {path: Moved(moved(path), 2**33) for path in moved_metadata.manifests(content)}
    found = manifests.manifests(moved_metadata.manifest_list(content, places))
    assert [(one.manifest_path, one.manifest_length) for one in found] == [
        ("hdfs://c/.snapshot/s/m1", 2**33), ("hdfs://c/.snapshot/s/m2", 2**33),
    ]  # fmt: skip
    assert [(one.content, one.partition_spec_id) for one in found] == [(0, 3), (1, 3)]


def test_a_metadata_file_changes_in_its_current_snapshot_and_statistics_alone() -> None:
    document = {
        "format-version": 2,
        "location": "hdfs://c/t",
        "current-snapshot-id": 2**62,
        "snapshots": [
            {"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "hdfs://c/old"},
            {"snapshot-id": 2**62, "timestamp-ms": 2, "manifest-list": "hdfs://c/new"},
        ],
        "statistics": [{"snapshot-id": 1, "statistics-path": "hdfs://c/stats"}],
        "more": 1.5,
    }
    found = json.loads(moved_metadata.metadata(document, "hdfs://c/copy", moved))
    assert found["snapshots"][1].pop("manifest-list") == "hdfs://c/copy"
    assert found["statistics"][0].pop("statistics-path") == "hdfs://c/.snapshot/s/stats"
    del document["snapshots"][1]["manifest-list"], document["statistics"][0]["statistics-path"]  # type: ignore[index]
    assert found == document


def container(
    schema: Any, block: bytes, count: int = 1, codec: str = "null", sync: bytes = b"s" * 16
) -> bytes:
    header = b"Obj\x01" + b"\x04"
    for key, value in (("avro.schema", json.dumps(schema).encode()), ("avro.codec", codec.encode())):
        for text in (key.encode(), value):
            header += avro._zigzag(len(text)) + text
    return header + b"\x00" + b"s" * 16 + avro._zigzag(count) + avro._zigzag(len(block)) + block + sync


RECORD = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}


def nested(depth: int) -> Any:
    """A type of which each has the next one twice: so many types as two to this power."""
    kind: Any = "null"
    for number in range(depth):
        fields = [{"name": "x", "type": kind}, {"name": "y", "type": f"n{number - 1}" if number else "null"}]
        kind = {"type": "record", "name": f"n{number}", "fields": fields}
    return kind


def raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no Avro"),
        (b"Obj\x01", "header"),
        (b"Obj\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "number is too long"),
        (container(RECORD, b"\x02a", codec="zstandard"), "zstandard"),
        (container(RECORD, b"\x02a", sync=b"t" * 16), "does not end"),
        (container(RECORD, b"\x02a", count=5), "5 records"),
        (container(RECORD, b"\x02a", count=2), "record cannot be read"),
        (container(RECORD, b"\x02a\x00"), "longer than its records"),
        (container(RECORD, b"\x08a"), "longer than what it is in"),
        (container(RECORD, b"\x07a"), "longer than what it is in"),
        (container(RECORD, b"\x02\xff"), "UnicodeDecodeError"),
        (container(RECORD, b"\x02a", codec="deflate"), "inva|incorrect|invalid"),
        (container(RECORD, raw(b"\0" * (17 << 20)), codec="deflate"), "unpacks to more"),
        (container({"type": "record", "name": "r", "fields": [{"name": "b", "type": "r"}]}, b"\0"), "header"),
        (container(nested(40), b"\0"), "longer than 10000"),
        (container({"type": "array", "items": "nothing"}, b"\0"), "header"),
        (container("int", b"\0"), "in no record"),
    ],
)
def test_damaged_avro_is_one_line(content: bytes, why: str) -> None:
    with pytest.raises(DamagedAvroError, match=why) as error:
        list(avro.read(content, [("a",)]))
    assert "\n" not in str(error.value)


def test_many_items_without_bytes_take_no_time() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "n", "type": {"type": "array", "items": "null"}},
            {"name": "a", "type": "string"},
        ],
    }
    block = avro._zigzag(2**60) + b"\x00" + b"\x02a"
    assert list(avro.read(container(schema, block), [("a",), ("missing",)])) == [("a", None)]


FIXED = {"type": "fixed", "name": "f", "size": 2}
LONGS = {"type": "array", "items": "long"}


@pytest.mark.parametrize(
    ("kind", "block", "value"),
    [
        ("bytes", b"\x04\xff\x00", b"\xff\x00"),
        (FIXED, b"\xff\x00", b"\xff\x00"),
        ("boolean", b"\x01", True),
        ("float", struct.pack("<f", 0.5), 0.5),
        ("double", struct.pack("<d", 0.1), 0.1),
        (LONGS, b"\x04\x08\x02\x00", [4, 1]),
        (LONGS, b"\x03\x04\x08\x02\x02\x06\x00", [4, 1, 3]),  # a block with its size, and one without
        (LONGS, b"\x00", []),
        (["null", LONGS], b"\x02\x02\x08\x00", [4]),
        (["null", LONGS], b"\x00", None),
        ({"type": "array", "items": LONGS}, b"\x00", None),  # skipped
    ],
)
def test_values_of_each_type_are_read(kind: Any, block: bytes, value: Any) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
    assert list(avro.read(container(schema, block), [("a",)])) == [(value,)]


@pytest.mark.parametrize(
    ("kind", "block"), [("double", b"\x00"), (LONGS, avro._zigzag(2**60) + b"\x02\x00"), (FIXED, b"a")]
)
def test_a_value_that_is_cut_is_damage(kind: Any, block: bytes) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
    with pytest.raises(avro.DamagedAvroError):
        list(avro.read(container(schema, block), [("a",)]))
