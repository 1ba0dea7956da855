"""Batches of flights become bronze, silver and gold, on a Spark of this computer: no cluster, one session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from pipeline import flights
from pipeline.run import Pipeline
from pipeline.sources import FLIGHTS
from tests.unit import local_spark
from tests.unit.flight_lines import line

NEWEST = date(2013, 3, 1)
LATE = "late: 30 days before 2013-03-01"
# What a line is -> the reason why it is set aside.
REASONS = {
    line(3, 1): None,
    line(1, 30): None,
    line(3, 2, dep_time="NA", dep_delay="NA", tailnum="NA"): None,
    line(1, 29): LATE,
    "2013,3,1": "3 fields instead of 19",
    line(3, 1, dep_time="soon", distance="far"): "wrong type: dep_time, distance",
    line(3, 1, carrier="NA"): "no key: carrier",
    line(2, 29): "expectation: date exists",
    line(3, 1, distance="0"): "expectation: distance is positive",
    line(3, 1, origin="BOS"): "expectation: origin is an airport of New York",
    line(3, 1, dep_delay="1440"): "expectation: delay is below a day",
}
KEYS = "year INT, month INT, day INT, sched_dep_time INT, carrier STRING, flight INT, origin STRING"


@pytest.fixture(scope="module")
def local() -> Iterator[tuple[SparkSession, Path]]:
    with local_spark.session() as opened:
        yield opened


@pytest.fixture(scope="module")
def spark(local: tuple[SparkSession, Path]) -> SparkSession:
    return local[0]


def bronze(spark: SparkSession, *lines: str) -> DataFrame:
    rows = [("a.csv", NEWEST, text) for text in lines]
    return spark.createDataFrame(rows, "batch STRING, newest_date DATE, raw STRING")


def test_a_bad_or_late_row_is_set_aside_with_its_reason(spark: SparkSession) -> None:
    rows = flights.judge(bronze(spark, FLIGHTS.header, "", *REASONS), late=True)
    assert {row.raw: row.reason for row in rows.collect()} == REASONS
    aside = {row.raw: row.reason for row in flights.set_aside(rows).collect()}
    assert aside == {text: reason for text, reason in REASONS.items() if reason}
    assert flights.warnings(rows) == {"departure has an aircraft": 0, "landing has a delay": 0}


def test_a_backfill_accepts_late_rows_and_a_warning_is_counted(spark: SparkSession) -> None:
    rows = flights.judge(bronze(spark, line(1, 1), line(3, 1, tailnum="NA")), late=False)
    assert [row.flight_date for row in rows.where("reason IS NULL").sort("flight_date").collect()] == [
        date(2013, 1, 1), date(2013, 3, 1)
    ]  # fmt: skip
    assert flights.warnings(rows)["departure has an aircraft"] == 1


ARRIVALS = st.lists(
    st.tuples(st.sampled_from(["a.csv", "b.csv", "c.csv"]), st.sampled_from("xyz"), st.integers(1, 2)),
    min_size=1, max_size=12,
).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows)))  # fmt: skip


@given(ARRIVALS)
@settings(max_examples=5, deadline=None)
def test_the_order_of_arrival_never_changes_the_rows(spark: SparkSession, arrivals: Any) -> None:
    expected: dict[int, tuple[str, str]] = {}
    for batch, raw, flight in arrivals[0]:
        expected[flight] = max(expected.get(flight, ("", "")), (batch, raw))
    for rows in arrivals:
        frame = spark.createDataFrame(
            [(batch, raw, None, 2013, 1, 1, 600, "AA", flight, "JFK", raw) for batch, raw, flight in rows],
            f"batch STRING, raw STRING, reason STRING, {KEYS}, tailnum STRING",
        )
        result = [(row.flight, (row.batch, row.tailnum)) for row in flights.deduplicate(frame).collect()]
        assert sorted(result) == sorted(expected.items())


def test_a_day_counts_flights_cancelled_and_delayed_ones(spark: SparkSession) -> None:
    silver = spark.createDataFrame(
        [
            (NEWEST, "JFK", 600, 15),
            (NEWEST, "JFK", 616, 16),
            (NEWEST, "JFK", None, None),
            (NEWEST, "EWR", 1, 0),
        ],
        "flight_date DATE, origin STRING, dep_time INT, dep_delay INT",
    )
    rows = [tuple(row)[1:] for row in flights.daily(silver).sort("origin").collect()]
    assert rows == [("EWR", 1, 0, 0, 0.0), ("JFK", 3, 1, 1, 15.5)]


class Lake:
    """The tables of a database, and the folder of its batches."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.landing = spark, folder / "landing"
        self.landing.mkdir()

    def land(self, batch: str, *lines: str, header: str = FLIGHTS.header) -> None:
        (self.landing / f"{batch}.csv").write_text("\n".join([header, *lines, ""]), encoding="utf-8")

    def run(self, days: str | None = None, *, killed: bool = False) -> tuple[list[str], list[str]]:
        """Run the pipeline; return the tables that it wrote, and the faults."""
        pipeline = Pipeline(self.spark, "lake")
        stages = [pipeline.bronze(str(self.landing)), pipeline.silver(), pipeline.gold()]
        stages += [pipeline.silver(days), pipeline.gold(days)] if days else []
        written = chain.from_iterable(stages[: 2 if killed else None])
        return [result["table"].rpartition(".")[2] for result in written], pipeline.faults

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(query.replace("FROM ", "FROM iceberg.lake.")).collect()]

    def gold(self) -> list[tuple[Any, ...]]:
        return [
            (str(day), *rest) for day, *rest in self.rows("SELECT flight_date, flights, mean_delay FROM gold")
        ]


