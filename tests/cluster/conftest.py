"""One running cluster, named by its inventory; a test runs on the hosts or daemons that it asks for.

A test that takes `node` runs on every host, or on those of `@pytest.mark.group("metastore")`. One that takes
`daemon` runs for every unit of services.yml on every host where it belongs.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest

from lakehouse.clients import Files, MetastoreSession
from lakehouse.metastore import Metastore
from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Inventory
from plugins.module_utils.lakehouse.webhdfs import WebHdfs
from suites.testbed.engines.trino import Trino
from suites.testbed.namenode import NameNode
from tests.cluster.changing import Verb
from tests.cluster.daemons import Daemon, placements
from tests.cluster.machines import Machine, Machines, namenode_of, reached
from tests.cluster.playbooks import Ansible


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--inventory", default="tests/inventory", help="the cluster (%(default)s)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "group(name): runs on the hosts of this group instead of on all")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    known = _load(metafunc.config.getoption("--inventory"))
    if "daemon" in metafunc.fixturenames:
        pairs = [(host.name, placed) for placed in placements() for host in known.group(placed.group)]
        names = [f"{host}-{placed.name}" for host, placed in pairs]
        metafunc.parametrize("daemon", pairs, ids=names, indirect=True, scope="module")
    elif "node" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("group")
        hosts = known.group(marker.args[0]) if marker else known.hosts
        metafunc.parametrize("node", [host.name for host in hosts], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes the cluster apart comes after what looks at it."""
    items.sort(key=lambda item: any(map(item.get_closest_marker, ("drill", "longdrill"))))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of the daemon's journal to a failure."""
    report = yield
    daemon = getattr(item, "funcargs", {}).get("daemon")
    if report.failed and isinstance(daemon, Daemon):
        report.sections.append((f"journal of {daemon.unit} on {daemon.machine.name}", daemon.journal()))
    return report


@cache
def _load(path: str) -> Inventory:
    return inventory.load(path)


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Inventory:
    return _load(pytestconfig.getoption("--inventory"))


@pytest.fixture(scope="session")
def ansible(pytestconfig: pytest.Config) -> Ansible:
    return Ansible(pytestconfig.getoption("--inventory"))


@pytest.fixture(scope="session")
def verb(pytestconfig: pytest.Config) -> Verb:
    return Verb(str(pytestconfig.getoption("--inventory")))


@pytest.fixture
def store(tmp_path: Path) -> tuple[str, str]:
    """Where a test keeps a history of the catalog, as the words of a command."""
    return "--store", str(tmp_path / "catalog.git")


@pytest.fixture
def metastore(cluster: Inventory) -> Iterator[Metastore]:
    with MetastoreSession(placement.read(cluster)) as session:
        yield session


@pytest.fixture(scope="session")
def machines(cluster: Inventory) -> Iterator[Machines]:
    with reached(cluster) as found:
        yield found


@pytest.fixture
def node(request: pytest.FixtureRequest, machines: Machines) -> Machine:
    return machines[request.param]


@pytest.fixture(scope="module")
def daemon(request: pytest.FixtureRequest, machines: Machines) -> Daemon:
    host, placed = request.param
    return Daemon(machines[host], placed)


@pytest.fixture(scope="session")
def namenode(cluster: Inventory) -> NameNode:
    return namenode_of(cluster)


@pytest.fixture(scope="module")
def coordinator(cluster: Inventory, machines: Machines) -> Machine:
    if not cluster.group("trino_coordinator"):
        pytest.skip("this inventory has no Trino")
    return machines[cluster.group("trino_coordinator")[0].name]


@pytest.fixture(scope="module")
def trino(coordinator: Machine) -> Trino:
    port, user = (
        coordinator.variable("lakehouse_ports")["trino_http"],
        coordinator.variable("lakehouse_users"),
    )
    return Trino.connect(f"http://{coordinator.host.address}:{port}", user["trino"])


@pytest.fixture
def iceberg_schema(trino: Trino) -> Iterator[str]:
    """A database of Iceberg of its own, gone at the end."""
    name = f"kit_iceberg_{secrets.token_hex(4)}"
    trino.sql(f"CREATE SCHEMA iceberg.{name}")
    yield name
    trino.sql(f"DROP SCHEMA IF EXISTS iceberg.{name} CASCADE")


@pytest.fixture
def schema(trino: Trino, coordinator: Machine) -> Iterator[str]:
    """A database of its own below the folder of tables, gone at the end."""
    name = f"kit_trino_{secrets.token_hex(4)}"
    nameservice, root = (coordinator.variable(f"lakehouse_{key}") for key in ("nameservice", "root"))
    location = f"hdfs://{nameservice}{root}/hive/tables/{name}"
    trino.sql(f"create schema hive.{name} with (location = '{location}')")
    yield name
    for (table,) in trino.sql(f"show tables from iceberg.{name}"):
        trino.sql(f"drop table iceberg.{name}.{table}")
    trino.sql(f"drop schema hive.{name}")


@pytest.fixture
def hdfs(cluster: Inventory) -> WebHdfs:
    """The NameNode, as HDFS's superuser."""
    return Files.of(placement.read(cluster)).hdfs


@pytest.fixture
def root(cluster: Inventory) -> str:
    """The folder of HDFS above all tables."""
    return str(cluster.hosts[0].variables["lakehouse_root"])
