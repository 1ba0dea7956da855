"""Who may write what another engine made: members of the group; a reader reads all and changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hive_metastore.ttypes import MetaException

from smoke import metastore
from smoke.engines.facade import Facade
from smoke.formats import Format
from smoke.lake import Lake
from smoke.matrix.cross.access import table as access
from smoke.matrix.cross.access.acts import PEOPLE, Ground, refusal
from smoke.matrix.cross.access.table import Row
from smoke.matrix.cross.engines import FLINK, PYICEBERG, SPARK, TRINO, Engines, name
from smoke.matrix.cross.making import MAKERS, AnyEnginesTables, Made
from smoke.namenode import NameNode, NameNodeError
from smoke.nodes import Nodes
from smoke.settings import Endpoints

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
def ground(
    _engines: Engines,
    endpoints: Endpoints,
    namenode: NameNode,
    nodes: Nodes,
    makers: dict[str, AnyEnginesTables],
    reader: str,
) -> Ground:
    """Where people try what they may; its tables are dropped when the module has ended."""
    return Ground(_engines, endpoints, namenode, nodes, makers, reader)


@pytest.mark.operation("permissions: who may what", engine="{interface}")
@pytest.mark.parametrize(
    ("interface", "row"), [pytest.param(row.interface, row, id=str(row)) for row in access.load()]
)
def test_who_may(interface: str, row: Row, ground: Ground) -> None:
    """Everybody whom the table names does it, everybody else is refused."""
    assert interface == row.interface
    table = ground.table(row.act)
    refused = {kind: refusal(ground, row.act, ground.people[kind], table) for kind in PEOPLE}
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
    made: Made,
    namenode: NameNode,
    reader: str,
    endpoints: Endpoints,
) -> None:
    location = made.location(made(fmt, maker))
    assert location
    folders = [location, *(f"{location}/{name}" for name in namenode.names(location) if "." not in name)]
    files = [file.path for file in namenode.files(location)]
    assert len(files) > 1
    for user in (endpoints.users[member] for member in MEMBERS):
        assert [path for path in folders if not allowed(namenode, path, user, "rwx")] == []
    for path in folders:
        assert allowed(namenode, path, reader, "r-x")
        assert not allowed(namenode, path, reader, "-w-")
        assert not allowed(namenode, path, OUTSIDER, "r-x")
    assert [path for path in files if not allowed(namenode, path, reader, "r--")] == []


@pytest.mark.operation("permissions: drop", engine="metastore")
@pytest.mark.parametrize(("fmt", "maker"), MADE)
def test_the_metastore_lets_members_alone_drop(
    fmt: Format, maker: str, made: Made, reader: str, endpoints: Endpoints
) -> None:
    table = made(fmt, maker)
    for user in (reader, OUTSIDER):
        with (
            metastore.Connection(endpoints.metastore, user, (user,)) as client,
            pytest.raises(MetaException, match=r"(?i)permission denied|not writable"),
        ):
            client.drop_table(table.database, table.name, True)


@pytest.mark.operation("permissions: a reader", engine=TRINO)
@pytest.mark.parametrize(("fmt", "maker"), MADE)
def test_a_reader_in_trino(fmt: Format, maker: str, made: Made, reader_in_trino: Engines) -> None:
    table = name(TRINO, made(fmt, maker))
    assert reader_in_trino.sql(TRINO, f"SELECT id FROM {table}") == [(1,)]
    for statement in ("INSERT INTO {} VALUES 2", "DROP TABLE {}", "CREATE TABLE {}_2 (id INT)"):
        reader_in_trino.refuses(TRINO, statement.format(table), r"(?i)access denied")


@pytest.mark.operation("permissions: nobody is asked for a name", engine="{server}")
@pytest.mark.parametrize("server", [SPARK, FLINK])
def test_a_server_acts_as_its_own_user(  # noqa: PLR0913, PLR0917 (fixtures and a server)
    server: str,
    engines: Engines,
    iceberg: AnyEnginesTables,
    reader: str,
    endpoints: Endpoints,
    namenode: NameNode,
) -> None:
    """A reader who reaches Spark Connect or Flink's SQL gateway writes: docs/security.md."""
    table = iceberg.name()
    connect = f"{endpoints.spark.connect_url}/;user_id={reader}"
    session: Facade = Lake.connect(connect) if server == SPARK else engines.flink
    session.sql(f"CREATE TABLE {name(server, table)} (id INT)")
    location = iceberg.location(table)
    assert location
    assert namenode.status(location)["owner"] == endpoints.users[server]


@pytest.mark.operation("permissions: a reader", engine=PYICEBERG)
def test_a_reader_in_python(made: Made, reader: str, endpoints: Endpoints) -> None:
    names = [f"{fmt}.{made(fmt, maker).short}" for fmt, maker in MAKERS]
    # Who this process speaks to HDFS as was decided when its clients connected.
    environment = {key: text for key, text in os.environ.items() if key != "HADOOP_USER_NAME"}
    program = [sys.executable, "-c", _READS_AND_APPENDS, str(endpoints.path), reader, *names]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[::2] == [f"{table} 1" for table in names]
    for table, line in zip(names, said[1::2], strict=True):
        assert line.startswith(f"{table} refused"), line
        assert "ermission" in line, line
