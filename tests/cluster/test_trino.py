"""Trino on the machines: the same catalogs everywhere, limits that hold, and stops that hurt no query."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import requests

from lakehouse.model.inventory import Inventory
from suites.matrix.cross.access import trino as access
from suites.testbed.engines import EngineError
from suites.testbed.engines.trino import Trino
from suites.testbed.waiting import wait_for
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible

pytestmark = pytest.mark.cluster

# Long enough to be met at work by a stop that follows, on two cores or on many.
LONG = "select count(*) from tpch.sf1.lineitem a cross join (select * from tpch.tiny.nation limit 5) b"
ACTIVE = "select count(*) from system.runtime.nodes where state = 'active'"
OUTSIDER = "nobody"
TRINO = {"trino_coordinator", "trino_workers"}
OWN_CATALOGS = {"iceberg", "delta", "hive", "tpch", "postgresql"}
# Where the inventory names a served commit.
OF_THE_PAST = {"iceberg_past", "delta_past", "hive_past"}


@pytest.fixture(scope="module")
def url(coordinator: Machine) -> str:
    return f"http://{coordinator.host.address}:{coordinator.variable('lakehouse_ports')['trino_http']}"


@pytest.fixture(scope="module")
def reader(coordinator: Machine) -> str:
    if not coordinator.variable("lakehouse_readers"):
        pytest.skip("this inventory names no lakehouse_readers")
    return str(coordinator.variable("lakehouse_readers")[0])


@pytest.fixture(scope="module")
def workers(cluster: Inventory) -> set[str]:
    return {host.name for host in cluster.group("trino_workers")}


@pytest.mark.group("trino_workers")
def test_it_runs_with_a_java_of_its_own(node: Machine) -> None:
    pid = node.run("systemctl show --property=MainPID --value trino")
    user = node.variable("lakehouse_users")["trino"]
    assert "/java-25-" in node.run("runuser -u %s -- readlink /proc/%s/exe", user, pid)


def test_every_worker_is_an_active_node(trino: Trino, workers: set[str]) -> None:
    nodes = trino.sql("select node_id from system.runtime.nodes where state = 'active'")
    assert {name for (name,) in nodes} >= workers


def test_the_catalogs_are_the_same_on_all_nodes(cluster: Inventory, machines: Machines) -> None:
    sums = set()
    for host in cluster.group("trino_workers"):
        folder = f"{machines[host.name].variable('lakehouse_config_dir')}/trino/catalog"
        sums.add(machines[host.name].run("cd %s && sha256sum *", folder))
    assert len(sums) == 1, sums


def test_the_catalogs_are_those_of_the_role_and_of_the_inventory(trino: Trino, coordinator: Machine) -> None:
    past = OF_THE_PAST if coordinator.variable("lakehouse_past_catalog") else set()
    desired = OWN_CATALOGS | past | {each["name"] for each in coordinator.variable("trino_catalogs") or []}
    assert {name for (name,) in trino.sql("show catalogs")} - {"system"} == desired


def test_a_table_is_found_under_every_catalog_of_the_lakehouse(trino: Trino, schema: str) -> None:
    trino.sql(f"create table iceberg.{schema}.i as select 1 a")
    trino.sql(f"create table hive.{schema}.h as select 2 a")
    for catalog in ("iceberg", "hive", "delta"):
        assert trino.sql(f"select a from {catalog}.{schema}.i") == [(1,)], catalog
    for catalog in ("iceberg", "hive"):
        assert trino.sql(f"select a from {catalog}.{schema}.h") == [(2,)], catalog


def test_who_may_call_a_procedure_is_declared_for_each_that_the_release_has(coordinator: Machine) -> None:
    """The table in docs/security.md has all of them: a new one is tried before it is trusted."""
    plugins = f"{coordinator.variable('lakehouse_install_dir')}/trino/current/plugin"
    program = access.listing(plugins)
    there = access.procedures(coordinator.run(" ".join(["%s"] * len(program)), *program).splitlines())
    tried = {(catalog, name) for catalog in access.CATALOGS.values() for name in access.ACTS[catalog]}
    assert len(there) > len(access.CATALOGS)
    assert there == {(catalog, name) for catalog, name in tried if name.startswith(("`CALL", "`EXECUTE"))}


def test_the_command_line_is_on_every_node(node: Machine, coordinator: Machine) -> None:
    assert coordinator.name  # without a coordinator there is nothing to ask
    answer = node.run(
        "trino --user %s --execute 'select 6 * 7' 2>/dev/null", node.variable("lakehouse_users")["trino"]
    )
    assert answer == '"42"'


@pytest.mark.usefixtures("coordinator")
def test_nobody_passes_for_a_node_by_a_name_that_all_can_read(cluster: Inventory, machines: Machines) -> None:
    """Without a secret of its own, Trino signs with the name of the environment, which all can read."""
    for machine in (machines[host.name] for host in cluster.hosts if host.groups & TRINO):
        url = f"http://{machine.host.address}:{machine.variable('lakehouse_ports')['trino_http']}"
        environment = requests.get(f"{url}/v1/info", timeout=10).json()["environment"]
        secret = machine.run(
            "sed -n s/^TRINO_SHARED_SECRET=//p %s/trino/trino.env", machine.variable("lakehouse_config_dir")
        )
        password = machine.variable("lakehouse_database")["password"]
        derived = f"trino {machine.variable('lakehouse_cluster')} {password}"
        answers = {
            word: requests.get(
                f"{url}/v1/task", headers={"X-Trino-Internal-Bearer": token}, timeout=10
            ).status_code
            for word, token in {
                "the environment's name": node_token(environment),
                "a hash of the database's password": node_token(hashlib.sha512(derived.encode()).hexdigest()),
                "the secret": node_token(secret.strip('"')),
            }.items()
        }
        # The last proves that the others were sent rightly.
        assert list(answers.values()) == [401, 401, 200], (machine.name, answers)


def node_token(secret: str) -> str:
    """What a node of Trino shows to another: a token signed with the secret that they share."""
    expires = int((datetime.now(UTC) + timedelta(minutes=5)).timestamp())
    parts = [{"alg": "HS256"}, {"sub": "a node", "exp": expires}]
    signed = b".".join(base64url(json.dumps(part).encode()) for part in parts)
    key = hashlib.sha256(secret.encode()).digest()
    return b".".join((signed, base64url(hmac.digest(key, signed, "sha256")))).decode()


def base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@pytest.mark.group("trino_workers")
def test_the_secrets_are_for_root_alone(node: Machine) -> None:
    file = node.shell.file(f"{node.variable('lakehouse_config_dir')}/trino/trino.env")
    assert (file.user, oct(file.mode)) == ("root", "0o600")
    password = str(node.variable("lakehouse_federation")["password"])
    catalogs = node.run("cat %s/trino/catalog/*", node.variable("lakehouse_config_dir"))
    process = node.run("cat /proc/$(systemctl show --property=MainPID --value trino)/cmdline | tr '\\0' ' '")
    # Compared in here: a failure must not print it.
    assert not [where for where, text in (("catalogs", catalogs), ("argv", process)) if password in text]


@pytest.fixture
def elsewhere(cluster: Inventory, machines: Machines) -> Iterator[str]:
    """A table that PostgreSQL's superuser made in the database for federation."""
    machine = machines[cluster.group("postgresql")[0].name]
    table = f"kit_{secrets.token_hex(4)}"
    database, port = (
        machine.variable("lakehouse_federation")["name"],
        machine.variable("lakehouse_ports")["postgresql"],
    )
    psql = "cd / && runuser -u postgres -- psql -q -p %s -d %s -c %s"
    machine.run(psql, port, database, f"create table {table} as select 'BRAZIL' as nation, 7 as rank")
    yield table
    machine.run(psql, port, database, f"drop table {table}")


