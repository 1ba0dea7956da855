"""Asks Trino over HTTP, from here: its command line has no format in which null and arrays survive."""

from __future__ import annotations

import shlex

from trino.dbapi import Cursor, connect
from trino.exceptions import Error, TrinoConnectionError, TrinoQueryError

from lakehouse import endpoints
from ops.sql.query import Asked, Outcome
from ops.sql.rows import Rows
from plugins.module_utils.lakehouse.counting import counted

_LATE = {"EXCEEDED_TIME_LIMIT", "ABANDONED_QUERY"}
_ANSWER_SECONDS = 20.0


def ask(asked: Asked) -> Outcome:
    """Run the statements in one session, in order, until one fails; the server itself ends what is late."""
    found: list[Rows] = []
    place = endpoints.on("trino_http", asked.host)
    connection = connect(
        host=place.address,
        port=place.port,
        http_scheme=place.scheme,
        user=asked.person,
        catalog="iceberg",
        timezone="UTC",
        source="lakehouse sql",
        request_timeout=_ANSWER_SECONDS,
        max_attempts=1,
        session_properties={"query_max_run_time": f"{asked.limit:.0f}s"},
        # Values as the server writes them: numbers of any size and times of any precision stay whole.
        legacy_primitive_types=True,
    )
    cursor = connection.cursor()
    try:
        for statement in asked.statements:
            cursor = connection.cursor()
            cursor.execute(statement)
            found.append(_rows(cursor))
    except TrinoQueryError as error:
        return Outcome(tuple(found), _line(error.message), late=error.error_name in _LATE)
    except (Error, OSError) as error:
        silent = isinstance(error, TrinoConnectionError | OSError)
        return Outcome(tuple(found), _line(str(error)), silent=silent)
    except KeyboardInterrupt:
        cursor.cancel()
        raise
    return Outcome(tuple(found))


def session(asked: Asked) -> str:
    """Return the command of a session on the host."""
    # Who it runs as has no home for a history, and a host need not have a pager.
    return f"TRINO_HISTORY_FILE=/dev/null TRINO_PAGER= trino --user {shlex.quote(asked.person)}"


def account(asked: Asked) -> str:
    """Return as whom the session's program runs: it is told the person by an option."""
    return asked.user("trino")


def _rows(cursor: Cursor) -> Rows:
    rows = tuple(tuple(row) for row in cursor.fetchall())
    columns = tuple(column.name for column in cursor.description or ())
    if cursor.update_type and columns in {(), ("rows",)}:
        count = f": {counted(rows[0][0], 'row')}" if rows and rows[0] and rows[0][0] is not None else ""
        return Rows(said=(f"{cursor.update_type}{count}",))
    return Rows(columns, rows)


def _line(message: str) -> str:
    return " ".join(message.split())
