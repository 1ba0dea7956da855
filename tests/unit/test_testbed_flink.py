from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from suites.testbed.engines.flink_values import decode, root_cause

TEXT = {"type": "VARCHAR"}


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, {"type": "DATE"}, None),
        (7, {"type": "BIGINT"}, 7),
        (True, {"type": "BOOLEAN"}, True),
        ("a", TEXT, "a"),
        (Decimal("1.5"), {"type": "DECIMAL", "precision": 10, "scale": 3}, Decimal("1.500")),
        (Decimal("1.5"), {"type": "DOUBLE"}, 1.5),
        ("2020-01-02", {"type": "DATE"}, date(2020, 1, 2)),
        ("01:02:03", {"type": "TIME_WITHOUT_TIME_ZONE"}, time(1, 2, 3)),
        (
            "2020-01-01T01:02:03.123456",
            {"type": "TIMESTAMP_WITHOUT_TIME_ZONE"},
            datetime(2020, 1, 1, 1, 2, 3, 123456),
        ),
        (
            "2020-01-01T01:02:03.5Z",
            {"type": "TIMESTAMP_WITH_LOCAL_TIME_ZONE"},
            datetime(2020, 1, 1, 1, 2, 3, 500000, tzinfo=UTC),
        ),
        ("AP8=", {"type": "VARBINARY"}, b"\x00\xff"),
        ([1, None], {"type": "ARRAY", "elementType": {"type": "INTEGER"}}, [1, None]),
        ({"a": "AA=="}, {"type": "MAP", "keyType": TEXT, "valueType": {"type": "BINARY"}}, {"a": b"\x00"}),
        (
            {"n": 1, "day": "2020-01-02"},
            {
                "type": "ROW",
                "fields": [
                    {"name": "n", "fieldType": {"type": "INTEGER"}},
                    {"name": "day", "fieldType": {"type": "DATE"}},
                ],
            },
            {"n": 1, "day": date(2020, 1, 2)},
        ),
    ],
)
def test_a_value_becomes_python(value: Any, kind: dict[str, Any], expected: Any) -> None:
    got = decode(value, kind)
    assert (got, type(got)) == (expected, type(expected))
    assert str(got) == str(expected)


def test_the_last_cause_is_the_reason() -> None:
    trace = (
        "<Exception on server side:\norg.example.GatewayException: Failed to fetch.\n\tat org.example.A\n"
        "Caused by: org.example.Outer: wrapped\n\tat org.example.C.d(C.java)\n"
        "Caused by: org.example.Inner$Deep: Object 'nope'\nnot found\n\tat org.example.E\n\t... 8 more\n\n"
        "End of exception on server side>"
    )
    assert root_cause(trace) == "Inner$Deep: Object 'nope'\nnot found"


@pytest.mark.parametrize(
    ("trace", "reason"), [("Session is gone.\n", "Session is gone."), ("", "no reason given")]
)
def test_a_trace_without_causes_is_its_first_line(trace: str, reason: str) -> None:
    assert root_cause(trace) == reason
