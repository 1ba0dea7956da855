"""Every fault that an inventory alone gives away is found, once, and said in a line one can act on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakehouse import run
from lakehouse.artifacts import manifest
from lakehouse.model import defaults, services, specs
from lakehouse.model.inventory import Host, Inventory
from lakehouse.model.services import Group
from lakehouse.validation import (
    Finding,
    Level,
    Undefined,
    cluster,
    collapse,
    network,
    of_level,
    topology,
    validate,
    variables,
)

REPOSITORY = Path(__file__).resolve().parents[2]
ONE_EACH = {"namenode", "postgresql", "metastore", "spark_master"}
EVERYWHERE = {"datanodes", "spark_workers", "clients"}

SPEC: dict[str, Any] = {
    "argument_specs": {
        "main": {
            "options": {
                "hdfs_replication": {"type": "int"},
                "lakehouse_nameservice": {"type": "str", "required": True},
                "lakehouse_versions": {"type": "dict"},
                "lakehouse_ports": {
                    "type": "dict",
                    "options": {"metastore": {"type": "int", "required": True}},
                },
                "lakehouse_database": {
                    "type": "dict",
                    "options": {"password": {"type": "str", "choices": ["good"], "no_log": True}},
                },
                "node_compression": {"type": "str", "choices": ["zstd", "lz4"]},
                "hdfs_layout_paths": {
                    "type": "list",
                    "elements": "dict",
                    "options": {"path": {"type": "path", "required": True}},
                },
            }
        }
    }
}


def a_host(
    name: str = "n1", address: str = "10.0.0.11", groups: set[str] | None = None, **settings: Any
) -> Host:
    """Build a host with the variables that the spec requires."""
    own = {"ansible_host": address, "lakehouse_nameservice": "lake", **settings}
    return Host(name, address, frozenset(groups or set()), own)


def a_cluster(**settings: Any) -> Inventory:
    """Build three sound hosts that share the given variables."""
    return Inventory(
        Path("inventory"),
        tuple(
            a_host(
                f"n{number}",
                f"10.0.0.1{number}",
                EVERYWHERE | (ONE_EACH if number == 1 else set()),
                **settings,
            )
            for number in (1, 2, 3)
        ),
    )


def lines(findings: list[Finding]) -> str:
    """Join what a person would see."""
    return "\n".join(map(str, findings))


@pytest.fixture(scope="module")
def bill() -> manifest.Manifest:
    """Load the repository's own bill of materials."""
    return manifest.load(REPOSITORY / "versions.yml", locked=False)


def test_a_sound_inventory_has_no_findings(bill: manifest.Manifest) -> None:
    cluster = a_cluster(hdfs_replication="3", lakehouse_ports={"metastore": 9083}, node_compression="zstd")
    assert validate(cluster, [SPEC], bill) == []


def test_a_fault_of_all_hosts_is_said_once(bill: manifest.Manifest) -> None:
    found = validate(a_cluster(hdfs_replicaton=3), [SPEC], bill)
    assert lines(found) == (
        "FAIL vars.unknown all: no role knows the variable hdfs_replicaton: did you mean hdfs_replication?"
    )


def test_findings_of_some_hosts_name_them() -> None:
    found = [Finding("a.b", host, "fact", "act") for host in ("n1", "n2", "n1")]
    assert lines(collapse(found, ["n1", "n2", "n3"])) == "FAIL a.b n1,n2: fact: act"


def test_what_is_only_a_warning_says_so() -> None:
    found = [Finding("a.b", host, "fact", "act", level=level) for level in Level for host in ("n1", "n2")]
    assert lines(collapse(found, ["n1", "n2"])) == "FAIL a.b all: fact: act\nWARN a.b all: fact: act"
    assert lines(of_level(found, Level.WARNING)) == "WARN a.b n1: fact: act\nWARN a.b n2: fact: act"


def test_a_key_that_hadoop_would_ignore_is_a_warning(bill: manifest.Manifest) -> None:
    spec = {"argument_specs": {"main": {"options": {"hdfs_site": {"type": "dict"}}}}}
    [found] = validate(a_cluster(hdfs_site={"dfs.replicaton": 3}), [SPEC, spec], bill)
    assert str(found).startswith("WARN hadoop.keys all: ")


