"""The example to start from: what makes a row of flights good, late or a duplicate, and the sums of a day.

All are functions of DataFrames, so that their tests need no cluster; `pipeline.run` has the tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipeline import parsing
from pipeline.parsing import RAW, REASON
from pipeline.sources import FLIGHTS

BATCH, DATE, NEWEST = "batch", "flight_date", "newest_date"
ERROR, WARNING = "error", "warning"
# A row that is more days older than the newest flight before its batch is late.
LATE_DAYS = 30
# A departure that is more minutes late is delayed.
DELAY_MINUTES = 15


@dataclass(frozen=True)
class Expectation:
    """A condition in SQL on each row; NULL fulfils it. An error sets the row aside, a warning counts it."""

    name: str
    condition: str
    severity: str = ERROR


EXPECTATIONS = (
    Expectation("date exists", f"{DATE} IS NOT NULL"),
    Expectation("distance is positive", "distance > 0"),
    Expectation("origin is an airport of New York", "origin IN ('EWR', 'JFK', 'LGA')"),
    Expectation("delay is below a day", "abs(dep_delay) < 1440"),
    Expectation("departure has an aircraft", "dep_time IS NULL OR tailnum IS NOT NULL", WARNING),
    Expectation("landing has a delay", "arr_time IS NULL OR arr_delay IS NOT NULL", WARNING),
)


def judge(bronze: DataFrame, *, late: bool) -> DataFrame:
    """Return the columns of flights, the date, `batch`, `raw` and `reason`, which is null for a good row.

    With `late`, late rows have a reason, too.
    """
    parsed = parsing.classify(bronze.withColumnRenamed(RAW, "value"), FLIGHTS)
    fields = [F.col(f"row.{name}") for name in FLIGHTS.names]
    date = F.expr("try_cast(year || '-' || month || '-' || day AS DATE)")
    rows = parsed.select(BATCH, NEWEST, RAW, REASON, *fields).withColumn(DATE, date)
    too_old = F.col(DATE) < F.date_sub(NEWEST, LATE_DAYS)
    reasons = [F.col(REASON), _unfulfilled()]
    if late:
        reasons.append(F.when(too_old, F.concat(F.lit(f"late: {LATE_DAYS} days before "), F.col(NEWEST))))
    return rows.withColumn(REASON, F.coalesce(*reasons)).drop(NEWEST)


def accepted(rows: DataFrame) -> DataFrame:
    """Return the good rows."""
    return rows.where(F.col(REASON).isNull())


def set_aside(rows: DataFrame) -> DataFrame:
    """Return the lines of all others, once for each batch, with their reason."""
    return rows.where(F.col(REASON).isNotNull()).select(BATCH, DATE, REASON, RAW).distinct()


def deduplicate(rows: DataFrame) -> DataFrame:
    """Return one row for each key: of the batch with the greatest name, there of the greatest line."""
    names = [name for name in rows.columns if name not in (BATCH, RAW)]
    latest = F.max(F.struct(BATCH, RAW, *names)).alias("latest")
    return rows.groupBy(*FLIGHTS.key).agg(latest).select("latest.*").drop(RAW, REASON)


def daily(silver: DataFrame) -> DataFrame:
    """Return the sums of each day and airport."""
    return silver.groupBy(DATE, "origin").agg(
        F.count("*").alias("flights"),
        F.count_if(F.col("dep_time").isNull()).alias("cancelled"),
        F.count_if(F.col("dep_delay") > DELAY_MINUTES).alias("delayed"),
        F.round(F.avg("dep_delay"), 2).alias("mean_delay"),
    )


def warnings(rows: DataFrame) -> dict[str, int]:
    """Count the good rows that do not fulfil an expectation whose severity is a warning."""
    counts = [
        F.count_if(~_fulfilled(each)).alias(each.name) for each in EXPECTATIONS if each.severity == WARNING
    ]
    counted = accepted(rows).agg(*counts).first()
    return counted.asDict() if counted else {}


def _fulfilled(expectation: Expectation) -> Column:
    return F.coalesce(F.expr(expectation.condition), F.lit(True))


def _unfulfilled() -> Column:
    """Return the first error among the expectations, as a reason."""
    return F.coalesce(
        *(
            F.when(~_fulfilled(each), F.lit(f"expectation: {each.name}"))
            for each in EXPECTATIONS
            if each.severity == ERROR
        )
    )
