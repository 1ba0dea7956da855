"""What people may do with the Python clients; each has a process, for HDFS knows a process by one name."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from suites.matrix.cross.access.acts import Act, Ground
from suites.testbed.databases import Table
from suites.testbed.formats import DELTA
from suites.testbed.tables import suffix

_SECONDS = 60

# A person's program, as one user: it does what it reads, one statement in a line, and answers each with one.
_PROGRAM = """
import json, sys
import lakehouse_clients
lake = lakehouse_clients.connect(sys.argv[1], sys.argv[2])
for line in sys.stdin:
    try:
        exec(json.loads(line), {"lake": lake})
        answer = ""
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}"
    print("answer " + json.dumps(answer), flush=True)
"""


class Person:
    """A running program of a user."""

    def __init__(self, endpoints: Path, user: str) -> None:
        # Who this process speaks to HDFS as was decided when its own clients connected.
        environment = {key: text for key, text in os.environ.items() if key != "HADOOP_USER_NAME"}
        command = [sys.executable, "-c", _PROGRAM, str(endpoints), user]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def do(self, statement: str) -> None:
        """Send the program a statement; RuntimeError with its words if it could not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        answer = ""
        while not answer.startswith("answer "):  # libraries print too
            if not select.select([self._process.stdout], [], [], _SECONDS)[0]:
                raise TimeoutError(f"no answer to {statement!r} within {_SECONDS} s")
            answer = self._process.stdout.readline()
            if not answer:
                raise EOFError(f"the program ended while it did {statement!r}")
        if words := json.loads(answer.removeprefix("answer ")):
            raise RuntimeError(words)

    def close(self) -> None:
        """End the program."""
        self._process.terminate()
        self._process.communicate(timeout=_SECONDS)


_people: dict[tuple[Path, str], Person] = {}


def _person(ground: Ground, user: str) -> Person:
    key = (ground.endpoints.path, user)
    if key not in _people:
        _people[key] = Person(*key)
        ground.at_the_end(lambda: _people.pop(key).close())
    return _people[key]


def _delta(ground: Ground) -> Table:
    """Make a Delta table by delta-rs."""
    table = ground.name(DELTA)
    ground.engines.clients.create(f"delta.{table.short}", pa.table({"id": pa.array([1, 2], pa.int32())}))
    return table


def runs(statement: str, **settings: object) -> Act:
    """Return the act of a statement; {table} is `database.table`, {other} a name that is free."""

    def do(ground: Ground, user: str, table: Table) -> None:
        filled = statement.format(
            table=table.short, database=table.database, other=f"{table.short}_{suffix()}"
        )
        _person(ground, user).do(filled)

    return Act(do, **settings)  # type: ignore[arg-type]


def _create_delta(ground: Ground, user: str, _: Table) -> None:
    statement = _ROWS.format() + f"lake.create('delta.{ground.name(DELTA).short}', rows)"
    _person(ground, user).do(statement)


_ROWS = "import pyarrow as pa; rows = pa.table({{'id': pa.array([3], pa.int32())}}); "

ACTS: Mapping[str, Mapping[str, Act]] = {
    "PyIceberg": {
        "read": runs("assert lake.arrow('iceberg.{table}').num_rows"),
        "append": runs(_ROWS + "lake.append('iceberg.{table}', rows)"),
        "delete": runs("lake.iceberg.load_table('{table}').delete('id = 3')"),
        "add a column": runs(
            "t = lake.iceberg.load_table('{table}')\n"
            "from pyiceberg.types import IntegerType\n"
            "with t.update_schema() as change: change.add_column('more', IntegerType())\n"
            "with t.update_schema() as change: change.delete_column('more')"
        ),
        "set a property": runs(
            "lake.iceberg.load_table('{table}').transaction().set_properties(word='x').commit_transaction()"
        ),
        "`create_table`": runs(
            _ROWS + "lake.create('iceberg.{other}', rows); lake.iceberg.drop_table('{other}')"
        ),
        "`rename_table`": runs(
            "lake.iceberg.rename_table('{table}', '{other}'); lake.iceberg.rename_table('{other}', '{table}')"
        ),
        "`drop_table`": runs("lake.iceberg.drop_table('{table}')", fresh=True),
    },
    "delta-rs": {
        "read": runs("assert lake.arrow('delta.{table}').num_rows", make=_delta),
        "append": runs(_ROWS + "lake.append('delta.{table}', rows)", make=_delta),
        "delete": runs("lake.delta('{table}').delete('id = 3')", make=_delta),
        "create": Act(_create_delta, _delta),
    },
    "DuckDB": {"read": runs("assert lake.sql('SELECT id FROM iceberg.{table}').num_rows")},
    "Polars": {"read": runs("assert len(lake.polars('iceberg.{table}'))")},
}