def test_postgresql_is_joined_and_never_written(trino: Trino, elsewhere: str) -> None:
    query = f"""select rank, regionkey from postgresql.public.{elsewhere} e
                join tpch.tiny.nation n on n.name = e.nation"""
    assert trino.sql(query) == [(7, 1)]
    for statement in (
        f"insert into postgresql.public.{elsewhere} values ('PERU', 8)",
        f"create table postgresql.public.{elsewhere}_2 (a integer)",
        f"drop table postgresql.public.{elsewhere}",
    ):
        with pytest.raises(EngineError, match=r"permission denied|must be owner"):
            trino.sql(statement)


QUERY_FUNCTION = "select * from table(postgresql.system.query(query => 'select 1 as a'))"


@pytest.mark.parametrize("user", [OUTSIDER, "root"])
def test_a_user_in_no_group_gets_no_catalog(url: str, trino: Trino, elsewhere: str, user: str) -> None:
    statements = [
        "select 1",
        "show catalogs",
        *(f"show schemas from {catalog}" for (catalog,) in trino.sql("show catalogs")),
        "select query from system.runtime.queries",
        "select node_id from system.runtime.nodes",
        "select * from system.metadata.catalogs",
        f"select * from postgresql.public.{elsewhere}",
        QUERY_FUNCTION,
        "call postgresql.system.flush_metadata_cache()",
        "call system.runtime.kill_query('20260101_000000_00000_abcde', 'no')",
    ]
    session = Trino.connect(url, user)
    for statement in statements:
        with pytest.raises(EngineError, match="Access Denied"):
            session.sql(statement)


