"""Run statements with a Spark driver on a client host, as a Unix account."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

from lakehouse.sql.nodes import Client
from lakehouse.sql.query import Outcome, Query
from lakehouse.sql.rows import Rows

_PROGRAM = Path(__file__).with_name("spark_rows.py")
_NO_HISTORY = "--conf spark.eventLog.enabled=false pyspark-shell"
# The beginning of a query plan or stack trace in a Java message.
_ENDS = (";\n", "\n== SQL", "\nJVM stacktrace", "\n\tat ", "\n")


def script(query: Query) -> str:
    """Return the shell command: Python with Spark's own library, and the program as its argument."""
    home = f"{query.host.variables['lakehouse_install_dir']}/spark/current"
    words = [f"SPARK_HOME={shlex.quote(home)}"]
    if _is_reader(query):
        words += ["SPARK_LOCAL_DIRS=/tmp", f"PYSPARK_SUBMIT_ARGS={shlex.quote(_NO_HISTORY)}"]
    path = 'PYTHONPATH="$SPARK_HOME/python:$(echo "$SPARK_HOME"/python/lib/py4j-*.zip)"'
    program = shlex.quote(_PROGRAM.read_text(encoding="utf-8"))
    return f"export {' '.join(words)}; {path} exec python3 -c {program}"


def session(query: Query) -> str:
    """Return the command of an interactive session on the host."""
    return (
        "SPARK_LOCAL_DIRS=/tmp spark-sql --conf spark.eventLog.enabled=false"
        if _is_reader(query)
        else "spark-sql"
    )


def client_input(query: Query) -> str:
    """Return the input of the program."""
    return json.dumps(list(query.statements))


def read(lines: Iterable[str]) -> Outcome:
    """Parse the program's lines."""
    results: list[tuple[tuple[str, ...], list[tuple[object, ...]]]] = []
    for line in lines:
        # The JVM also writes messages, such as a lack of memory.
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if "columns" in row:
            results.append((tuple(row["columns"]), []))
        elif "row" in row:
            results[-1][1].append(tuple(row["row"]))
        else:
            return Outcome(_results(results), _line(str(row["error"])))
    return Outcome(_results(results))


def _results(results: list[tuple[tuple[str, ...], list[tuple[object, ...]]]]) -> tuple[Rows, ...]:
    return tuple(Rows(names, tuple(rows)) if names else Rows(messages=("done",)) for names, rows in results)


def _line(message: str) -> str:
    for end in _ENDS:
        message = message.strip().partition(end)[0]
    return message


def _is_reader(query: Query) -> bool:
    """Return whether the user is a reader, who may not write to Spark's temporary and history folders."""
    return query.user in query.host.variables.get("lakehouse_readers", ())


CLIENT = Client(script, client_input, read)
