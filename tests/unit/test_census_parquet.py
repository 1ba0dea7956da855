"""Footers of Parquet files: as pyarrow reads them, and refused where they are damaged."""

from __future__ import annotations

import io
import tracemalloc
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as arrow_parquet

from lakehouse.census import parquet
from lakehouse.census.parquet import FooterError


def content(rows: int = 10, group: int = 4, **options: Any) -> bytes:
    table = pa.table({
        "id": list(range(rows)), "name": [None, "ä" * 20] * (rows // 2),
        "list": [[1, 2], []] * (rows // 2), "flag": [True, None] * (rows // 2),
        "map": pa.array([[("a", 1)], []] * (rows // 2), pa.map_(pa.string(), pa.int32())),
    })  # fmt: skip
    out = io.BytesIO()
    arrow_parquet.write_table(table, out, row_group_size=group, **options)
    return out.getvalue()


def footer(data: bytes) -> bytes:
    length = parquet.footer_length(data[-parquet.TAIL_BYTES :])
    return data[-length - parquet.TAIL_BYTES : -parquet.TAIL_BYTES]


@pytest.mark.parametrize("group", [1, 4, 10])
@pytest.mark.parametrize(
    "options", [{}, {"compression": "zstd"}, {"use_dictionary": False}, {"write_statistics": False}]
)
def test_row_groups_are_those_that_pyarrow_reads(group: int, options: dict[str, Any]) -> None:
    data = content(group=group, **options)
    metadata = arrow_parquet.ParquetFile(io.BytesIO(data)).metadata
    groups = parquet.row_groups(footer(data))
    assert [row_group.rows for row_group in groups] == [
        metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)
    ]
    for number, row_group in enumerate(groups):
        chunks = [metadata.row_group(number).column(index) for index in range(metadata.num_columns)]
        assert row_group.bytes == sum(chunk.total_compressed_size for chunk in chunks)
        assert row_group.start == min(
            chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks
        )


@pytest.mark.parametrize(
    "tail",
    [b"", b"PAR1", b"\x00" * 8, b"\x00\x00\x00\x00PAR1", b"\xff\xff\xff\x7fPAR1", b"\x01\x00\x00\x00PARE"],
)
def test_the_end_of_another_file_is_refused(tail: bytes) -> None:
    with pytest.raises(FooterError):
        parquet.footer_length(tail)


@given(st.data())
def test_a_damaged_footer_is_read_or_refused(data: st.DataObject) -> None:
    damaged = bytearray(FOOTER)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    with suppress(FooterError):
        parquet.row_groups(bytes(damaged))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(FooterError):
        parquet.row_groups(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x19\xfc" + b"\xff" * 9,  # a list of more structs than the footer has bytes
        b"\x1c" * 5000,  # structs inside of structs
        b"\x19\x19" + b"\x19" * 5000,  # lists inside of lists
        b"\x15" + b"\xff" * 20,  # a number without an end
    ],
)
def test_a_hostile_footer_takes_no_memory(data: bytes) -> None:
    with pytest.raises(FooterError):
        parquet.row_groups(data)


def test_unknown_fields_are_skipped_and_built_ones_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 6 columns in 3 row groups, few values are built, whatever their statistics and schema have."""
    monkeypatch.setattr(parquet, "MOST_VALUES", 110)
    assert len(parquet.row_groups(FOOTER)) == 3
    monkeypatch.setattr(parquet, "MOST_VALUES", 10)
    with pytest.raises(FooterError, match="more than 10 values"):
        parquet.row_groups(FOOTER)


@pytest.mark.parametrize(
    "field", [
        b"\xf9\xf1\xff\xff\x3f",  # an unknown list of true, longer than the footer
        b"\x4c" + b"\x19\xf5\x80\x80\x40" + b"\x00" * (1 << 20) + b"\x00",  # a list of numbers in a struct
    ],
)  # fmt: skip
def test_an_unknown_list_takes_no_memory(field: bytes) -> None:
    data = field + b"\x00"
    tracemalloc.start()
    with suppress(FooterError):
        parquet.row_groups(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 18


FOOTER = footer(content())
