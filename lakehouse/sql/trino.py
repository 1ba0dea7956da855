"""Run statements on Trino over HTTP: no format of its command line keeps null and arrays."""

from __future__ import annotations

import shlex

from trino.dbapi import Cursor, connect
from trino.exceptions import Error, TrinoConnectionError, TrinoQueryError

from lakehouse.model import endpoints
from lakehouse.sql.query import Outcome, Query
from lakehouse.sql.rows import Rows
from plugins.module_utils.lakehouse.counting import counted

_LATE = {"EXCEEDED_TIME_LIMIT", "ABANDONED_QUERY"}
_ANSWER_SECONDS = 20.0


def ask(query: Query) -> Outcome:
    """Run the statements in one session, in order, until one fails; the server enforces the timeout."""
    results: list[Rows] = []
    place = endpoints.on("trino_http", query.host)
    connection = connect(
        host=place.address,
        port=place.port,
        http_scheme=place.scheme,
        user=query.user,
        catalog="iceberg",
        timezone="UTC",
        source="lakehouse sql",
        request_timeout=_ANSWER_SECONDS,
        max_attempts=1,
        session_properties={"query_max_run_time": f"{query.limit:.0f}s"},
        # Values as the server sends them, so that numbers and times keep their precision.
        legacy_primitive_types=True,
    )
    cursor = connection.cursor()
    try:
        for statement in query.statements:
            cursor = connection.cursor()
            cursor.execute(statement)
            results.append(_rows(cursor))
    except TrinoQueryError as error:
        return Outcome(tuple(results), _line(error.message), late=error.error_name in _LATE)
    except (Error, OSError) as error:
        silent = isinstance(error, TrinoConnectionError | OSError)
        return Outcome(tuple(results), _line(str(error)), silent=silent)
    except KeyboardInterrupt:
        cursor.cancel()
        raise
    return Outcome(tuple(results))


def session(query: Query) -> str:
    """Return the command of an interactive session on the host."""
    # The account has no home for a history, and a host may have no pager.
    return f"TRINO_HISTORY_FILE=/dev/null TRINO_PAGER= trino --user {shlex.quote(query.user)}"


def account(query: Query) -> str:
    """Return the Unix account of the interactive client; an option passes the user."""
    return query.account("trino")


def _rows(cursor: Cursor) -> Rows:
    rows = tuple(tuple(row) for row in cursor.fetchall())
    columns = tuple(column.name for column in cursor.description or ())
    if cursor.update_type and columns in {(), ("rows",)}:
        count = f": {counted(rows[0][0], 'row')}" if rows and rows[0] and rows[0][0] is not None else ""
        return Rows(messages=(f"{cursor.update_type}{count}",))
    return Rows(columns, rows)


def _line(message: str) -> str:
    return " ".join(message.split())
