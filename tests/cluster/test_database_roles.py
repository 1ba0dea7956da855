"""What an intruder has got into the metastore's database runs with no more rights than the metastore has."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hive_metastore.ttypes import Database

from lakehouse.console import look
from lakehouse.model.inventory import Inventory
from tests import strangers
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, Machines
from tests.cluster.metastore_port import connected, iceberg_table

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

LOG = "cat /var/log/postgresql/postgresql-*-main.log"
# The metastore's own sessions call what a stranger has made, too.
DAEMON = "PostgreSQL JDBC Driver"


@dataclass(frozen=True)
class Metastore:
    """The metastore's database on its host."""

    machine: Machine

    @property
    def role(self) -> str:
        return str(self.machine.variable("lakehouse_database")["user"])

    @property
    def name(self) -> str:
        return str(self.machine.variable("lakehouse_database")["name"])

    def run(self, role: str, sql: str) -> str:
        port = self.machine.variable("lakehouse_ports")["postgresql"]
        psql = "cd / && runuser -u postgres -- psql -XAtq -v ON_ERROR_STOP=1 -p %s -U %s -d %s -c %s"
        return self.machine.run(psql, port, role, self.name, sql)

    def refuses(self, role: str, sql: str) -> str:
        """Run what fails; return why."""
        with pytest.raises(AssertionError) as error:
            self.run(role, sql)
        return str(error.value)


@pytest.fixture(scope="module")
def metastore(cluster: Inventory, machines: Machines) -> Metastore:
    return Metastore(machines[cluster.group("postgresql")[0].name])


@pytest.fixture(scope="module")
def planted(metastore: Metastore, cluster: Inventory) -> Iterator[None]:
    """Functions and an operator of one who got past every guard, and a table to call them for."""
    owner, database = f"{metastore.role}_owner", f"kit_strangers_{secrets.token_hex(4)}"
    host = cluster.group("metastore")[0]
    port, users = host.variables["lakehouse_ports"]["metastore"], host.variables["lakehouse_users"]
    root = f"hdfs://{host.variables['lakehouse_nameservice']}{host.variables['lakehouse_root']}"
    place = f"{root}/hive/tables/{database}"
    with connected(host.address, port, users["spark"]) as client:
        client.create_database(Database(name=database, locationUri=place))
        # Of no engine's metadata, so that a backup finds all of it.
        table = iceberg_table(database, "t", "v1")
        table.parameters, table.sd.location = {"EXTERNAL": "TRUE"}, f"{place}/t"
        table.sd.inputFormat = "org.apache.hadoop.mapred.TextInputFormat"
        table.sd.outputFormat = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
        client.create_table(table)
    try:
        metastore.run(owner, strangers.MAKE)
        yield
    finally:
        metastore.run(owner, strangers.REMOVE)
        with connected(host.address, port, users["spark"]) as client:
            client.drop_database(database, True, True)


def calls(machine: Machine) -> Counter[tuple[str, bool, str]]:
    return Counter(call for call in strangers.callers(machine.run(LOG)) if call[2] != DAEMON)


def test_the_metastores_role_owns_nothing_and_makes_nothing(metastore: Metastore) -> None:
    mine = "(select oid from pg_roles where rolname = current_user)"
    for catalog, column in (
        ("pg_class", "relowner"), ("pg_proc", "proowner"), ("pg_type", "typowner"),
        ("pg_namespace", "nspowner"), ("pg_database", "datdba"),
    ):  # fmt: skip
        owned = f"select count(*) from {catalog} where {column} = {mine}"  # noqa: S608 -- constants
        assert metastore.run(metastore.role, owned).strip() == "0", catalog
    for statement in (
        "create table public.kit_mine ()",
        "create temporary table kit_mine ()",
        "create schema kit_mine",
        "create view public.kit_mine as select 1",
        "create function public.kit_mine() returns int language sql as 'select 1'",
        'drop table "TBLS"',
        'truncate "TBLS"',
        'alter table "TBLS" add column kit_mine int',
    ):
        why = metastore.refuses(metastore.role, statement)
        assert "permission denied" in why or "must be owner" in why, why


def test_nobody_logs_in_to_it_as_the_superuser(metastore: Metastore) -> None:
    assert "pg_hba.conf rejects connection" in metastore.refuses("postgres", "select 1")


def test_the_owner_logs_in_on_the_host_alone(metastore: Metastore) -> None:
    port = metastore.machine.variable("lakehouse_ports")["postgresql"]
    for address in ("127.0.0.1", metastore.machine.host.address):
        psql = "! PGPASSWORD=x psql -h %s -p %s -U %s -d %s -c 'select 1' 2>&1"
        said = metastore.machine.run(psql, address, port, f"{metastore.role}_owner", metastore.name)
        assert "no pg_hba.conf entry" in said


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    "command", ["status", "doctor", "console", "metastore check", "catalog commit", "backup"]
)
def test_no_command_runs_a_strangers_function_as_the_superuser(
    command: str, metastore: Metastore, verb: Verb, store: tuple[str, str]
) -> None:
    before = calls(metastore.machine)
    if command == "console":
        assert look.look(verb.path).tables.known
    else:
        more = store if command == "catalog commit" else ()
        done = verb.run(*command.split(), *more)
        # A warning of what else is on the cluster is no fault of this.
        assert "psql: error" not in done.stdout + done.stderr, done
    made = calls(metastore.machine) - before
    assert made, "no call was made of them: they prove nothing"
    assert {(role, is_super) for role, is_super, _ in made} == {(metastore.role, False)}, made
