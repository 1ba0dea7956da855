"""What real machines do to a cluster: a strict umask, a stray signal, an address that comes late."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakehouse.model.inventory import Inventory
from plugins.module_utils.lakehouse import probes
from suites.testbed.waiting import wait_for
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

LOGIN = "/etc/login.defs"
SECONDS_TO_RETURN = 90
# More at once than the metastore has connections in any of its pools.
ASKED_AT_ONCE = 40
# In the file of Debian, whose last line wins and which no run looks at.
DEAF = "listen_addresses = '127.0.0.1'"
WRITABLE = "PGOPTIONS='-c default_transaction_read_only=off'"
SERVER_LOG = "/var/log/postgresql/postgresql-*-main.log"


def daemon_of(cluster: Inventory, machines: Machines, group: str) -> Machine:
    return machines[cluster.group(group)[0].name]


@pytest.fixture
def database_host(cluster: Inventory, machines: Machines) -> Machine:
    return daemon_of(cluster, machines, "postgresql")


@pytest.fixture
def strict(cluster: Inventory, machines: Machines) -> Iterator[Machine]:
    """A machine whose logins have the umask that hardening guides ask for."""
    machine = daemon_of(cluster, machines, "clients")
    machine.run("cp -p %s %s.kit && sed -i 's/^UMASK.*//' %s && echo 'UMASK 027' >> %s", *[LOGIN] * 4)
    try:
        yield machine
    finally:
        machine.run("mv %s.kit %s", LOGIN, LOGIN)


def test_a_strict_umask_closes_no_folder(strict: Machine, ansible: Ansible) -> None:
    with strict.scratch("kit-umask") as folder:
        strict.run("chmod 0755 %s", folder)
        # Another folder of sockets: a connection that is open keeps the umask of its login.
        fresh = ["-e", f"ansible_control_path_dir=/tmp/kit-{secrets.token_hex(4)}"]
        umask = ansible.module(strict.name, "ansible.builtin.shell", {"cmd": "umask"}, fresh)
        assert "0027" in umask.output, umask
        data = {"files": [{"dest": f"{folder}/a/b/c", "directory": True}]}
        release = {"component": "trino_cli", "root": f"{folder}/cli"}
        for name, arguments in (("lakehouse_config_files", data), ("lakehouse_release", release)):
            outcome = ansible.module(strict.name, name, arguments, fresh)
            assert outcome.code == 0, outcome
        closed = strict.run(
            "cd / && runuser -u nobody -- find %s -type d ! -executable -o -type f ! -readable", folder
        )
        assert closed == ""
        assert strict.run("cd / && runuser -u nobody -- find %s -type f | head -1", folder) != ""


@pytest.mark.drill
def test_a_daemon_that_a_stray_signal_ends_comes_back(cluster: Inventory, machines: Machines) -> None:
    machine, unit = daemon_of(cluster, machines, "spark_history"), "spark-history"
    port = machine.variable("lakehouse_ports")["spark_history"]
    probe = {"url": f"http://{machine.host.address}:{port}/api/v1/version", "path": "spark"}

    def main_pid() -> str:
        return machine.run("systemctl show --property=MainPID --value %s", unit)

    before = main_pid()
    machine.run("kill -TERM %s", before)
    wait_for("another process", lambda: main_pid() not in ("0", before), seconds=SECONDS_TO_RETURN)
    wait_for("its answer", lambda: probes.http(probe) is None, seconds=SECONDS_TO_RETURN)

    machine.run("systemctl stop %s", unit)
    stopped = machine.run("systemctl show --property=ActiveState,SubState --value %s", unit).split()
    machine.run("systemctl start %s", unit)
    assert stopped == ["inactive", "dead"]
    wait_for("its answer", lambda: probes.http(probe) is None, seconds=SECONDS_TO_RETURN)


@pytest.mark.drill
def test_a_deaf_server_is_noticed_and_mended(database_host: Machine, ansible: Ansible) -> None:
    """It started before its address was there."""
    port = database_host.variable("lakehouse_ports")["postgresql"]
    config = database_host.run("ls /etc/postgresql/*/main/postgresql.conf")
    listening = f"ss -Hltn sport = :{port} | awk '{{print $4}}' | sort"
    before = database_host.run(listening)
    database_host.run("cp -p %s %s.kit && echo %s >> %s", config, config, DEAF, config)
    try:
        database_host.run("systemctl restart 'postgresql@*'")
    finally:
        database_host.run("mv %s.kit %s", config, config)
    assert database_host.run(listening) == f"127.0.0.1:{port}"

    outcome = ansible.playbook("site", "--tags", "postgresql")
    assert (outcome.code, outcome.changed) == (0, 1), outcome
    assert database_host.run(listening) == before


@pytest.mark.drill
def test_a_restart_of_postgresql_leaves_no_dead_connection_in_the_metastore(
    cluster: Inventory, machines: Machines, database_host: Machine
) -> None:
    metastore = daemon_of(cluster, machines, "metastore")
    where = {"host": metastore.host.address, "port": metastore.variable("lakehouse_ports")["metastore"]}
    # The first uses the pools of objects, the second those of transactions and locks.
    asked = [where | {"call": call} for call in ["get_all_databases", "get_open_txns"] * ASKED_AT_ONCE]
    with ThreadPoolExecutor(len(asked)) as pool:
        assert [answer for answer in pool.map(probes.thrift, asked) if answer] == []
        database_host.run("systemctl restart 'postgresql@*'")
        assert [answer for answer in pool.map(probes.thrift, asked) if answer] == []


def test_the_log_of_the_server_does_not_tell_a_password(database_host: Machine, ansible: Ansible) -> None:
    """Not when every statement is logged, nor when one fails."""
    name = f"kit_{secrets.token_hex(4)}"
    word = f"hush-{secrets.token_hex(12)}"
    port = database_host.variable("lakehouse_ports")["postgresql"]

    def psql(sql: str) -> str:
        return database_host.run(f"cd / && {WRITABLE} runuser -u postgres -- psql -XAtqp %s -c %s", port, sql)

    def log() -> str:
        return database_host.run(f"cat {SERVER_LOG}")

    login = {"name": name, "user": name, "owner": f"{name}_owner", "password": word}
    arguments = {"port": port, "databases": [login]}
    psql("alter system set log_statement = 'all'")
    psql("select pg_reload_conf()")
    try:
        # No client may log in as that role: pg_hba.conf names the kit's own alone.
        made = ansible.module(database_host.name, "lakehouse_postgresql_database", arguments)
        assert f"role {name} cannot log in to database {name}" in made.text, made
        psql("alter database postgres set default_transaction_read_only = on")
        failed = ansible.module(database_host.name, "lakehouse_postgresql_database", arguments)
        assert "cannot execute ALTER ROLE in a read-only transaction" in failed.text, failed
    finally:
        psql("alter database postgres reset default_transaction_read_only")
        psql("alter system reset log_statement")
        psql("select pg_reload_conf()")
        psql(f"drop database if exists {name}")
        psql(f"drop role if exists {name}_owner, {name}")
    assert f'statement: alter role "{name}" login password' in log()
    assert f'STATEMENT:  alter role "{name}" login password' in log()
    assert word not in log()
    assert word not in made.output + failed.output
