"""The real data is complete in both formats, and what is wrong with a row is found and said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from pipeline import parsing, sample_tables
from pipeline.load import TARGETS
from pipeline.sources import AIRLINES, PLANES, WEATHER, Source
from suites.testbed.databases import location
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import Spark
from suites.testbed.metastore import Connection
from suites.testbed.placement import Ledger

ROWS = {"flights": 336_776, "weather": 26_115, "planes": 3_322, "airports": 1_458, "airlines": 16}
# All flights together, in miles.
DISTANCE = 350_217_607
# Where each database lies below the warehouse.
FOLDERS = {**sample_tables.DATABASES, **{target.database: target.folder for target in TARGETS}}


@pytest.fixture(params=TARGETS, ids=[target.format for target in TARGETS])
def database(request: pytest.FixtureRequest) -> str:
    return f"{request.param.catalog}.{request.param.database}"


@pytest.mark.wide
@pytest.mark.operation("real data")
def test_no_row_is_missing(spark: Spark, database: str) -> None:
    # All at once: Spark plans one while another runs.
    with ThreadPoolExecutor(len(ROWS)) as pool:
        counts = pool.map(lambda name: spark.value(f"SELECT count(*) FROM {database}.{name}"), ROWS)
    assert dict(zip(ROWS, counts, strict=True)) == ROWS, "run `make lakehouse`, which loads it"


@pytest.mark.wide
@pytest.mark.operation("real data")
def test_the_values_are_in_their_columns(spark: Spark, database: str) -> None:
    """Sums that a shifted column, a lost month or a wrong time zone would change."""
    spark.expect(
        f"SELECT max(month), sum(distance), sum(dep_delay), count(dep_time) FROM {database}.flights",
        [(12, DISTANCE, 4_152_200, 328_521)],
    )
    spark.expect(
        f"""
        SELECT a.name, count(*), CAST(min(f.time_hour) AS STRING)
        FROM {database}.flights f JOIN {database}.airlines a ON a.carrier = f.carrier
        WHERE f.carrier = 'HA' GROUP BY a.name
        """,
        [("Hawaiian Airlines Inc.", 342, "2013-01-01 14:00:00")],
    )


@pytest.mark.wide
@pytest.mark.operation("sample tables")
@pytest.mark.parametrize("sample", sample_tables.SAMPLES, ids=lambda sample: sample.name)
def test_sample_table(spark: Spark, endpoints: Endpoints, sample: sample_tables.Sample) -> None:
    """It holds what its query gives, row by row, where the page about the data says."""
    stored, computed = f"SELECT * FROM {sample.full_name}", sample.query
    other = f"({stored} EXCEPT ALL ({computed})) UNION ALL (({computed}) EXCEPT ALL {stored})"
    spark.expect(other, [])
    assert location(endpoints, *sample.name.split(".")) == f"{endpoints.warehouse}/{sample.folder}"


@pytest.mark.operation("real data")
@pytest.mark.parametrize(("name", "folder"), FOLDERS.items())
def test_a_database_lies_in_its_folder(endpoints: Endpoints, name: str, folder: str) -> None:
    with Connection(endpoints.metastore, endpoints.users["spark"], (endpoints.group,)) as client:
        assert client.get_database(name).locationUri == f"{endpoints.warehouse}/{folder}"


@pytest.mark.closing
@pytest.mark.operation("replication")
def test_the_flights_are_replicated(ledger: Ledger, endpoints: Endpoints) -> None:
    for target in TARGETS:
        for name in ROWS:
            folder = urlsplit(location(endpoints, target.database, name)).path
            placement = ledger.measure(f"{target.database}.{name}", target.format, folder)
            assert placement, f"{folder}: no block"


@pytest.mark.operation("bad rows")
@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        (AIRLINES, "ZZ,Ghost Air", None),
        (AIRLINES, "ZZ", "1 fields instead of 2"),
        (AIRLINES, "ZZ,Ghost Air,extra", "3 fields instead of 2"),
        (AIRLINES, ",Ghost Air", "no key: carrier"),
        (PLANES, "N1,NA,jet,X,Y,two,NA,fast,Turbo-fan", "wrong type: engines, speed"),
        (PLANES, "NA,2004,jet,X,Y,2,55,NA,Turbo-fan", "no key: tailnum"),
        (WEATHER, "EWR,2013,1,1,1,39.0,26.1,59.4,270,10.4,NA,0,1012,10,soon", "wrong type: time_hour"),
    ],
)
def test_a_bad_row_is_set_aside(spark: Spark, source: Source, line: str, reason: str | None) -> None:
    lines = spark.session.createDataFrame([(source.header,), (line,), ("",)], "value STRING")
    classified = parsing.classify(lines, source)
    assert [(row.raw, row.reason) for row in classified.collect()] == [(line, reason)]
