"""What is done once is never done again, or over another owner's data: every guard is provoked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from lakehouse.model.inventory import Inventory
from suites.testbed.namenode import NameNode, NameNodeError
from suites.testbed.waiting import wait_for
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible, Outcome

pytestmark = pytest.mark.cluster

SCRATCH = "kit-guards"
DATABASE = "kit_guards"
STRANGER = "CID-of-somebody-else"
FOREIGN_TABLES = "create table orders (id int); insert into orders values (1);"
# Tables, and no row with the version.
HALF_A_SCHEMA = 'create table "DBS" (id int); create table "VERSION" ("SCHEMA_VERSION" text);'
A_SCHEMA = """create table \\"VERSION\\" as select '3.1.0' as \\"SCHEMA_VERSION\\";"""
OTHER_SCHEMA = """create table "VERSION" ("SCHEMA_VERSION" text); insert into "VERSION" values ('2.3.0');"""


@pytest.fixture(scope="module")
def namenode_host(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group("namenode")[0].name]


@pytest.fixture(scope="module")
def database_host(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group("postgresql")[0].name]


@pytest.fixture
def database(database_host: Machine) -> Iterator[str]:
    """An empty database beside the metastore's, which has every right to refuse to be touched."""
    psql(database_host, "postgres", f"drop database if exists {DATABASE}")
    psql(database_host, "postgres", f"create database {DATABASE}")
    yield DATABASE
    psql(database_host, "postgres", f"drop database {DATABASE} with (force)")


def psql(machine: Machine, database: str, sql: str) -> str:
    port = machine.variable("lakehouse_ports")["postgresql"]
    return machine.run("cd / && runuser -u postgres -- psql -XAtq -p %s -d %s -c %s", port, database, sql)


def tables(machine: Machine, database: str) -> str:
    """Every table with its rows, as the server's own dump shows them."""
    port = machine.variable("lakehouse_ports")["postgresql"]
    dump = machine.run("cd / && runuser -u postgres -- pg_dump -p %s -d %s --inserts", port, database)
    # Recent releases protect a dump with a random key.
    return "\n".join(
        line for line in dump.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))
    )


def running(machine: Machine, unit: str) -> str:
    return machine.run("systemctl show --property=ActiveState,MainPID %s", unit)


def test_nobody_takes_the_folder_of_all_tables_away(cluster: Inventory, namenode: NameNode) -> None:
    folder = f"{cluster.hosts[0].variables['lakehouse_root']}/hive"
    with pytest.raises(NameNodeError, match="protected"):
        namenode.webhdfs("PUT", "RENAME", folder, destination=f"{folder}.away")


def test_a_datanode_of_another_cluster_is_refused(
    cluster: Inventory, machines: Machines, ansible: Ansible
) -> None:
    machine = machines[cluster.group("datanodes")[-1].name]
    with machine.scratch(SCRATCH) as folder:
        machine.run("mkdir %s/current && echo clusterID=%s > %s/current/VERSION", folder, STRANGER, folder)
        machine.run("echo block > %s/current/blk_1", folder)
        before = machine.listing(folder), running(machine, "hdfs-datanode")
        outcome = ansible.playbook("site", "--tags", "hdfs", lakehouse_datanode_dirs=[folder])
        assert outcome.code != 0, outcome
        ours = machine.variable("lakehouse_cluster_id")
        line = f"{folder} belongs to cluster {STRANGER} (expected {ours}); nothing was touched;"
        assert line in outcome.text, outcome
        assert outcome.changed == 0, outcome
        assert (machine.listing(folder), running(machine, "hdfs-datanode")) == before