def test_all_faults_are_found_together(bill: manifest.Manifest) -> None:
    cluster = a_cluster(hdfs_replication=4, lakehouse_ports={"metastore": "x"}, unheard_of=1)
    assert {found.check for found in validate(cluster, [SPEC], bill)} == {
        "hdfs.replication",
        "vars.type",
        "vars.unknown",
    }


class TestVariables:
    """Against the roles' argument specs."""

    known = variables.options([SPEC])

    def test_ansible_and_vault_names_are_free(self) -> None:
        assert variables.unknown(a_host(ansible_user="root", vault_x="y"), self.known) == []

    def test_required(self) -> None:
        host = replace(a_host(), variables={})
        assert "lakehouse_nameservice is not set (expected str)" in lines(variables.missing(host, self.known))

    @pytest.mark.parametrize(
        ("name", "value", "least"),
        [
            ("hive_metastore_heap_mb", -5, 1),
            ("hive_metastore_heap_mb", 0, 1),
            ("node_cores", 0, 1),
            ("postgresql_max_connections", 0, 1),
            ("flink_taskmanager_slots", 0, 1),
            ("flink_parallelism", 0, 1),
            ("hdfs_namenode_handlers", 0, 1),
            ("node_memory_mb", 0, 1),
            ("hdfs_trash_minutes", -1, 0),
            ("node_max_clock_offset_seconds", -0.5, 0),
        ],
    )
    def test_a_size_that_nothing_fits_into(self, name: str, value: float, least: int) -> None:
        known = variables.options(specs.every())
        expected = f"FAIL vars.size n1: {name} is {value} (expected at least {least})"
        assert expected in lines(variables.sizes(replace(a_host(), variables={name: value}), known))

    @pytest.mark.parametrize(
        "name", ["hdfs_trash_minutes", "hdfs_datanode_reserved_bytes", "node_min_disk_mb"]
    )
    def test_a_number_that_may_be_zero(self, name: str) -> None:
        assert variables.sizes(replace(a_host(), variables={name: 0}), variables.options(specs.every())) == []

    def test_a_secret_that_the_vault_lacks(self) -> None:
        found = variables.undefined(a_host(lakehouse_database=Undefined("vault_password")), self.known)
        assert "lakehouse_database needs vault_password, which is not set: set vault_password in" in lines(
            found
        )

    @pytest.mark.parametrize("name", ["ansible_facts", "hdfs_replication"])
    def test_facts_and_role_defaults_come_later(self, name: str) -> None:
        assert variables.undefined(a_host(node_compression=Undefined(name)), self.known) == []

    @pytest.mark.parametrize(
        ("name", "value", "line", "right"),
        [
            ("hdfs_replication", "three", "hdfs_replication is 'three' (expected int)", None),
            ("node_compression", "gzip", "node_compression is 'gzip' (expected one of zstd, lz4)", None),
            ("lakehouse_ports", 9083, "lakehouse_ports is 9083 (expected dict)", None),
            ("lakehouse_ports", {"metastore": "x"}, "lakehouse_ports.metastore is 'x' (expected int)", {}),
            (
                "lakehouse_ports",
                {"metastor": 1, "metastore": "9083"},
                "lakehouse_ports.metastor: did you mean metastore?",
                {"metastore": 9083},
            ),
            ("lakehouse_ports", {}, "lakehouse_ports.metastore is not set (expected int)", {}),
            (
                "hdfs_layout_paths",
                [{"paht": "/x"}, {"path": "/y"}],
                "hdfs_layout_paths[0].path is not set (expected path)",
                [None, {"path": "/y"}],
            ),
            (
                "hdfs_layout_paths",
                {"path": "/x"},
                "hdfs_layout_paths is a dict (expected list of dict)",
                None,
            ),
        ],
    )
    def test_wrong_types_leave_what_is_right(self, name: str, value: Any, line: str, right: Any) -> None:
        host, found = variables.check_types(a_host(**{name: value}), self.known)
        assert line in lines(found)
        assert host.variables.get(name) == right

    def test_values_become_what_their_type_says(self) -> None:
        host, found = variables.check_types(a_host(hdfs_replication="2"), self.known)
        assert (host.variables["hdfs_replication"], found) == (2, [])

    def test_a_secret_is_never_shown(self) -> None:
        _, found = variables.check_types(a_host(lakehouse_database={"password": "hunter2"}), self.known)
        assert "lakehouse_database.password" in lines(found)
        assert "hunter2" not in lines(found)


