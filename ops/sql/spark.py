"""Asks Spark with a driver on a host that starts drivers, as a Unix account there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

from ops.sql.nodes import Client
from ops.sql.query import Asked, Outcome
from ops.sql.rows import Rows

_PROGRAM = Path(__file__).with_name("spark_rows.py")
_NO_HISTORY = "--conf spark.eventLog.enabled=false pyspark-shell"
# What says in Java's text where the plan of a statement begins, or its stack.
_ENDS = (";\n", "\n== SQL", "\nJVM stacktrace", "\n\tat ", "\n")


def script(asked: Asked) -> str:
    """Return the shell's line: Python with Spark's own library, and the program as its argument."""
    home = f"{asked.host.variables['lakehouse_install_dir']}/spark/current"
    words = [f"SPARK_HOME={shlex.quote(home)}"]
    if _reads(asked):
        words += ["SPARK_LOCAL_DIRS=/tmp", f"PYSPARK_SUBMIT_ARGS={shlex.quote(_NO_HISTORY)}"]
    path = 'PYTHONPATH="$SPARK_HOME/python:$(echo "$SPARK_HOME"/python/lib/py4j-*.zip)"'
    program = shlex.quote(_PROGRAM.read_text(encoding="utf-8"))
    return f"export {' '.join(words)}; {path} exec python3 -c {program}"


def session(asked: Asked) -> str:
    """Return the command of a session on the host."""
    return (
        "SPARK_LOCAL_DIRS=/tmp spark-sql --conf spark.eventLog.enabled=false"
        if _reads(asked)
        else "spark-sql"
    )


def given(asked: Asked) -> str:
    """Return what the program reads."""
    return json.dumps(list(asked.statements))


def read(lines: Iterable[str]) -> Outcome:
    """Read the program's lines."""
    found: list[tuple[tuple[str, ...], list[tuple[object, ...]]]] = []
    for line in lines:
        # The JVM writes there too, such as that it has no memory.
        if not line.startswith("{"):
            continue
        said = json.loads(line)
        if "columns" in said:
            found.append((tuple(said["columns"]), []))
        elif "row" in said:
            found[-1][1].append(tuple(said["row"]))
        else:
            return Outcome(_results(found), _line(str(said["error"])))
    return Outcome(_results(found))


def _results(found: list[tuple[tuple[str, ...], list[tuple[object, ...]]]]) -> tuple[Rows, ...]:
    return tuple(Rows(names, tuple(rows)) if names else Rows(said=("done",)) for names, rows in found)


def _line(message: str) -> str:
    for end in _ENDS:
        message = message.strip().partition(end)[0]
    return message


def _reads(asked: Asked) -> bool:
    """Tell whether the person is a reader: folders for temporary files and the history are the members'."""
    return asked.person in asked.host.variables.get("lakehouse_readers", ())


CLIENT = Client(script, given, read)
