"""What a member does in Hive's published client tests with Hive's own metastore, it does with the kit's.

Both metastores run beside the cluster's, with its release and configuration, each with its own database and
warehouse: these tests drop every database that they find.
"""

from __future__ import annotations

import secrets
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible.module_utils.lakehouse import metastore_sql

from lakehouse import artifacts
from lakehouse.artifacts import releases
from lakehouse.model.inventory import Inventory
from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests.cluster import bills, side_metastore
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

# The databases and the warehouses of the two metastores.
OWN, KIT = "own", "kit"
NAME = "kit-client-tests"
PASSED = "passed"
PACKAGE = "org.apache.hadoop.hive.metastore"
# The settings with which Hive's own factory of these tests starts a metastore.
AS_IN_HIVE = {"metastore.limit.partition.request": "100", "metastore.batch.retrieve.max": "2"}
# These tests put databases into the folders of others, which the kit refuses: test_places.py.
OVERLAPPING = {"lakehouse.metastore.overlapping.locations": "true"}
# Hive's stores, and its default where the kit has decided otherwise.
OWN_SETTINGS = dict.fromkeys(
    (
        "metastore.rawstore.impl",
        "metastore.txn.store.impl",
        "hive.metastore.disallow.incompatible.col.type.changes",
    )
)
# All tests against one metastore take one to two minutes.
SECONDS = 600
# The metastores keep the row numbers that they have reserved in SEQUENCE_TABLE.
RESET = """
create schema kit;
do $$ declare name text; begin
  for name in select tablename from pg_tables
  where schemaname = 'public' and tablename <> 'SEQUENCE_TABLE' loop
    execute format('create table kit.%1$I as table public.%1$I', name);
  end loop;
end $$;
create function kit.reset() returns void language plpgsql security definer
set session_replication_role = replica as $$ declare name text; begin
  for name in select tablename from pg_tables where schemaname = 'kit' loop
    execute format('delete from public.%1$I', name);
    execute format('insert into public.%1$I table kit.%1$I', name);
  end loop;
end $$;
grant usage on schema kit to public;
"""


@dataclass(frozen=True)
class Result:
    """How a test ended: `passed`, `failed` or `ignored`, and the reason of a failure."""

    status: str
    reason: str


Results = Mapping[str, Mapping[str, Result]]


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server on the database's host; roles log in from the metastore's host with a password."""

    machine: Machine
    folder: str
    port: int
    password: str

    def run(self, database: str, sql: str) -> str:
        """Run SQL as the superuser."""
        return self.machine.run(
            "cd / && runuser -u postgres -- psql -XAtq -v ON_ERROR_STOP=1 -h %s -p %s -d %s -c %s",
            self.folder, self.port, database, sql,
        )  # fmt: skip

    def url(self, database: str) -> str:
        """Return the address of a database for JDBC."""
        return f"jdbc:postgresql://{self.machine.host.address}:{self.port}/{database}"


@contextmanager
def postgresql(machine: Machine, client: Machine) -> Iterator[Server]:
    """Run a server in the block."""
    unit = f"{NAME}-postgresql"
    with machine.scratch(unit) as folder, machine.transient(unit):
        programs = machine.run("ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1")
        machine.run("chown postgres %s", folder)
        machine.run(
            "cd / && runuser -u postgres -- %s/initdb -D %s/data -E UTF8 --locale=C.UTF-8 --no-sync"
            " --auth-local=peer --auth-host=scram-sha-256",
            programs, folder,
        )  # fmt: skip
        rule = f"host all all {client.host.address}/32 scram-sha-256"
        machine.run("echo %s >> %s/data/pg_hba.conf", rule, folder)
        [port] = side_metastore.free_ports(machine, 1)
        settings = (
            f"listen_addresses={machine.host.address}",
            f"unix_socket_directories={folder}",
            "fsync=off",
        )
        command = [f"{programs}/postgres", "-D", f"{folder}/data", "-p", str(port)]
        command += [word for setting in settings for word in ("-c", setting)]
        side_metastore.run(
            machine, ["systemd-run", "--quiet", "--collect", f"--unit={unit}", "--uid=postgres", *command]
        )
        server = Server(machine, folder, port, secrets.token_hex(16))
        wait_for(
            "PostgreSQL", lambda: server.run("postgres", "select 1"), seconds=60, ignoring=(AssertionError,)
        )
        yield server


def make_databases(server: Server, client: Machine, folder: str) -> dict[str, str]:
    """Make both databases as the kit makes its own; return the role of each metastore: Hive's own has DDL."""
    user = client.variable("lakehouse_database")["user"]
    owner = metastore_sql.owner_of(user)
    for role in (user, owner):
        name = metastore_sql.identifier(role)
        server.run("postgres", f"create role {name} login password '{server.password}'")
    names = metastore_sql.identifier(user), metastore_sql.identifier(owner)
    server.run("postgres", "grant {} to {}".format(*names))
    server.run("postgres", f"create database {OWN} owner {names[1]}")
    client.run("umask 077 && echo %s > %s/pgpass", f"*:*:*:*:{server.password}", folder)
    client.run(
        "cd / && printf %%s %s | PGPASSFILE=%s/pgpass psql -XAtq -v ON_ERROR_STOP=1"
        " -h %s -p %s -U %s -d %s -f %s/hive-schema-3.1.0.postgres.sql -f -",
        metastore_sql.RUNTIME_STATS + metastore_sql.settled(user, owner),
        folder, server.machine.host.address, server.port, owner, OWN,
        f"{client.variable('lakehouse_install_dir')}/hive/current/scripts/metastore/upgrade/postgres",
    )  # fmt: skip
    server.run("postgres", f"create database {KIT} template {OWN}")
    for database in (OWN, KIT):
        server.run("postgres", metastore_sql.owned(database, user, owner))
    return {OWN: owner, KIT: user}