class TestNetwork:
    """Names, addresses, ports."""

    def test_a_public_address_needs_a_word_about_the_firewall(self) -> None:
        assert network.public_address(a_host(address="10.0.0.11")) == []
        (found,) = network.public_address(a_host(address="8.8.8.8"))
        assert "firewall keeps strangers out: lakehouse_public_network_is_firewalled: true" in str(found)
        trusted = a_host(address="8.8.8.8", lakehouse_public_network_is_firewalled=True)
        assert network.public_address(trusted) == []

    @pytest.mark.parametrize("name", ["n1", "cpu-node1", "n1.example.com", "N1"])
    def test_good_host_names(self, name: str) -> None:
        assert network.host_name(a_host(name)) == []

    def test_an_underscore_in_a_host_name(self) -> None:
        assert 'FAIL net.names cpu_node1: the name contains "_" (expected' in lines(
            network.host_name(a_host("cpu_node1"))
        )

    @pytest.mark.parametrize("name", ["-n1", "n1-", "n 1", "n1..x"])
    def test_other_bad_host_names(self, name: str) -> None:
        assert "not a host name" in lines(network.host_name(a_host(name)))

    @pytest.mark.parametrize("address", ["", "n1", "10.0.0.256", "10.0.0", "127.0.0.1", "0.0.0.0", "fd00::1"])  # noqa: S104
    def test_bad_addresses(self, address: str) -> None:
        assert [found.check for found in network.host_address(a_host(address=address))] == ["net.address"]

    def test_two_hosts_with_one_address(self) -> None:
        pair = Inventory(Path(), (a_host("n1"), a_host("n2"), a_host("n3", "10.0.0.13")))
        assert "FAIL net.address n1,n2: all have the address 10.0.0.11" in lines(
            network.shared_addresses(pair)
        )

    def test_a_port_twice(self) -> None:
        found = network.ports(a_host(lakehouse_ports={"spark_master_http": 8080, "trino_http": 8080}))
        assert "lakehouse_ports.trino_http is 8080, and so is lakehouse_ports.spark_master_http" in lines(
            found
        )

    @pytest.mark.parametrize("port", [0, 80, 65536, "x", None])
    def test_a_port_out_of_range(self, port: object) -> None:
        assert "(expected 1024 to 65535)" in lines(network.ports(a_host(lakehouse_ports={"metastore": port})))


class TestTopology:
    """Groups and copies."""

    def test_a_sound_cluster(self) -> None:
        assert topology.group_sizes(a_cluster()) == []

    def test_an_empty_group_with_a_misspelt_one_beside_it(self) -> None:
        cluster = Inventory(Path(), (a_host(groups=ONE_EACH | {"datanode", "spark_workers", "clients"}),))
        assert "group datanodes is empty (expected at least one host): did you mean datanode?" in lines(
            topology.group_sizes(cluster)
        )

    @pytest.mark.parametrize(
        ("group", "expected"),
        [
            ("namenode", "exactly one host"),
            ("trino_coordinator", "at most one host"),
            ("flink_jobmanager", "at most one host"),
        ],
    )
    def test_two_of_what_there_is_one_of(self, group: str, expected: str) -> None:
        everything = ONE_EACH | EVERYWHERE | {group}
        cluster = Inventory(Path(), (a_host("n1", groups=everything), a_host("n2", groups={group})))
        fact = f"FAIL groups.size n1,n2: group {group} has 2 hosts (expected {expected})"
        assert lines(topology.group_sizes(cluster)) == f"{fact}: leave one of them in it"

    @pytest.mark.parametrize(
        ("count", "voters", "found"),
        [
            (services.QUORUM, 0, []),
            (services.QUORUM, 3, []),
            (services.QUORUM, 5, []),
            (services.QUORUM, 1, ["group quorate has 1 voter"]),
            (services.QUORUM, 2, ["group quorate has 2 voters"]),
            (services.QUORUM, 4, ["group quorate has 4 voters"]),
            (services.PAIR, 0, []),
            (services.PAIR, 2, []),
            (services.PAIR, 1, ["group quorate has 1 host"]),
            (services.PAIR, 3, ["group quorate has 3 hosts"]),
        ],
    )
    def test_a_quorum_is_an_odd_number_of_hosts_and_a_pair_two(
        self, monkeypatch: pytest.MonkeyPatch, count: str, voters: int, found: list[str]
    ) -> None:
        voting = Group("quorate", count, services.FULL, "compute", "Voter")
        known = services.load()
        monkeypatch.setattr(
            services, "load", lambda: replace(known, groups={**known.groups, "quorate": voting})
        )
        cluster = a_cluster()
        hosts = tuple(a_host(f"v{number}", groups={"quorate"}) for number in range(voters))
        found_now = topology.group_sizes(replace(cluster, hosts=(*cluster.hosts, *hosts)))
        assert [finding.fact for finding in found_now] == found

    @pytest.mark.parametrize(("copies", "count"), [(0, 1), (1, 0), (3, 0), (4, 1)])
    def test_replication(self, copies: int, count: int) -> None:
        cluster = a_cluster(hdfs_replication=copies)
        assert len(topology.replication(cluster.hosts[0], cluster)) == count


