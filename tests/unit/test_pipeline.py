from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.sample_tables import SAMPLES
from pipeline.sources import FLIGHTS, SOURCES, Source


def test_the_sources_are_the_files_of_the_package() -> None:
    assert [source.name for source in SOURCES] == ["flights", "weather", "planes", "airports", "airlines"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_keys_and_partitions_are_columns(source: Source) -> None:
    assert source.key
    assert set(source.key) | set(source.partitioned_by) <= set(source.names)


def test_header_and_schema_follow_the_columns() -> None:
    assert FLIGHTS.header == (
        "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
        "origin,dest,air_time,distance,hour,minute,time_hour"
    )
    assert FLIGHTS.schema.startswith("year INT, month INT, ")
    assert FLIGHTS.schema.endswith("minute INT, time_hour TIMESTAMP")


def test_a_sample_table_lies_in_the_folder_of_its_database() -> None:
    folders = {"default": ("iceberg", "delta"), "sales_data": ("sales",), "streaming_data": ("streams",)}
    for sample in SAMPLES:
        database, name = sample.name.split(".")
        folder, leaf = sample.folder.split("/")
        assert (folder in folders[database], leaf) == (True, name)


def test_the_fingerprint_changes_with_the_columns() -> None:
    wider = replace(FLIGHTS, columns=(*FLIGHTS.columns, ("gate", "STRING")))
    assert wider.fingerprint != FLIGHTS.fingerprint == replace(FLIGHTS).fingerprint
