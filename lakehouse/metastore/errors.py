"""What goes wrong between a client and its metastores; what one of them refuses is its own exception."""

from __future__ import annotations

from lakehouse.errors import LakehouseError

_NEXT = ".venv/bin/lakehouse status"


class MetastoreError(LakehouseError):
    """Something is wrong between the client and its metastores."""

    def __init__(self, message: str, next_command: str = _NEXT) -> None:
        super().__init__(message, next_command)


class UnavailableError(MetastoreError):
    """No endpoint has answered; the message has the reason of each."""


class DeadlineError(MetastoreError):
    """The time that a call was given is over."""


class BusyError(MetastoreError):
    """All connections to an endpoint are in use, and none was given back in time."""


class OutcomeError(MetastoreError):
    """A connection ended after a change was sent: nobody knows whether the metastore has made it."""


class DivergedError(MetastoreError):
    """One of two metastores has a change that the other one has to have, and has not."""


class UnsupportedError(MetastoreError):
    """The metastore knows neither a method nor another one in its place."""


class IncompleteError(MetastoreError):
    """An answer lacks something that was asked for by name."""