@dataclass(frozen=True)
class Place:
    """Where a metastore keeps its catalog and its files: database, role in it, and folder of HDFS."""

    name: str
    role: str
    path: str
    warehouse: str


@dataclass(frozen=True)
class Suite:
    """Hive's client tests on the metastore's host; `member` runs them."""

    machine: Machine
    folder: str
    member: str
    classes: tuple[str, ...]

    def run(self, port: int, place: Place, server: Server) -> dict[str, Result]:
        """Run all tests against the metastore of this port; return the results by `Class.method`."""
        settings = {
            "uri": f"thrift://{self.machine.host.address}:{port}",
            "warehouse": place.warehouse,
            "url": server.url(place.name),
            "user": place.role,
            "password": server.password,
        }
        folder = f"{self.folder}/{place.name}"
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self.machine.run(
            "install -d -m 700 %s && printf %%s %s > %s/settings && chown -R %s %s",
            folder, text, folder, self.member, folder,
        )  # fmt: skip
        java, *options = side_metastore.command_of(self.machine)
        # The first folder is the configuration of the metastore itself.
        classpath = options[options.index("-cp") + 1].partition(":")[2]
        command = [
            java, "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF",
            *(option for option in options if option.startswith("--add-opens")),
            f"-Dkit.settings={folder}/settings",
            # The folder of the catalogs that tests make, which is in HDFS here.
            f"-Djava.io.tmpdir={place.path}",
            "-cp", f"{self.folder}/jars/runner.jar:{self.folder}/jars/*:{classpath}",
            f"{PACKAGE}.client.RunClientTests", f"{folder}/results", *self.classes,
        ]  # fmt: skip
        unit = [f"--unit={NAME}-{place.name}-client", f"--uid={self.member}"]
        unit += [f"--gid={self.machine.variable('lakehouse_group')}", f"--property=RuntimeMaxSec={SECONDS}"]
        side_metastore.run(
            self.machine,
            [
                "systemd-run",
                "--quiet",
                "--collect",
                "--wait",
                "--pipe",
                "--property=UMask=0002",
                *unit,
                *command,
            ],
        )
        rows = [line.split("\t") for line in self.machine.run("cat %s/results", folder).splitlines()]
        return {f"{kind}.{method}": Result(status, reason) for kind, method, status, reason in rows}