class TestSettings:
    """Identifiers, paths, secrets, versions."""

    @pytest.mark.parametrize(
        ("values", "path"),
        [
            ({"lakehouse_nameservice": "my_lake"}, "lakehouse_nameservice"),
            ({"lakehouse_cluster": "my_lake"}, "lakehouse_cluster"),
            ({"lakehouse_cluster_id": "CID 1"}, "lakehouse_cluster_id"),
            ({"lakehouse_group": "Data Platform"}, "lakehouse_group"),
            ({"lakehouse_users": {"hdfs": "1hdfs"}}, "lakehouse_users.hdfs"),
            ({"lakehouse_database": {"name": "meta-store"}}, "lakehouse_database.name"),
            ({"lakehouse_database": {"user": "Hive"}}, "lakehouse_database.user"),
            ({"lakehouse_readers": ["ada", "Ada Lovelace"]}, "lakehouse_readers[1]"),
        ],
    )
    def test_names_that_break(self, values: dict[str, Any], path: str) -> None:
        assert f"FAIL names.syntax n1: {path} is " in lines(cluster.names(a_host(**values)))

    def test_names_that_work(self) -> None:
        good: dict[str, Any] = {
            "lakehouse_cluster_id": "CID-1_a.b",
            "lakehouse_database": {"name": "meta_1", "user": "hive"},
        }
        assert cluster.names(a_host(lakehouse_group="data-platform", **good)) == []

    def test_one_user_for_two_engines(self) -> None:
        found = cluster.accounts(
            a_host(lakehouse_users={"hdfs": "hadoop", "hive": "hive", "spark": "hadoop"})
        )
        assert [one.check for one in found] == ["names.users"]

    @pytest.mark.parametrize(
        ("reader", "taken"),
        [("spark", "lakehouse_users.spark"), ("lakers", "lakehouse_group"), ("ada", None)],
    )
    def test_a_reader_who_is_somebody_else(self, reader: str, taken: str | None) -> None:
        host = a_host(
            lakehouse_users={"spark": "spark"}, lakehouse_group="lakers", lakehouse_readers=[reader]
        )
        said = f"FAIL names.users n1: lakehouse_readers names {reader}, which is {taken} "
        assert [line.startswith(said) for line in map(str, cluster.accounts(host))] == [True] * bool(taken)

    @pytest.mark.parametrize(
        ("values", "check"),
        [
            ({"lakehouse_data_dir": "data"}, "paths.syntax"),
            ({"lakehouse_data_dir": "/data/../etc"}, "paths.syntax"),
            ({"lakehouse_data_dir": "/"}, "paths.syntax"),
            ({"lakehouse_data_dir": "/tmp/lake"}, "paths.volatile"),  # noqa: S108
            ({"lakehouse_datanode_dirs": ["/data/1", "/var/tmp/2"]}, "paths.volatile"),  # noqa: S108
            ({"lakehouse_backup_dir": "/tmp/backup"}, "paths.volatile"),  # noqa: S108
            ({"lakehouse_catalog_dir": "/var/run/catalog"}, "paths.volatile"),
            ({"lakehouse_install_dir": "/dev/shm/opt"}, "paths.volatile"),  # noqa: S108
            ({"lakehouse_data_dir": "/data", "lakehouse_backup_dir": "/data"}, "paths.shared"),
            (
                {"lakehouse_namenode_dirs": ["/data/1"], "lakehouse_datanode_dirs": ["/data/1"]},
                "paths.shared",
            ),
        ],
    )
    def test_paths(self, values: dict[str, Any], check: str) -> None:
        assert [found.check for found in cluster.paths(a_host(**values))] == [check]

    def test_every_directory_of_the_specs_is_looked_at(self) -> None:
        known = variables.options(specs.every())
        of_nodes = {name for name in known if re.search(r"_dirs?$", name)} - {"lakehouse_render_dir"}
        assert of_nodes == {*cluster.PATHS, *cluster.DATA_PATHS}

    def test_programs_and_data_may_share_a_prefix(self) -> None:
        assert cluster.paths(a_host(lakehouse_install_dir="/opt", lakehouse_data_dir="/opt/data")) == []

    @pytest.mark.parametrize("root", ["lake", "/", "/lake/", "hdfs://lake/x", "/a b"])
    def test_the_root_in_hdfs(self, root: str) -> None:
        assert "lakehouse_root is " in lines(cluster.root(a_host(lakehouse_root=root)))

    @pytest.mark.parametrize(
        ("values", "path"),
        [
            ({"lakehouse_users": {"hdfs": "root", "spark": "spark"}}, "lakehouse_users.hdfs is 'root'"),
            ({"lakehouse_users": {"spark": "postgres"}}, "lakehouse_users.spark is 'postgres'"),
            (
                {"lakehouse_users": {"spark": "lakehouse-backup"}},
                "lakehouse_users.spark is 'lakehouse-backup'",
            ),
            ({"lakehouse_users": {"spark": "systemd-oom"}}, "lakehouse_users.spark is 'systemd-oom'"),
            ({"lakehouse_readers": ["_chrony"]}, "lakehouse_readers[0] is '_chrony'"),
            ({"lakehouse_readers": ["ada", "www-data"]}, "lakehouse_readers[1] is 'www-data'"),
            ({"lakehouse_group": "sudo"}, "lakehouse_group is 'sudo'"),
        ],
    )
    def test_an_account_of_the_system(self, values: dict[str, Any], path: str) -> None:
        (found,) = cluster.accounts(a_host(**values))
        assert str(found).startswith(f"FAIL names.users n1: {path} (expected an account of its own)")

    def test_the_account_that_makes_backups_is_nobody_elses(self) -> None:
        name = defaults.role("lakehouse")["lakehouse_backup_user"]
        assert cluster.accounts(a_host(lakehouse_users={"spark": name})) != []

    def test_the_account_by_which_machines_are_managed(self) -> None:
        host = a_host(lakehouse_users={"spark": "admin"}, lakehouse_group="admin")
        (found,) = cluster.accounts(host, "admin")
        assert str(found).startswith(
            "FAIL names.users n1: lakehouse_users.spark is 'admin', and so is ansible_user"
        )
        assert cluster.accounts(host) == cluster.accounts(host, "root") == []

    @pytest.mark.parametrize(
        ("metastore", "federation", "path"),
        [
            (("metastore", "postgres"), ("other", "reader"), "lakehouse_database.user is 'postgres'"),
            (("template1", "hive"), ("other", "reader"), "lakehouse_database.name is 'template1'"),
            (("all", "hive"), ("other", "reader"), "lakehouse_database.name is 'all'"),
            (("metastore", "hive"), ("other", "pg_monitor"), "lakehouse_federation.user is 'pg_monitor'"),
            (("metastore", "hive"), ("metastore", "reader"), "lakehouse_federation.name is 'metastore'"),
            (("metastore", "hive"), ("other", "hive"), "lakehouse_federation.user is 'hive'"),
        ],
    )
    def test_a_role_or_database_that_is_somebody_elses(
        self, metastore: tuple[str, str], federation: tuple[str, str], path: str
    ) -> None:
        logins = {"lakehouse_database": metastore, "lakehouse_federation": federation}
        named: dict[str, Any] = {key: {"name": name, "user": user} for key, (name, user) in logins.items()}
        (found,) = cluster.databases(a_host(**named))
        assert str(found).startswith(f"FAIL names.database n1: {path} (expected a name of its own)")

    def test_a_reader_is_not_the_owner_of_the_metastores_database(self) -> None:
        federation = {"name": "other", "user": "hive_owner", "schemas": ["public", "pg_catalog"]}
        database = {"name": "metastore", "user": "hive"}
        found = cluster.databases(a_host(lakehouse_database=database, lakehouse_federation=federation))
        assert [one.fact for one in found] == [
            "lakehouse_federation.user is 'hive_owner'",
            "lakehouse_federation.schemas has 'pg_catalog'",
        ]

    @pytest.mark.parametrize("path", ["/data 1", "/data,1", "/data%i", "/data:1", "/da'ta", "/d\nata", "/$x"])
    def test_a_path_that_a_unit_or_a_list_would_tear(self, path: str) -> None:
        for variable in ("lakehouse_install_dir", "lakehouse_data_dir"):
            values: dict[str, Any] = {variable: path}
            (found,) = cluster.paths(a_host(**values))
            assert (found.check, found.expected) == ("paths.syntax", "letters, digits and . _ + @ -")

    def test_an_untested_pair_of_versions(self, bill: manifest.Manifest) -> None:
        host = a_host(lakehouse_versions={"hive": "4.0.1"})
        assert "FAIL versions.pair n1: hive 4.0.1 with " in lines(
            cluster.versions(host, bill.pairs, bill.versions)
        )


