"""Programs on this computer reach every service at the ports of the settings, DataNodes by their names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import lakehouse_clients
import pytest
import requests
from lakehouse_clients.names import Name
from lakehouse_clients.settings import USER_VARIABLE

from lakehouse import run
from lakehouse.local.compose import names
from lakehouse.local.compose.dotenv import Settings
from suites.testbed import metastore
from suites.testbed.endpoints import Endpoints, load
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.spark import Spark
from suites.testbed.engines.trino import Trino
from suites.testbed.namenode import NameNode
from suites.testbed.tables import suffix
from tests.compose.conftest import BIRDS

pytestmark = pytest.mark.cluster

SECONDS = 30
CONTENT = b"through a DataNode\n"
IN_ORDER = "SELECT name, wings FROM {} ORDER BY name"


@pytest.fixture(scope="module")
def endpoints(everything: Settings, tmp_path_factory: pytest.TempPathFactory) -> Endpoints:
    """Where this computer finds the services, as the playbook writes it for every suite."""
    if unknown := names.unknown(names.of(everything)):
        pytest.fail(f"{', '.join(unknown)} lead elsewhere; next: {names.command(everything)}")
    file = tmp_path_factory.mktemp("reach") / "endpoints.json"
    target = f"lakehouse_endpoints_file={file}"
    run.playbook("endpoints", everything.inventory, "--extra-vars", target, environment=everything.values)
    return load(file)


@pytest.fixture
def file(endpoints: Endpoints) -> Iterator[str]:
    """The path of a file in HDFS, which does not exist yet."""
    path = f"{endpoints.root}/reach_{suffix()}"
    yield path
    NameNode(endpoints.namenode.http, endpoints.users["hdfs"]).remove(path)


def test_webhdfs_sends_to_a_datanode_and_back(everything: Settings, endpoints: Endpoints, file: str) -> None:
    [datanode] = endpoints.in_group("datanodes")
    its_address = f"{datanode.name}:{everything.values['DATANODE1_HTTP_PORT']}"
    url = f"{endpoints.namenode.http}/webhdfs/v1{file}?user.name={endpoints.users['hdfs']}&op="

    sent = requests.put(f"{url}CREATE", allow_redirects=False, timeout=SECONDS)
    assert sent.is_redirect, sent.text
    assert urlsplit(sent.headers["Location"]).netloc == its_address
    written = requests.put(sent.headers["Location"], data=CONTENT, timeout=SECONDS)
    assert written.status_code == 201, written.text

    read = requests.get(f"{url}OPEN", timeout=SECONDS)
    assert read.content == CONTENT
    assert urlsplit(read.url).netloc == its_address


def test_python_reads_and_writes_at_the_data_port(
    endpoints: Endpoints, birds: str, spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To connect sets it for the whole process.
    monkeypatch.setenv(USER_VARIABLE, endpoints.users["spark"])
    here = lakehouse_clients.connect(endpoints.path)
    assert here.settings.hdfs["dfs.client.use.datanode.hostname"] == "true"
    rows = here.arrow(birds).sort_by("name")
    assert [tuple(row.values()) for row in rows.to_pylist()] == BIRDS

    table = f"iceberg.default.reach_{suffix()}"
    spark.sql(f"CREATE TABLE {table} (name STRING, wings INT) USING iceberg")
    try:
        here.append(table, rows)
        spark.expect(IN_ORDER.format(table), BIRDS)
    finally:
        spark.sql(f"DROP TABLE {table} PURGE")


def test_trino(endpoints: Endpoints, birds: str) -> None:
    assert endpoints.trino
    trino = Trino.connect(endpoints.trino.http, endpoints.users["trino"])
    trino.expect(IN_ORDER.format(birds), BIRDS)


def test_the_sql_gateway_of_flink(endpoints: Endpoints, birds: str) -> None:
    assert endpoints.flink
    with closing(Flink.connect(endpoints.flink.sql_gateway)) as flink:
        flink.expect(IN_ORDER.format(birds), BIRDS)


def test_the_metastore(endpoints: Endpoints, birds: str) -> None:
    database, table = Name.parse(birds).identifier
    with metastore.Connection(endpoints.metastore, endpoints.users["spark"], (endpoints.group,)) as client:
        assert client.get_all_tables(database) == [table]
        assert client.get_table(database, table).sd.location.startswith(endpoints.warehouse)
