"""Lines of a CSV file become rows of a table, or are set aside with the reason and the text as it was."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every PySpark program uses)

from pipeline.sources import MISSING, Source

RAW = "raw"
REASON = "reason"
_ROW = "row"
_CORRUPT = "corrupt"


def classify(lines: DataFrame, source: Source) -> DataFrame:
    """Parse a DataFrame of one column `value`, a line each.

    Returns the columns `raw` (the line), `row` (a struct of the source's columns) and `reason`, which is null
    for a good row and else says what is wrong with it. The header and empty lines are left out.
    """
    parsed = F.from_csv(
        F.col(RAW),
        f"{source.schema}, {_CORRUPT} STRING",
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "nullValue": MISSING},
    )
    content = lines.select(F.col("value").alias(RAW)).where(
        (F.col(RAW) != source.header) & (F.col(RAW) != "")
    )
    return content.select(RAW, parsed.alias(_ROW)).select(RAW, _ROW, _reason(source).alias(REASON))


def accepted(classified: DataFrame, source: Source) -> DataFrame:
    """Return the good rows with the columns of the source."""
    return classified.where(F.col(REASON).isNull()).select([F.col(f"{_ROW}.{name}") for name in source.names])


def rejected(classified: DataFrame, source: Source) -> DataFrame:
    """Return what was set aside: `source`, `reason`, `raw`."""
    return classified.where(F.col(REASON).isNotNull()).select(F.lit(source.name).alias("source"), REASON, RAW)


def _reason(source: Source) -> Column:
    """Say what is wrong with a row: most general first, for a shifted line has wrong values everywhere."""
    fields = F.split(F.col(RAW), ",", -1)
    corrupt = F.col(f"{_ROW}.{_CORRUPT}").isNotNull()
    wrong_count = F.concat(F.size(fields).cast("string"), F.lit(f" fields instead of {len(source.columns)}"))
    misfits = _listed(
        source.names,
        {
            name: F.get(fields, F.lit(index)).try_cast(kind).isNull()
            & (F.get(fields, F.lit(index)) != MISSING)
            for index, (name, kind) in enumerate(source.columns)
        },
    )
    absent = _listed(source.key, {name: F.col(f"{_ROW}.{name}").isNull() for name in source.key})
    return (
        F.when(corrupt & (F.size(fields) != len(source.columns)), wrong_count)
        .when(corrupt, F.concat(F.lit("wrong type: "), misfits))
        .when(absent != "", F.concat(F.lit("no key: "), absent))
    )


def _listed(names: tuple[str, ...], conditions: dict[str, Column]) -> Column:
    """Return the names whose condition is true, joined by commas; an empty text if there are none."""
    return F.concat_ws(", ", *[F.when(conditions[name], F.lit(name)) for name in names])
