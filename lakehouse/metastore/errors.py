"""Errors between a client and its metastores; a metastore's own errors are the exceptions it declares."""

from __future__ import annotations

from lakehouse.errors import LakehouseError
from lakehouse.terminal import printable

_NEXT = ".venv/bin/lakehouse status"
_LONGEST = 300


def summary(error: BaseException) -> str:
    """Return the message of an error as one short line for a terminal."""
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    return printable(" ".join(str(message).split()))[:_LONGEST]


class MetastoreError(LakehouseError):
    """Any error between the client and its metastores."""

    def __init__(self, message: str, next_command: str = _NEXT) -> None:
        super().__init__(message, next_command)


class UnavailableError(MetastoreError):
    """No endpoint has answered; the message has the reason of each.

    With `sent` at least one of them has received the request.
    """

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class ReplyError(MetastoreError):
    """A reply cannot be read, or answers another request. A call fails over to the next endpoint."""


class ReplySizeError(ReplyError):
    """A reply is larger than `Options.reply`."""


class DeadlineError(MetastoreError):
    """The deadline of a call has passed."""


class BusyError(MetastoreError):
    """All connections to an endpoint are in use, and none was returned in time."""


class OutcomeError(MetastoreError):
    """A change was sent, and the metastore may or may not have made it; `__cause__` is why it is unknown."""


class UnsupportedError(MetastoreError):
    """The metastore has neither a method nor a variant of it."""


class IncompleteError(MetastoreError):
    """An answer lacks an object that was requested by name."""