def test_a_new_place_is_refused_while_the_old_one_holds_data(
    namenode_host: Machine, database_host: Machine, cluster: Inventory, ansible: Ansible
) -> None:
    """Directories and the database at once: every new place is empty, so nothing there objects."""
    database = namenode_host.variable("lakehouse_database")
    desired = {
        "lakehouse_namenode_dirs": ["/kit-elsewhere/namenode"],
        "lakehouse_datanode_dirs": ["/kit-elsewhere/datanode"],
        "lakehouse_database": {**database, "name": "kit_elsewhere"},
    }
    config = f"{namenode_host.variable('lakehouse_config_dir')}/hadoop/namenode"
    rules = "/etc/postgresql"
    before = namenode_host.listing(config), database_host.listing(rules)
    outcome = ansible.playbook("preflight", **desired)
    assert (outcome.code, outcome.changed) == (2, 0), outcome
    name_dirs = namenode_host.variable("lakehouse_namenode_dirs")
    old = [(namenode_host.name, name_dirs)]
    old += [(host.name, host.variables["lakehouse_datanode_dirs"]) for host in cluster.group("datanodes")]
    for name, folders in old:
        for folder in folders:
            line = f"FAIL hdfs.moved {name}: {folder} holds the data of hdfs-"
            assert line in outcome.text, outcome
    catalog = f"{database_host.name}/{database['name']}"
    assert f"FAIL metastore.moved {cluster.group('metastore')[0].name}: {catalog} holds" in outcome.text
    # A run of a part of the playbook skips preflight.
    for part, place in (("hdfs", name_dirs[0]), ("postgresql", catalog)):
        outcome = ansible.playbook("site", "--tags", part, **desired)
        assert outcome.code != 0, outcome
        assert f"nothing was touched; next: move the data from {place} to " in outcome.text, outcome
        assert f"or give it up for ever with lakehouse_forsaken: ['{place}']" in outcome.text, outcome
    assert (namenode_host.listing(config), database_host.listing(rules)) == before


def test_a_format_that_would_orphan_blocks_is_refused(
    namenode_host: Machine, cluster: Inventory, ansible: Ansible
) -> None:
    config = f"{namenode_host.variable('lakehouse_config_dir')}/hadoop"
    with namenode_host.scratch(SCRATCH) as folder:
        before = namenode_host.listing(config), running(namenode_host, "hdfs-namenode")
        outcome = ansible.playbook(
            "site",
            "--tags",
            "hdfs",
            lakehouse_namenode_dirs=[folder],
            lakehouse_forsaken=namenode_host.variable("lakehouse_namenode_dirs"),
        )
        assert outcome.code != 0, outcome
        holders = ", ".join(host.name for host in cluster.group("datanodes"))
        assert f"({holders}): formatting would orphan them; nothing was touched;" in outcome.text, outcome
        assert outcome.changed == 0, outcome
        assert namenode_host.run("ls -A %s", folder) == ""
        assert (namenode_host.listing(config), running(namenode_host, "hdfs-namenode")) == before


def test_a_namenode_is_never_formatted_twice(namenode_host: Machine, ansible: Ansible) -> None:
    folders = namenode_host.variable("lakehouse_namenode_dirs")
    versions = [namenode_host.run("cat %s/current/VERSION", folder) for folder in folders]
    arguments = {"name_dirs": folders, "cluster_id": "CID-other", "command": ["false"]}
    outcome = ansible.module(namenode_host.name, "lakehouse_hdfs_format", arguments)
    assert outcome.code != 0, outcome
    assert f"not empty, so not formatted: {', '.join(folders)}; next: ls -lR {folders[0]}" in outcome.text
    assert [namenode_host.run("cat %s/current/VERSION", folder) for folder in folders] == versions


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            FOREIGN_TABLES,
            "has 1 table but no single schema version (none): an interrupted initialisation, or",
        ),
        (
            HALF_A_SCHEMA,
            "has 2 tables but no single schema version (none): an interrupted initialisation, or",
        ),
        (OTHER_SCHEMA, "has schema version 2.3.0 (expected 3.1.0); nothing was touched; next: install"),
    ],
    ids=["foreign tables", "interrupted", "another version"],
)
def test_a_database_in_use_gets_no_schema(
    content: str, line: str, database_host: Machine, database: str, ansible: Ansible
) -> None:
    psql(database_host, database, content)
    before = tables(database_host, database)
    outcome = initialise(ansible, database_host, database, "false")
    assert outcome.code != 0, outcome
    assert f"database {database} {line}" in outcome.text, outcome
    assert tables(database_host, database) == before


