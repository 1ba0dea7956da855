"""Lines of the file of flights, for the tests of the pipeline."""

from __future__ import annotations

from pipeline.sources import FLIGHTS

_LINE = "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"
_FLIGHT = dict(
    zip(
        FLIGHTS.names,
        _LINE.split(","),
        strict=True,
    )
)


def line(month: int, day: int, **values: str) -> str:
    """Return the line of a flight on a day of 2013, with other values in some columns."""
    return ",".join((_FLIGHT | {"month": str(month), "day": str(day)} | values).values())
