from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from pipeline import parsing, plot, run
from pipeline.sample_tables import SAMPLES
from pipeline.sources import AIRLINES, FLIGHTS, SOURCES, Source


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


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        ("carrier,name", None),
        ("carrier,gate,name", "column 'gate' is unknown"),
        ("carrier,name,gate", "column 'gate' is unknown"),
        ("carrier", "column 'name' is missing"),
        ("name", "column 'carrier' is missing"),
        ("name,carrier", "column 'name' is not in its place"),
        ("carrier,name,name", "column 'name' is not in its place"),
        ("", "column 'carrier' is missing"),
        ("carrier,name" + "x" * 100, "column 'name' is missing"),
        ("carrier,name," + "x" * 100, f"column {'x' * 80!r} is unknown"),
    ],
)
def test_a_header_that_differs_is_named_by_its_first_column(header: str, fault: str | None) -> None:
    assert parsing.drift(header, AIRLINES) == fault


def test_a_sample_table_lies_in_the_folder_of_its_database() -> None:
    folders = {"default": ("iceberg", "delta"), "sales_data": ("sales",), "streaming_data": ("streams",)}
    for sample in SAMPLES:
        database, name = sample.name.split(".")
        folder, leaf = sample.folder.split("/")
        assert (folder in folders[database], leaf) == (True, name)


def test_the_fingerprint_changes_with_the_columns() -> None:
    wider = replace(FLIGHTS, schema=f"{FLIGHTS.schema}, gate STRING")
    assert wider.fingerprint != FLIGHTS.fingerprint == replace(FLIGHTS).fingerprint


def test_the_plot_has_a_bar_for_each_day() -> None:
    picture = plot.svg([(date(2013, 1, 1), 4, 1), (date(2013, 1, 2), 0, 0)])
    assert picture.count('fill="steelblue"') == 2
    assert 'height="50" fill="steelblue"' in picture
    assert picture.count(">Jan<") == 1


@pytest.mark.parametrize(
    ("option", "fault"),
    [
        (("--database", "a; b"), "'a; b': a name has letters"),
        (("--backfill", "1", "2"), "invalid fromisoformat"),
    ],
)
def test_an_option_that_is_no_name_or_date_is_refused(
    capsys: pytest.CaptureFixture[str], option: tuple[str, ...], fault: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run.main(["--landing", "/none", *option])
    assert fault in capsys.readouterr().err