@pytest.mark.usefixtures("coordinator")
def test_a_user_in_no_group_reads_no_system_information(url: str, reader: str) -> None:
    for user in (OUTSIDER, reader):
        for path in ("/metrics", "/v1/node", "/v1/jmx/mbean"):
            answer = requests.get(f"{url}{path}", headers={"X-Trino-User": user}, timeout=10)
            assert answer.status_code == 403, (user, path, answer.text)


@pytest.mark.usefixtures("coordinator")
def test_a_client_without_a_name_is_rejected(url: str) -> None:
    answers = (
        requests.post(f"{url}/v1/statement", data="select 1", timeout=10),
        requests.get(f"{url}/v1/query", timeout=10),
        requests.get(f"{url}/v1/node", timeout=10),
    )
    assert [answer.status_code for answer in answers] == [401, 401, 401]


def test_a_reader_reads_the_federation_and_sends_no_sql_to_it(
    url: str, trino: Trino, elsewhere: str, reader: str
) -> None:
    session = Trino.connect(url, reader)
    assert session.sql(f"select nation from postgresql.public.{elsewhere}") == [("BRAZIL",)]
    assert trino.sql(QUERY_FUNCTION) == [(1,)]
    for statement in (
        QUERY_FUNCTION,
        f"insert into postgresql.public.{elsewhere} values ('PERU', 8)",
        f"create table postgresql.public.{elsewhere}_2 (a integer)",
        f"drop table postgresql.public.{elsewhere}",
        f"comment on table postgresql.public.{elsewhere} is 'a word'",
        "call postgresql.system.execute('set search_path to public')",
        "call postgresql.system.flush_metadata_cache()",
    ):
        with pytest.raises(EngineError, match="Access Denied"):
            session.sql(statement)


@pytest.mark.longdrill
def test_a_new_member_is_known_after_the_next_converge_without_a_restart(
    cluster: Inventory, machines: Machines, ansible: Ansible, url: str, coordinator: Machine
) -> None:
    """HDFS looks groups up on the NameNode's host, by the group's members and by the account's own group."""
    machine = machines[cluster.group("namenode")[0].name]
    group = machine.variable("lakehouse_group")
    own, added = (f"kit{secrets.token_hex(4)}" for _ in range(2))
    running = coordinator.run("systemctl show --property=MainPID --value trino")
    try:
        machine.run("useradd --no-create-home --gid %s %s", group, own)
        machine.run("useradd --no-create-home --groups %s %s", group, added)
        assert ansible.playbook("site", "--tags", "trino").code == 0
        wait_for("both in the file", lambda: refusal(url, own) == refusal(url, added) == "", seconds=30)
    finally:
        machine.run("userdel %s; userdel %s", own, added)
        back = ansible.playbook("site", "--tags", "trino")
    assert back.code == 0, back
    wait_for("neither in the file", lambda: refusal(url, own) and refusal(url, added), seconds=30)
    assert coordinator.run("systemctl show --property=MainPID --value trino") == running


def processes(cluster: Inventory, machines: Machines) -> Mapping[str, str]:
    return {
        host.name: machines[host.name].run("systemctl show --property=MainPID --value trino")
        for host in cluster.group("trino_workers")
    }


