"""Statistics of columns as Thrift has them, from the rows that a commit keeps."""

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

from lakehouse.catalog.bindings.field_reader import Lost, Taken
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name

_Convert = Callable[[Any], Any]


def columns(
    name: Name, said: Document | None, wanted: Iterable[str], lost: Lost
) -> list[ColumnStatisticsObj]:
    """Return the statistics of those columns of an object of which the commit has some."""
    names = {one.lower() for one in wanted}
    rows = (said or {}).get("columns") or ()
    found = (_column(name, row, lost) for row in rows if str(row["COLUMN_NAME"]).lower() in names)
    return [one for one in found if one]


def described(name: Name, said: Document | None, found: list[ColumnStatisticsObj]) -> ColumnStatistics:
    """Return statistics with whose they are."""
    times = [int(row.get("LAST_ANALYZED") or 0) for row in (said or {}).get("columns") or ()]
    return ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(
            isTblLevel=not name.partition,
            dbName=name.database,
            tableName=name.table,
            partName=name.partition or None,
            lastAnalyzed=max(times, default=0),
            catName=name.catalog,
        ),
        statsObj=found,
    )


def _column(name: Name, row: Mapping[str, Any], lost: Lost) -> ColumnStatisticsObj | None:
    fields = Taken(row, f"{name} statistics of {row['COLUMN_NAME']}", lost)
    column, kind = fields.take("COLUMN_NAME"), fields.take("COLUMN_TYPE")
    plain = str(kind).lower().partition("(")[0].strip()
    if plain not in _KINDS:
        lost(fields.name, f"type {kind}")
        return None
    data = ColumnStatisticsData(**_KINDS[plain](fields))
    fields.end("LAST_ANALYZED")
    return ColumnStatisticsObj(column, kind, data)


def _ranged(word: str, data: type, columns: str, convert: _Convert) -> Callable[[Taken], dict[str, Any]]:
    """Return what makes statistics that have a lowest and a highest value."""

    def made(fields: Taken) -> dict[str, Any]:
        low, high = (_value(fields.take(f"{columns}_{end}_VALUE"), convert) for end in ("LOW", "HIGH"))
        return {
            word: data(lowValue=low, highValue=high, numDVs=_number(fields, "NUM_DISTINCTS"), **_both(fields))
        }

    return made


def _sized(word: str, data: type, *, distinct: bool) -> Callable[[Taken], dict[str, Any]]:
    """Return what makes statistics that have lengths."""

    def made(fields: Taken) -> dict[str, Any]:
        counted = {"numDVs": _number(fields, "NUM_DISTINCTS")} if distinct else {}
        lengths = {
            "maxColLen": _number(fields, "MAX_COL_LEN"),
            "avgColLen": float(fields.take("AVG_COL_LEN") or 0),
        }
        return {word: data(**lengths, **counted, **_both(fields))}

    return made


def _boolean(fields: Taken) -> dict[str, Any]:
    trues, falses = _number(fields, "NUM_TRUES"), _number(fields, "NUM_FALSES")
    return {"booleanStats": BooleanColumnStatsData(numTrues=trues, numFalses=falses, **_both(fields))}


def _both(fields: Taken) -> dict[str, Any]:
    return {"numNulls": _number(fields, "NUM_NULLS"), "bitVectors": _value(fields.take("BIT_VECTOR"), _bytes)}


def _number(fields: Taken, key: str) -> int:
    return int(fields.take(key) or 0)


def _value(said: Any, convert: _Convert) -> Any:
    return None if said is None else convert(said)


def _bytes(said: str) -> bytes:
    """Return the bytes of PostgreSQL's text for them."""
    return bytes.fromhex(said.removeprefix("\\x"))


def _decimal(said: str) -> Decimal:
    sign, digits, exponent = Number(said).as_tuple()
    scale = -int(exponent)
    number = int("".join(map(str, digits))) * (-1 if sign else 1) * 10 ** max(0, -scale)
    # As Java's BigInteger has it: one bit for the sign.
    size = (~number if number < 0 else number).bit_length() // 8 + 1
    return Decimal(unscaled=number.to_bytes(size, "big", signed=True), scale=max(0, scale))


_LONG = _ranged("longStats", LongColumnStatsData, "LONG", int)
_DOUBLE = _ranged("doubleStats", DoubleColumnStatsData, "DOUBLE", float)
_STRING = _sized("stringStats", StringColumnStatsData, distinct=True)
# By the name of a type without its size.
_KINDS: Mapping[str, Callable[[Taken], dict[str, Any]]] = {
    # Hive 3 keeps moments as numbers.
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "timestamp"), _LONG),
    **dict.fromkeys(("float", "double"), _DOUBLE),
    **dict.fromkeys(("string", "char", "varchar"), _STRING),
    "decimal": _ranged("decimalStats", DecimalColumnStatsData, "BIG_DECIMAL", _decimal),
    "date": _ranged("dateStats", DateColumnStatsData, "LONG", lambda days: Date(int(days))),
    "binary": _sized("binaryStats", BinaryColumnStatsData, distinct=False),
    "boolean": _boolean,
}
