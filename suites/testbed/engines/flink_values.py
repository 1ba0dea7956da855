"""Values of the SQL gateway's JSON rows as Python's types."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

LogicalType = Mapping[str, Any]

_CAUSE = re.compile(
    r"^Caused by: (?:[\w$]+\.)*(?P<name>[\w$]+): (?P<text>.*?)"
    r"(?=\n\s+at |\n\s*\.\.\. |\nCaused by|\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


def decode(value: Any, kind: LogicalType) -> Any:
    """One value by its logical type; numbers must come as int and Decimal, a row becomes a dict by field.

    A timestamp with local time zone is an aware datetime in UTC, one without is naive. What has no type of
    Python's own (an interval) stays as the gateway printed it.
    """
    if value is None or kind["type"] not in _DECODERS:
        return value
    return _DECODERS[kind["type"]](value, kind)


def root_cause(trace: str) -> str:
    """What a Java stack trace is about: name and message of its last cause, or its first line without one."""
    if causes := list(_CAUSE.finditer(trace)):
        return f"{causes[-1]['name']}: {causes[-1]['text'].strip()}"
    lines = [
        line.strip() for line in trace.splitlines() if line.strip() and not line.startswith("<Exception")
    ]
    return lines[0] if lines else "no reason given"


def _decimal(value: Any, kind: LogicalType) -> Decimal:
    # Not quantize: it gives up beyond 28 digits.
    return Decimal(f"{Decimal(str(value)):.{int(kind['scale'])}f}")


def _list(value: Any, kind: LogicalType) -> list[Any]:
    return [decode(item, kind["elementType"]) for item in value]


def _map(value: Any, kind: LogicalType) -> dict[Any, Any]:
    return {decode(key, kind["keyType"]): decode(item, kind["valueType"]) for key, item in value.items()}


def _row(value: Any, kind: LogicalType) -> dict[str, Any]:
    return {field["name"]: decode(value[field["name"]], field["fieldType"]) for field in kind["fields"]}


def _timestamp(value: Any, _: LogicalType) -> datetime:
    return datetime.fromisoformat(value)


_DECODERS: Mapping[str, Callable[[Any, LogicalType], Any]] = {
    "DECIMAL": _decimal,
    "FLOAT": lambda value, _: float(value),
    "DOUBLE": lambda value, _: float(value),
    "DATE": lambda value, _: date.fromisoformat(value),
    "TIME_WITHOUT_TIME_ZONE": lambda value, _: time.fromisoformat(value),
    "TIMESTAMP_WITHOUT_TIME_ZONE": _timestamp,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": _timestamp,
    "BINARY": lambda value, _: base64.b64decode(value),
    "VARBINARY": lambda value, _: base64.b64decode(value),
    "ARRAY": _list,
    "MAP": _map,
    "ROW": _row,
}
