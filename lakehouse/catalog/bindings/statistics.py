"""Convert column statistics from the rows of a commit to Thrift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal as Number
from typing import Any

from hive_metastore.ttypes import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    LongColumnStatsData,
    StringColumnStatsData,
)

from lakehouse.catalog.bindings.field_reader import FieldReader, ReportField
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name

_Convert = Callable[[Any], Any]


def columns(
    name: Name, document: Document | None, requested: Iterable[str], report_field: ReportField
) -> list[ColumnStatisticsObj]:
    """Return the statistics of the requested columns, as far as the commit has them."""
    names = {column.lower() for column in requested}
    rows = (document or {}).get("columns") or ()
    converted = (_column(name, row, report_field) for row in rows if str(row["COLUMN_NAME"]).lower() in names)
    return [statistics for statistics in converted if statistics]


def described(name: Name, document: Document | None, columns: list[ColumnStatisticsObj]) -> ColumnStatistics:
    """Return column statistics with the description of their object."""
    times = [int(row.get("LAST_ANALYZED") or 0) for row in (document or {}).get("columns") or ()]
    return ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(
            isTblLevel=not name.partition,
            dbName=name.database,
            tableName=name.table,
            partName=name.partition or None,
            lastAnalyzed=max(times, default=0),
            catName=name.catalog,
        ),
        statsObj=columns,
    )


def _column(name: Name, row: Mapping[str, Any], report_field: ReportField) -> ColumnStatisticsObj | None:
    fields = FieldReader(row, f"{name} statistics of {row['COLUMN_NAME']}", report_field)
    column, kind = fields.take("COLUMN_NAME"), fields.take("COLUMN_TYPE")
    plain = str(kind).lower().partition("(")[0].strip()
    if plain not in _KINDS:
        report_field(fields.name, f"type {kind}")
        return None
    data = ColumnStatisticsData(**_KINDS[plain](fields))
    fields.end("LAST_ANALYZED")
    return ColumnStatisticsObj(column, kind, data)


def _ranged(
    word: str, data: type, columns: str, convert: _Convert
) -> Callable[[FieldReader], dict[str, Any]]:
    """Return a conversion of statistics with a lowest and a highest value."""

    def convert_row(fields: FieldReader) -> dict[str, Any]:
        low, high = (_value(fields.take(f"{columns}_{end}_VALUE"), convert) for end in ("LOW", "HIGH"))
        return {
            word: data(
                lowValue=low, highValue=high, numDVs=_number(fields, "NUM_DISTINCTS"), **_common(fields)
            )
        }

    return convert_row


def _sized(word: str, data: type, *, distinct: bool) -> Callable[[FieldReader], dict[str, Any]]:
    """Return a conversion of statistics with lengths."""

    def convert_row(fields: FieldReader) -> dict[str, Any]:
        distinct_values = {"numDVs": _number(fields, "NUM_DISTINCTS")} if distinct else {}
        lengths = {
            "maxColLen": _number(fields, "MAX_COL_LEN"),
            "avgColLen": float(fields.take("AVG_COL_LEN") or 0),
        }
        return {word: data(**lengths, **distinct_values, **_common(fields))}

    return convert_row


def _boolean(fields: FieldReader) -> dict[str, Any]:
    trues, falses = _number(fields, "NUM_TRUES"), _number(fields, "NUM_FALSES")
    return {"booleanStats": BooleanColumnStatsData(numTrues=trues, numFalses=falses, **_common(fields))}


def _common(fields: FieldReader) -> dict[str, Any]:
    return {"numNulls": _number(fields, "NUM_NULLS"), "bitVectors": _value(fields.take("BIT_VECTOR"), _bytes)}


def _number(fields: FieldReader, key: str) -> int:
    return int(fields.take(key) or 0)


def _value(value: Any, convert: _Convert) -> Any:
    return None if value is None else convert(value)


def _bytes(text: str) -> bytes:
    """Parse PostgreSQL's text of a bytea."""
    return bytes.fromhex(text.removeprefix("\\x"))


def _decimal(text: str) -> Decimal:
    sign, digits, exponent = Number(text).as_tuple()
    scale = -int(exponent)
    number = int("".join(map(str, digits))) * (-1 if sign else 1) * 10 ** max(0, -scale)
    # As in Java's BigInteger, with one bit for the sign.
    size = (~number if number < 0 else number).bit_length() // 8 + 1
    return Decimal(unscaled=number.to_bytes(size, "big", signed=True), scale=max(0, scale))


_LONG = _ranged("longStats", LongColumnStatsData, "LONG", int)
_DOUBLE = _ranged("doubleStats", DoubleColumnStatsData, "DOUBLE", float)
_STRING = _sized("stringStats", StringColumnStatsData, distinct=True)
# By the name of a type without its size.
_KINDS: Mapping[str, Callable[[FieldReader], dict[str, Any]]] = {
    # Hive 3 stores timestamps as numbers.
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "timestamp"), _LONG),
    **dict.fromkeys(("float", "double"), _DOUBLE),
    **dict.fromkeys(("string", "char", "varchar"), _STRING),
    "decimal": _ranged("decimalStats", DecimalColumnStatsData, "BIG_DECIMAL", _decimal),
    "date": _ranged("dateStats", DateColumnStatsData, "LONG", lambda days: Date(int(days))),
    "binary": _sized("binaryStats", BinaryColumnStatsData, distinct=False),
    "boolean": _boolean,
}
