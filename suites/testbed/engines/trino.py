"""Trino as a user's client: a session that records its statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from trino.dbapi import Connection, connect
from trino.exceptions import Error

from suites.testbed.engines import EngineError
from suites.testbed.engines.facade import Facade, Row

ENGINE = "trino"


@dataclass(repr=False)
class Trino(Facade):
    """A session with the coordinator at `url`; `statements` are what it has sent, oldest first.

    The client says that it understands timestamps of any precision: else the server cuts them to millis.
    Values come as Decimal, date, list, dict, tuple (for a row), bytes, None, and datetime, which is in UTC
    where the type has a zone and has none where the type has none.
    """

    connection: Connection
    url: str
    user: str
    statements: list[str] = field(default_factory=list)

    @classmethod
    def connect(cls, url: str, user: str, catalog: str = "iceberg") -> Trino:
        """Prepare a session; the first statement finds out whether Trino answers."""
        address = urlsplit(url)
        connection = connect(
            host=address.hostname,
            port=address.port,
            http_scheme=address.scheme,
            user=user,
            catalog=catalog,
            timezone="UTC",
            source="smoke",
        )
        return cls(connection, url, user)

    def sql(self, statement: str) -> list[Row]:
        """Run one statement to its end; return its rows (for a change: one row with the number of rows).

        Raises EngineError with the server's message, also where no server answers.
        """
        self.statements.append(statement)
        cursor = self.connection.cursor()
        try:
            cursor.execute(statement)
            return [tuple(_plain(value) for value in row) for row in cursor.fetchall()]
        except (Error, OSError) as error:
            raise EngineError(ENGINE, statement, _message(error)) from error


def _plain(value: Any) -> Any:
    """Return the value as plain Python has it: no tuples with names, every zone UTC."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def _message(error: Exception) -> str:
    """Return the server's message and its root cause, such as HDFS for `Failed to list directory`."""
    message = str(getattr(error, "message", None) or error)
    cause = getattr(error, "failure_info", None) or {}
    while inner := cause.get("cause") or next(iter(cause.get("suppressed") or ()), None):
        cause = inner
    cause_message = str(cause.get("message") or "").partition("\n")[0]
    return (
        f"{message}\ncaused by: {cause_message}"
        if cause_message and cause_message not in message
        else message
    )