def test_an_interrupted_schema_is_made_anew(database_host: Machine, database: str, ansible: Ansible) -> None:
    """The mark of an initialisation stays when it is killed; the next one takes away what it has made."""
    first = initialise(
        ansible, database_host, database, "sh", "-c", f"psql {of(database_host, database)}; false"
    )
    assert first.code != 0, first
    assert "initialising the schema failed; next: read the log below, rerun" in first.text, first
    assert "lakehouse_making" in tables(database_host, database)
    second = initialise(ansible, database_host, database, "sh", "-c", f"psql {of(database_host, database)}")
    assert "| CHANGED =>" in second.text, second
    assert "lakehouse_making" not in tables(database_host, database)
    third = initialise(ansible, database_host, database, "false")
    assert "| SUCCESS =>" in third.text, third


@contextmanager
def connected(machine: Machine, database: str) -> Iterator[None]:
    """Another client's session."""
    port = machine.variable("lakehouse_ports")["postgresql"]
    machine.run(
        "systemd-run --unit=%s --collect runuser -u postgres -- psql -p %s -d %s -c 'select pg_sleep(600)'",
        SCRATCH, port, database,
    )  # fmt: skip
    try:
        count = f"select count(*) from pg_stat_activity where datname = '{database}'"  # noqa: S608
        wait_for("the session", lambda: psql(machine, "postgres", count) != "0", seconds=30)
        yield
    finally:
        machine.run("systemctl stop %s", SCRATCH)


@pytest.mark.parametrize(
    "use",
    [
        ('create table "TBLS" as select 1', False, "rows in TBLS"),
        ("""create table "DBS" as select 'sales' as "NAME" """, False, "rows in DBS"),
        ("""create table "DBS" as select 'default' as "NAME" """, True, "1 other session"),
    ],
    ids=["a table", "a database", "a session is connected"],
)
def test_the_mark_of_an_interruption_gives_no_catalog_away(
    use: tuple[str, bool, str], database_host: Machine, database: str, ansible: Ansible
) -> None:
    rows, session, said = use
    psql(database_host, database, f"create schema lakehouse_making; {rows}")
    before = tables(database_host, database)
    with connected(database_host, database) if session else nullcontext():
        outcome = initialise(ansible, database_host, database, "false")
    assert outcome.code != 0, outcome
    line = (
        f"(schema lakehouse_making), but is in use ({said}); nothing was touched; next: stop who is connected"
    )
    assert line in outcome.text, outcome
    assert tables(database_host, database) == before


def of(machine: Machine, database: str) -> str:
    """Arguments of psql that stand for the tool which makes the tables."""
    return f'-p {machine.variable("lakehouse_ports")["postgresql"]} -d {database} -c "{A_SCHEMA}"'


def initialise(ansible: Ansible, machine: Machine, database: str, *argv: str) -> Outcome:
    """Run the module as PostgreSQL's own user, with a program instead of the metastore's schematool."""
    arguments = {
        # The socket's folder stands for the host: there PostgreSQL knows its own user without a password.
        "host": "/var/run/postgresql",
        "port": machine.variable("lakehouse_ports")["postgresql"],
        "database": database,
        "user": "postgres",
        "password": "not asked for",
        "version": "3.1.0",
        "credentials_file": "/dev/null",
        "metastore_home": "/nonexistent",
        "argv": argv,
    }
    return ansible.module(
        machine.name, "lakehouse_metastore_schema", arguments, ["--become-user", "postgres"]
    )


def test_xml_that_does_not_parse_is_never_installed(machines: Machines, ansible: Ansible) -> None:
    before = {name: machine.listing(hadoop(machine)) for name, machine in machines.items()}
    # A value may hold any text, except a character that XML cannot express.
    outcome = ansible.playbook("site", "--tags", "hdfs", hdfs_site={"kit.test": "\u0001"})
    assert outcome.code != 0, outcome
    assert "hdfs-site.xml: the rendered file is not well-formed XML" in outcome.text, outcome
    assert outcome.changed == 0, outcome
    assert {name: machine.listing(hadoop(machine)) for name, machine in machines.items()} == before


def hadoop(machine: Machine) -> str:
    return f"{machine.variable('lakehouse_config_dir')}/hadoop"