Edit = Callable[[dict[str, Any]], object]
SALES = {"connector.name": "hive", "hive.metastore.uri": "thrift://elsewhere:9083"}


def set_(**variables: object) -> Edit:
    """Give all hosts variables, whatever their groups say."""
    return lambda top: [host.update(variables) for host in top["all"]["hosts"].values()]


def catalogs(*properties: dict[str, str]) -> Edit:
    """Give Trino catalogs of one name."""
    return set_(trino_catalogs=[{"name": "sales", "properties": each} for each in properties])


def rename(old: str, new: str) -> Edit:
    """Rename a host in every group."""

    def edit(top: dict[str, Any]) -> None:
        for group in top.values():
            if old in group["hosts"]:
                group["hosts"][new] = group["hosts"].pop(old)

    return edit


def first_address(address: str) -> Edit:
    """Move the first host."""
    return lambda top: next(iter(top["all"]["hosts"].values())).update(ansible_host=address)


def one_address(top: dict[str, Any]) -> None:
    """Give the second host the address of the first."""
    first, second, *_ = top["all"]["hosts"].values()
    second["ansible_host"] = first["ansible_host"]


def no_coordinator(top: dict[str, Any]) -> None:
    """Leave Trino's workers alone."""
    top["trino_coordinator"] = {"hosts": {}}


