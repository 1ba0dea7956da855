"""Lines of a CSV file become rows of a table, or are set aside with the reason and the text as it was."""

from __future__ import annotations

from itertools import zip_longest

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every PySpark program uses)

from pipeline.sources import MISSING, Source

RAW = "raw"
REASON = "reason"
_ROW = "row"
_CORRUPT = "corrupt"
# Letters of an unknown column that a message shows.
_MOST_LETTERS = 80


def header(lines: DataFrame) -> str:
    """Return the first line of a file; an empty one of an empty file."""
    first_line = lines.first()
    return str(first_line[0]) if first_line else ""


def drift(first_line: str, source: Source) -> str | None:
    """Return how a header differs from a source, by the first column that does; None if it does not."""
    columns = first_line.split(",")
    for column, expected in zip_longest(columns, source.names):
        if column == expected:
            continue
        if expected is not None and expected not in columns:
            return f"column {expected!r} is missing"
        place = "is not in its place" if column in source.names else "is unknown"
        return f"column {str(column)[:_MOST_LETTERS]!r} {place}"
    return None


def classify(lines: DataFrame, source: Source) -> DataFrame:
    """Parse a DataFrame whose column `value` has a line each; other columns stay.

    Adds `row` (a struct of the source's columns) and `reason`, which is null for a good row and else says
    what is wrong with it; `value` becomes `raw`. The header and empty lines are left out.
    """
    parsed = F.from_csv(
        F.col(RAW),
        f"{source.schema}, {_CORRUPT} STRING",
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "nullValue": MISSING},
    )
    content = lines.withColumnRenamed("value", RAW).where((F.col(RAW) != source.header) & (F.col(RAW) != ""))
    return content.withColumn(_ROW, parsed).withColumn(REASON, _reason(source))


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