def test_batches_become_bronze_silver_and_gold(local: tuple[SparkSession, Path]) -> None:
    lake = Lake(*local)
    lake.land("2013-03", line(3, 1), line(3, 1), line(3, 1, distance="0"))
    size = (lake.landing / "2013-03.csv").stat().st_size
    assert lake.run() == (["bronze", "rejected", "silver", "gold"], [])
    assert lake.gold() == [("2013-03-01", 1, 2.0)]
    assert lake.run() == ([], [])

    # A late row, a newer version of a row, and files that are refused; the run ends before gold.
    lake.land("2013-04", line(1, 5), line(3, 1, dep_delay="8"))
    refused = {"2013-03": [line(3, 1)], "2013-05": [line(5, 1)], "it's": [line(3, 1)]}
    for batch, lines in refused.items():
        lake.land(batch, *lines, header=f"{FLIGHTS.header},gate" if batch == "2013-05" else FLIGHTS.header)
    written, faults = lake.run(killed=True)
    assert written == ["bronze", "rejected", "silver"]
    assert [fault.partition(";")[0] for fault in faults] == [
        f"2013-03.csv: differs from the batch of {size} bytes in bronze",
        "2013-05.csv: column 'gate' is unknown",
        "it's.csv: a name has letters, digits, '.', '_' and '-'",
    ]
    assert lake.gold() == [("2013-03-01", 1, 2.0)]
    for batch in refused:
        (lake.landing / f"{batch}.csv").unlink()
    assert lake.run() == (["gold"], [])
    assert lake.gold() == [("2013-03-01", 1, 8.0)]
    reasons = "SELECT reason FROM rejected ORDER BY 1"
    assert lake.rows(reasons) == [("expectation: distance is positive",), (LATE,)]

    days = "flight_date BETWEEN DATE'2013-01-01' AND DATE'2013-01-31'"
    assert lake.run(days) == (["rejected", "silver", "gold"], [])
    assert sorted(lake.gold()) == [("2013-01-05", 1, 2.0), ("2013-03-01", 1, 8.0)]
    assert lake.rows(reasons) == [("expectation: distance is positive",)]
    lineage = lake.rows("SELECT summary['lakehouse.stage'], summary['lakehouse.input'] FROM bronze.snapshots")
    assert lineage == [("bronze", "2013-03.csv"), ("bronze", "2013-04.csv")]
