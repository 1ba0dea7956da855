"""What goes wrong between a client and its metastores; what one of them refuses is its own exception."""

from __future__ import annotations

from lakehouse.errors import LakehouseError
from lakehouse.terminal import printable

_NEXT = ".venv/bin/lakehouse status"
_LONGEST = 300


def told(error: BaseException) -> str:
    """Return what an error says, in one short line that a terminal can be given."""
    said = getattr(error, "message", None) or str(error) or type(error).__name__
    return printable(" ".join(str(said).split()))[:_LONGEST]


class MetastoreError(LakehouseError):
    """Something is wrong between the client and its metastores."""

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
    """The time that a call was given is over."""


class BusyError(MetastoreError):
    """All connections to an endpoint are in use, and none was given back in time."""


class OutcomeError(MetastoreError):
    """A change was sent, and the metastore may or may not have made it; `__cause__` is why it is unknown."""


class UnsupportedError(MetastoreError):
    """The metastore knows neither a method nor another one in its place."""


class IncompleteError(MetastoreError):
    """An answer lacks something that was asked for by name."""
