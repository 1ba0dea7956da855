"""Who may write what another engine made: members of the group; a reader reads all and changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from hive_metastore.ttypes import MetaException

from suites.matrix.cross.access import table as access
from suites.matrix.cross.access.acts import Ground
from suites.matrix.cross.access.table import Row
from suites.matrix.cross.engine_tables import HIVE_MAKERS, MAKERS, EngineTables, SharedTables
from suites.matrix.cross.engines import FLINK, PYICEBERG, SPARK, Engines
from suites.testbed import metastore, sessions
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.facade import Facade
from suites.testbed.formats import Format
from suites.testbed.namenode import NameNode, NameNodeError
from suites.testbed.nodes import Nodes

MEMBERS = ("spark", "trino", "flink", "hive")
OUTSIDER = "nobody"
MADE = [pytest.param(fmt, maker, id=f"{fmt}-{maker}") for fmt, maker in MAKERS]

# A person's program, as one user: the arguments are the endpoints, the user and the names of the tables.
_READS_AND_APPENDS = """
import sys
import lakehouse_clients
path, user, *names = sys.argv[1:]
lake = lakehouse_clients.connect(path, user)
for name in names:
    rows = lake.arrow(name)
    print(name, rows.num_rows)
    try:
        print(name, "appended", lake.append(name, rows))
    except Exception as error:
        print(name, "refused", str(error).replace(chr(10), " ")[:500])
"""


@pytest.fixture(scope="module")
def ground(  # noqa: PLR0913, PLR0917 (fixtures)
    request: pytest.FixtureRequest,
    _engines: Engines,
    endpoints: Endpoints,
    namenode: NameNode,
    nodes: Nodes,
    makers: dict[str, EngineTables],
    reader: str,
) -> Iterator[Ground]:
    """Where people try what they may; its tables are dropped when the module has ended."""
    rows = [item.callspec.params.get("row") for item in request.session.items if hasattr(item, "callspec")]
    with closing(Ground(_engines, endpoints, namenode, nodes, makers, reader)) as ground:
        for row in rows:
            if row and row.act.slow:
                ground.begin(row.act)
        yield ground


@pytest.mark.operation("permissions: who may what", engine="{interface}")
@pytest.mark.parametrize(
    ("interface", "row"), [pytest.param(row.interface, row, id=str(row)) for row in access.load()]
)
def test_who_may(interface: str, row: Row, ground: Ground) -> None:
    """Every user whom the table names does it, every other user is refused."""
    assert interface == row.interface
    refused = ground.tried(row.act)
    assert {kind for kind, words in refused.items() if not words} == row.may, refused


def allowed(namenode: NameNode, path: str, user: str, action: str) -> bool:
    """Tell whether HDFS lets a user do something with a path (`action` like `r-x`)."""
    try:
        namenode.webhdfs("GET", "CHECKACCESS", path, user, fsaction=action)
    except NameNodeError as error:
        if "Permission denied" in str(error):
            return False
        raise
    return True


@pytest.mark.operation("permissions", engine="{maker}")
@pytest.mark.parametrize(("fmt", "maker"), MADE)
def test_members_change_what_any_engine_made(  # noqa: PLR0913, PLR0917 (fixtures and a pair)
    fmt: Format,
    maker: str,
    shared_tables: SharedTables,
    namenode: NameNode,
    reader: str,
    endpoints: Endpoints,
) -> None:
    only_members_change(shared_tables.location(shared_tables(fmt, maker)), namenode, reader, endpoints)


@pytest.mark.operation("permissions", engine="{maker}")
@pytest.mark.parametrize("maker", HIVE_MAKERS)
def test_members_change_what_any_engine_made_without_a_format(
    maker: str, shared_tables: SharedTables, namenode: NameNode, reader: str, endpoints: Endpoints
) -> None:
    only_members_change(shared_tables.location(shared_tables.hive(maker)), namenode, reader, endpoints)


def only_members_change(location: str | None, namenode: NameNode, reader: str, endpoints: Endpoints) -> None:
    """Check that members may do everything in a table's folders, a reader reads, and an outsider does not."""
    assert location
    files = [file.path for file in namenode.files(location)]
    folders = sorted({location, *(path.rpartition("/")[0] for path in files)})
    assert len(folders) > 1
    for user in (endpoints.users[member] for member in MEMBERS):
        assert [path for path in folders if not allowed(namenode, path, user, "rwx")] == []
    assert [path for path in folders if not allowed(namenode, path, reader, "r-x")] == []
    assert [path for path in folders if allowed(namenode, path, reader, "-w-")] == []
    assert [path for path in folders if allowed(namenode, path, OUTSIDER, "r-x")] == []
    assert [path for path in files if not allowed(namenode, path, reader, "r--")] == []


@pytest.mark.operation("permissions: drop", engine="metastore")
@pytest.mark.parametrize(("fmt", "maker"), MADE)
def test_the_metastore_lets_members_alone_drop(
    fmt: Format, maker: str, shared_tables: SharedTables, reader: str, endpoints: Endpoints
) -> None:
    table = shared_tables(fmt, maker)
    for user in (reader, OUTSIDER):
        with (
            metastore.Connection(endpoints.metastore, user, (user,)) as client,
            pytest.raises(MetaException, match=r"(?i)permission denied|not writable"),
        ):
            client.drop_table(table.database, table.name, True)


@pytest.mark.operation("permissions: no name is asked for", engine="{server}")
@pytest.mark.parametrize("server", [SPARK, FLINK])
def test_a_server_acts_as_its_own_user(  # noqa: PLR0913, PLR0917 (fixtures and a server)
    server: str,
    engines: Engines,
    iceberg: EngineTables,
    reader: str,
    endpoints: Endpoints,
    namenode: NameNode,
) -> None:
    """A reader who reaches Spark Connect or Flink's SQL gateway writes: docs/security.md."""
    table = iceberg.name()
    session: Facade = sessions.spark(endpoints, user=reader) if server == SPARK else engines.flink
    session.sql(f"CREATE TABLE {table.full(server)} (id INT)")
    location = iceberg.location(table)
    assert location
    assert namenode.status(location)["owner"] == endpoints.users[server]


@pytest.mark.operation("permissions: a reader", engine=PYICEBERG)
def test_a_reader_in_python(shared_tables: SharedTables, reader: str, endpoints: Endpoints) -> None:
    names = [f"{fmt}.{shared_tables(fmt, maker).short}" for fmt, maker in MAKERS]
    # The HDFS user of this process was set when its clients connected.
    environment = {key: text for key, text in os.environ.items() if key != "HADOOP_USER_NAME"}
    program = [sys.executable, "-c", _READS_AND_APPENDS, str(endpoints.path), reader, *names]
    process = subprocess.run(
        program, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    assert lines[::2] == [f"{table} 1" for table in names]
    for table, line in zip(names, lines[1::2], strict=True):
        assert line.startswith(f"{table} refused"), line
        assert "may not write" in line, line