@pytest.fixture
def run_validation(tmp_path: Path) -> Callable[[Edit], subprocess.CompletedProcess[str]]:
    """Copy the reference inventory, spoil it, and run the first play: no host is ever contacted."""
    inventory = tmp_path / "inventory" / "copy"

    def run(edit: Edit) -> subprocess.CompletedProcess[str]:
        shutil.copytree(REPOSITORY / "inventory" / "three-node", inventory)
        (inventory / "group_vars" / "all" / "vault.yml").write_text(
            "vault_metastore_password: a-word-of-the-tests\n"
            "vault_trino_shared_secret: another-word-of-the-tests\n"
        )
        hosts = inventory / "hosts.yml"
        top = yaml.safe_load(hosts.read_text())
        edit(top)
        hosts.write_text(yaml.safe_dump(top, sort_keys=False))
        program = Path(sys.executable).with_name("ansible-playbook")
        return subprocess.run(
            [program, "-i", inventory, "playbooks/preflight.yml", "--tags", "validate"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_the_reference_inventory_is_sound(
    run_validation: Callable[[Edit], subprocess.CompletedProcess[str]],
) -> None:
    done = run_validation(lambda top: top)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_verb_of_the_kit_gets_the_warnings_of_a_run_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BUILD", tmp_path / "build")
    monkeypatch.setattr(run, "LOGS", tmp_path / "build" / "log")
    mine = tmp_path / "inventory" / "mine"
    shutil.copytree(REPOSITORY / "inventory" / "local", mine)
    (mine / "group_vars/all/mine.yml").write_text("hdfs_site: {dfs.replicaton: 2}\n")
    warnings: list[str] = []
    run.playbook("validate", str(mine), warn=warnings.append)
    assert [line.partition(" has no key")[0] for line in warnings] == ["WARN hadoop.keys all: Hadoop 3.5.0"]


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (
            set_(hdfs_replicaton=3),
            "no role knows the variable hdfs_replicaton: did you mean hdfs_replication?",
        ),
        (set_(hdfs_replication="three"), "FAIL vars.type all: hdfs_replication is 'three' (expected int)"),
        (set_(hdfs_replication="{{ 2 + 2 }}"), "hdfs_replication is 4 with 3 DataNodes (expected 1 to 3)"),
        (one_address, "FAIL net.address cpu-node1,cpu-node2: all have the address 192.168.1.184"),
        (
            first_address("8.8.8.8"),
            "FAIL net.public cpu-node1: ansible_host 8.8.8.8 is a public address (expected a private",
        ),
        (
            set_(lakehouse_database={"name": "m", "user": "hive", "password": "a-word-of-the-tests\n"}),
            "FAIL secrets.characters all: lakehouse_database.password holds a line break",
        ),
        (
            set_(lakehouse_backup_passphrase="a-word-of-the-tests\n"),  # noqa: S106
            "FAIL secrets.characters all: lakehouse_backup_passphrase holds a line break",
        ),
        (
            set_(trino_shared_secret="x"),  # noqa: S106
            "FAIL secrets.weak all: trino_shared_secret is short",
        ),
        (
            set_(lakehouse_backup_dir="/tmp/backup"),  # noqa: S108
            "FAIL paths.volatile all: lakehouse_backup_dir is '/tmp/backup'",
        ),
        (
            set_(hive_metastore_hive_site={"javax.jdo.option.ConnectionPassword": "a-word-of-the-tests"}),
            "FAIL secrets.exposed all: hive_metastore_hive_site has javax.jdo.option.ConnectionPassword",
        ),
        (
            set_(spark_defaults={"spark.hadoop.fs.s3a.secret.key": "a-word-of-the-tests"}),
            "FAIL secrets.exposed all: spark_defaults has spark.hadoop.fs.s3a.secret.key in plain text",
        ),
        (
            set_(postgresql_clients=["0.0.0.0/0"]),
            "FAIL postgresql.clients all: postgresql_clients[0] is '0.0.0.0/0' (expected a private network)",
        ),
        (
            set_(postgresql_settings={"hba_file": "/etc/open.conf"}),
            "FAIL postgresql.settings all: postgresql_settings has hba_file",
        ),
        (
            set_(lakehouse_users={"spark": "lakehouse-backup"}),
            "FAIL names.users all: lakehouse_users.spark is 'lakehouse-backup'",
        ),
        (
            set_(
                lakehouse_users={
                    "hdfs": "root",
                    **{name: name for name in ("hive", "spark", "trino", "flink")},
                }
            ),
            "FAIL names.users all: lakehouse_users.hdfs is 'root'",
        ),
        (
            set_(lakehouse_install_dir="/opt disk"),
            "FAIL paths.syntax all: lakehouse_install_dir is '/opt disk'",
        ),
        (rename("worker-node3", "worker_node3"), 'FAIL net.names worker_node3: the name contains "_"'),
        (
            set_(lakehouse_readers=["ada", "spark"]),
            "FAIL names.users all: lakehouse_readers names spark, which is lakehouse_users.spark",
        ),
        (
            set_(lakehouse_versions={"scala": "2.12"}),
            "FAIL versions.pair all: scala 2.12 with spark",
        ),
        (
            set_(trino_shared_secret="a-word-of-the-tests\n"),  # noqa: S106 (of the tests)
            "FAIL secrets.characters all: trino_shared_secret holds a line break",
        ),
        (catalogs(SALES, SALES), "trino_catalogs[1]: catalog sales is there already"),
        (catalogs({"connector.name": "hive"}), "trino_catalogs[0] (sales) lacks hive.metastore.uri"),
        (no_coordinator, "group trino_workers has hosts, but trino_coordinator has none"),
        (
            set_(trino_heap_mb=8192, node_memory_mb=6144),
            "FAIL sizes.host all: trino_heap_mb is 8192, and node_memory_mb is 6144 (expected at most 6144)",
        ),
        (
            set_(lakehouse_versions={"trino_java": "21"}),
            "FAIL versions.pair all: trino_java 21 with trino 476",
        ),
    ],
)
def test_a_spoilt_inventory_is_refused(
    edit: Edit, line: str, run_validation: Callable[[Edit], subprocess.CompletedProcess[str]]
) -> None:
    done = run_validation(edit)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert said.count(line) == 1
    assert said.count("findings: 1\n") == 1
    assert "a-word-of-the-tests" not in said