@pytest.fixture(scope="module")
def suite(
    cluster: Inventory, machines: Machines, ansible: Ansible, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Suite]:
    host = machines[cluster.group("metastore")[0].name]
    jars = tmp_path_factory.mktemp("jars")
    classes = unpack(jars)
    with host.scratch(NAME) as folder:
        arguments = {"src": f"{jars}/", "dest": f"{folder}/jars/", "mode": "0644"}
        copied = ansible.module(host.name, "copy", arguments)
        assert copied.code == 0, copied
        yield Suite(host, folder, host.variable("lakehouse_users")["spark"], classes)


def unpack(folder: Path) -> tuple[str, ...]:
    """Build the runner, put the jars into a folder, and return the names of the test classes."""
    component, cache = NAME.replace("-", "_"), artifacts.cache_dir()
    bill = bills.hive_client_tests(component)
    artifacts.fetch(bill, [component], cache, lambda _: None)
    with tarfile.open(releases.ensure(bill, component, cache)) as release:
        members = [one for one in release if one.isfile() and one.name.startswith(f"{component}/")]
        for member in members:
            member.name = Path(member.name).name
            release.extract(member, folder, filter="data")
    [jar] = folder.glob("*-tests.jar")
    prefix = f"{PACKAGE.replace('.', '/')}/client/Test"
    with zipfile.ZipFile(jar) as published:
        names = [name for name in published.namelist() if name.startswith(prefix) and "$" not in name]
    return tuple(sorted(name.removesuffix(".class").replace("/", ".") for name in names))


@pytest.fixture(scope="module")
def results(suite: Suite, cluster: Inventory, machines: Machines, namenode: NameNode) -> Iterator[Results]:
    """The results by database and test."""
    host = suite.machine
    root = f"/tmp/{NAME}-{secrets.token_hex(4)}"  # noqa: S108 -- in HDFS
    found = {}
    with ExitStack() as stack:
        server = stack.enter_context(postgresql(machines[cluster.group("postgresql")[0].name], host))
        stack.callback(remove_files, namenode, suite.member, root)
        for name, role in make_databases(server, host, suite.folder).items():
            path = f"{root}/{name}"
            place = Place(name, role, path, f"hdfs://{host.variable('lakehouse_nameservice')}{path}")
            namenode.webhdfs("PUT", "MKDIRS", place.path, suite.member, permission="775")
            settings = {
                **AS_IN_HIVE,
                **(OWN_SETTINGS if name == OWN else OVERLAPPING),
                "hive.metastore.warehouse.dir": place.warehouse,
                "javax.jdo.option.ConnectionURL": server.url(name),
                "javax.jdo.option.ConnectionUserName": role,
            }
            main = f"{PACKAGE}.HiveMetaStore" if name == OWN else None
            unit, password = f"{NAME}-{name}", server.password
            with side_metastore.running(host, unit, settings, main=main, password=password) as port:
                server.run(name, RESET)
                found[name] = suite.run(port, place, server)
        yield found


def remove_files(namenode: NameNode, member: str, root: str) -> None:
    """Remove the warehouses, and what tests moved from there to the member's trash."""
    namenode.remove(root)
    trash = f"/user/{member}/.Trash"
    if member in namenode.names("/user") and ".Trash" in namenode.names(f"/user/{member}"):
        for checkpoint in namenode.names(trash):
            namenode.remove(f"{trash}/{checkpoint}{root}")


def test_a_member_does_with_the_kits_metastore_what_hives_own_lets_him(
    suite: Suite, results: Results, record_property: Callable[[str, object], None]
) -> None:
    own, kit = results[OWN], results[KIT]
    passed = [name for name, result in own.items() if result.status == PASSED]
    worse = {name: kit.get(name) for name in passed if kit.get(name) != own[name]}
    record_property(
        "note",
        f"{len(passed) - len(worse)} of {len(own)} tests of {len(suite.classes)} classes pass with both",
    )
    assert worse == {}
    assert own.keys() == kit.keys()
    # Otherwise the comparison would prove nothing. Some tests want a local file system, or Derby.
    assert {name.partition(".")[0] for name in passed} == {name.rpartition(".")[2] for name in suite.classes}
    assert len(passed) > 0.95 * len(own), {name: own[name] for name in own if name not in passed}