@pytest.mark.drill
@pytest.mark.usefixtures("coordinator")
def test_a_key_that_trino_does_not_know_is_refused_and_the_service_stays(
    cluster: Inventory, machines: Machines, ansible: Ansible
) -> None:
    before = processes(cluster, machines)
    outcome = ansible.playbook("site", "--tags", "trino", trino_config={"query.max-memroy": "1GB"})
    assert outcome.code != 0
    assert "no key query.max-memroy (trino_config): did you mean query.max-memory?" in outcome.text, outcome
    assert processes(cluster, machines) == before


@pytest.mark.longdrill
@pytest.mark.usefixtures("coordinator")
def test_a_stopped_worker_ends_what_it_has(
    cluster: Inventory, machines: Machines, trino: Trino, url: str, workers: set[str]
) -> None:
    coordinators = {host.name for host in cluster.group("trino_coordinator")}
    leaving = machines[sorted(workers - coordinators)[0]]
    nodes = trino.value(ACTIVE)
    with ThreadPoolExecutor() as pool:
        long = pool.submit(Trino.connect(url, trino.user).value, LONG)
        working = "select count(*) from system.runtime.tasks where state = 'RUNNING' and node_id = '{}'"
        wait_for("work on the worker", lambda: trino.value(working.format(leaving.name)), seconds=30)
        try:
            leaving.run("systemctl stop trino")
            log = leaving.run("journalctl -u trino -o cat --no-pager --since=-10min | grep -i drain")
            assert long.result(timeout=300) == 5 * 6_001_215
        finally:
            leaving.run("systemctl start trino")
    assert "draining for at most" in log, log
    wait_for("the worker's return", lambda: trino.value(ACTIVE) == nodes, seconds=120)


@pytest.mark.longdrill
@pytest.mark.usefixtures("coordinator")
def test_a_worker_that_somebody_shuts_down_comes_back(
    cluster: Inventory, machines: Machines, trino: Trino, workers: set[str]
) -> None:
    """Whoever calls himself Trino's user may ask for it, and Trino then ends in good order."""
    coordinators = {host.name for host in cluster.group("trino_coordinator")}
    leaving = machines[sorted(workers - coordinators)[0]]
    before, nodes = processes(cluster, machines), trino.value(ACTIVE)
    url = f"http://{leaving.host.address}:{leaving.variable('lakehouse_ports')['trino_http']}/v1/info/state"
    asked = requests.put(url, json="SHUTTING_DOWN", headers={"X-Trino-User": trino.user}, timeout=10)
    assert asked.ok, asked.text

    def is_back() -> bool:
        pid = processes(cluster, machines)[leaving.name]
        return pid not in {"0", before[leaving.name]} and trino.value(ACTIVE) == nodes

    wait_for(f"the return of Trino on {leaving.name}", is_back, seconds=180, pause=1, ignoring=(EngineError,))


@pytest.mark.longdrill
@pytest.mark.usefixtures("coordinator")
def test_the_limit_of_running_queries_holds_and_can_be_taken_back(
    cluster: Inventory, machines: Machines, ansible: Ansible, trino: Trino, url: str
) -> None:
    before = processes(cluster, machines)
    limits = {"trino_max_running_queries": 1, "trino_max_queued_queries": 0}
    assert ansible.playbook("site", "--tags", "trino", **limits).code == 0
    try:
        changed = {name for name, pid in processes(cluster, machines).items() if pid != before[name]}
        assert changed <= {host.name for host in cluster.group("trino_coordinator")}
        with ThreadPoolExecutor() as pool:
            running: list[Future[object]] = []

            def refused() -> str:
                """Say how a second query is refused; if it came first, the long one starts again."""
                if not running or running[-1].done():
                    running.append(pool.submit(Trino.connect(url, trino.user).value, LONG))
                    return ""
                return refusal(url, trino.user)

            assert "Too many queued queries" in wait_for("a refused query", refused, seconds=60, pause=0.5)
            running[-1].result(timeout=300)
    finally:
        back = ansible.playbook("site", "--tags", "trino")
    assert back.code == 0, back
    again = ansible.playbook("site", "--tags", "trino")
    assert (again.code, again.changed) == (0, 0), again


def refusal(url: str, user: str) -> str:
    """Why a query is refused now; empty where it is not."""
    try:
        Trino.connect(url, user).sql("select 1")
    except EngineError as error:
        return error.message
    return ""
