"""Every fault of a machine is found on a made-up file system, and a sound or running node has none."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.lakehouse import preflight_machine as machine
from ansible.module_utils.lakehouse import preflight_names as names
from ansible.module_utils.lakehouse import preflight_ports as ports
from ansible.module_utils.lakehouse import preflight_storage as storage

from lakehouse.validation import memory

REPOSITORY = Path(__file__).resolve().parents[2]
ADDRESSES = {"n1": "10.0.0.11", "n2": "10.0.0.12"}
GIB = 1024**3

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that puts a file into the made-up file system."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return put


def facts(findings: list[dict[str, str]]) -> list[str]:
    """Return what was seen, of each finding."""
    return [found["fact"] for found in findings]


class TestMachine:
    """Kind and size."""

    def test_supported(self, tmp_path: Path, write: Write) -> None:
        write("etc/os-release", 'NAME="Debian GNU/Linux"\nVERSION_ID="13"\nID=debian\n')
        write("proc/1/comm", "systemd\n")
        assert machine.check_kind(tmp_path, ["debian-13"], [os.uname().machine]) == []

    def test_another_system_without_systemd_on_another_processor(self, tmp_path: Path, write: Write) -> None:
        write("usr/lib/os-release", "ID=fedora\nVERSION_ID=43\n")
        write("proc/1/comm", "runit\n")
        found = machine.check_kind(tmp_path, ["debian-13"], ["pdp11"])
        assert facts(found) == ["runs fedora-43", os.uname().machine, "process 1 is runit"]

    @pytest.mark.parametrize(
        ("group", "limit"),
        [
            ("0::/machine/init.scope", "sys/fs/cgroup/machine/memory.max"),
            ("4:cpu,memory:/machine/init.scope", "sys/fs/cgroup/memory/machine/memory.limit_in_bytes"),
        ],
    )
    def test_the_limit_of_a_control_group_counts(
        self, tmp_path: Path, write: Write, group: str, limit: str
    ) -> None:
        write("proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\n")
        write("proc/1/cgroup", f"2:freezer:/x\n{group}\n")
        assert machine.memory_mb(tmp_path) == 8192
        write(limit, f"{2 * GIB}\n")
        assert machine.memory_mb(tmp_path) == 2048
        assert facts(machine.check_memory(tmp_path, 4096)) == ["2048 MiB of memory"]
        assert machine.check_memory(tmp_path, 2048) == []

    def test_no_limit(self, tmp_path: Path, write: Write) -> None:
        write("proc/meminfo", "MemTotal:       8388608 kB\n")
        write("proc/1/cgroup", "0::/init.scope\n")
        write("sys/fs/cgroup/init.scope/memory.max", "max\n")
        assert machine.memory_mb(tmp_path) == 8192

    def test_a_full_disk_is_reported_once(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        (fact,) = facts(machine.check_disk(tmp_path, ["/data/nn", "/data/dn/deep"], 10**12))
        assert fact.endswith("MiB are free on the file system of /data/nn")
        assert machine.check_disk(tmp_path, ["/data/nn"], 0) == []


class TestSizes:
    """What the inventory sets, on a machine whose memory is known."""

    def test_a_service_names_what_sizes_it(self) -> None:
        services = [{"memory": ["b_mb", "a_mb"]}, {"memory": ["b_mb"]}, {"ports": ["p"]}]
        assert memory.variables(services) == ["node_memory_mb", "a_mb", "b_mb"]

    @pytest.mark.parametrize(
        ("size", "memory_mb", "count"), [(8192, 8192, 0), (8193, 8192, 1), (999_999, 8192, 1)]
    )
    def test_a_heap_is_at_most_the_memory(self, size: int, memory_mb: int, count: int) -> None:
        assert len(memory.sizes("n1", {"trino_heap_mb": size}, memory_mb)) == count

    def test_a_machine_is_called_by_what_it_was_sold_with(self) -> None:
        assert memory.sizes("n1", {"node_memory_mb": 8192}, 7500) == []
        (found,) = memory.sizes("n1", {"node_memory_mb": 16384}, 7500)
        assert str(found) == (
            "FAIL node.sizes n1: node_memory_mb is 16384 on a machine with 7500 MiB (expected at most 8333): "
            "lower it, or leave it out: then it follows from the memory"
        )

    def test_a_machine_whose_memory_the_inventory_does_not_tell(self, tmp_path: Path) -> None:
        """This one plays all hosts of the reference inventory: it is only looked at."""
        inventory = tmp_path / "copy"
        shutil.copytree(REPOSITORY / "inventory/three-node", inventory)
        (inventory / "group_vars/all/mine.yml").write_text(
            "{vault_metastore_password: a-word-of-the-tests, vault_trino_shared_secret: a-word-of-the-tests,"
            " ansible_connection: local,"
            " ansible_become: false, trino_heap_mb: 99999999, hive_metastore_heap_mb: 88888888,"
            ' spark_worker_memory_mb: "{{ node_memory_mb | int // 2 }}"}'
        )
        program = Path(sys.executable).with_name("ansible-playbook")
        done = subprocess.run(
            [program, "-i", inventory, "playbooks/preflight.yml"],
            cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        said = re.findall(r"FAIL node.sizes (\S+): (\w+) is (\d+) on a machine with \d+ MiB", done.stdout)
        assert sorted(said) == [
            ("cpu-node1", "hive_metastore_heap_mb", "88888888"),
            *[(host, "trino_heap_mb", "99999999") for host in ("cpu-node1", "cpu-node2", "worker-node3")],
        ], done.stdout


class TestNames:
    """The hosts file, and what names resolve to."""

    def test_lines_that_the_role_rewrites_are_fine(self) -> None:
        text = (
            "127.0.0.1 localhost\n127.0.1.1 n1.example.com n1\n10.0.0.11 n1.example.com n1 # me\nfd00::2 n2\n"
            "# BEGIN lakehouse nodes\n10.9.9.9 n2\n# END lakehouse nodes\n"
        )
        assert names.check_hosts_file(text, ADDRESSES) == []

    @pytest.mark.parametrize("address", ["127.0.0.1", "127.0.1.2", "::1", "10.9.9.9"])
    def test_another_address_for_a_name(self, address: str) -> None:
        (found,) = names.check_hosts_file(f"# mine\n{address} box n1\n", ADDRESSES)
        assert found["fact"] == f"/etc/hosts line 2 gives n1 the address {address}"
        assert found["expected"] == "10.0.0.11"

    def test_another_name_for_an_address(self) -> None:
        (found,) = names.check_hosts_file("10.0.0.12 oldname\n", ADDRESSES)
        assert found["fact"] == "/etc/hosts line 1 calls 10.0.0.12 oldname"

    def test_resolution_both_ways(self) -> None:
        def reverse(address: str) -> list[str]:
            return {"10.0.0.11": ["n1.example.com"], "10.0.0.12": ["gateway", "n2"]}[address]

        assert names.check_resolution("", ADDRESSES, lambda name: [ADDRESSES[name]], reverse) == []

    def test_the_installers_line_is_a_fault_when_nobody_will_remove_it(self) -> None:
        text = "127.0.0.1 localhost\n127.0.1.1 n1\n10.0.0.12 n2\n"
        found = names.check_resolution(
            text,
            ADDRESSES,
            lambda name: {"n1": ["127.0.1.1"], "n2": ["10.0.0.12"]}[name],
            lambda address: {"10.0.0.11": [], "10.0.0.12": ["other"]}[address],
        )
        assert facts(found) == [
            "n1 resolves to 127.0.1.1",
            "10.0.0.11 resolves back to nothing",
            "10.0.0.12 resolves back to other",
        ]
        assert "/etc/hosts line 2" in found[0]["action"]
        assert "/etc/hosts line 3" in found[2]["action"]

    def test_two_addresses_for_a_name(self) -> None:
        found = names.check_resolution(
            "", {"n1": "10.0.0.11"}, lambda _: ["10.0.0.11", "127.0.0.1"], lambda _: ["n1"]
        )
        assert facts(found) == ["n1 resolves to 10.0.0.11, 127.0.0.1"]

    def test_a_name_that_nobody_knows(self) -> None:
        assert (names.forward("n1.invalid"), names.backward("198.51.100.7")) == ([], [])

    def test_the_own_address(self) -> None:
        assert names.check_own_address("127.0.0.1") == []
        assert facts(names.check_own_address("198.51.100.7")) == [
            "no interface of this machine has 198.51.100.7"
        ]


class TestPorts:
    """A made-up /proc with one listening socket, inode 4711, of user 1001, on port 9870."""

    services = [{"unit": "hdfs-namenode.service", "ports": ["namenode_rpc", "namenode_http"]}]  # noqa: RUF012
    table = {"namenode_rpc": 9000, "namenode_http": 9870}  # noqa: RUF012

    @pytest.fixture(params=["tcp", "tcp6"])
    def listening(self, request: pytest.FixtureRequest, write: Write) -> None:
        """Listen on 9870; a connection from port 9000 to elsewhere does not count."""
        own = "00000000" if request.param == "tcp" else "0" * 32
        columns = "00000000:00000000 00:00000000 00000000"
        write(
            f"proc/net/{request.param}",
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n"
            f"   0: {own}:268E {own}:0000 0A {columns}  1001        0 4711 1 0 100 0 0 10 0\n"
            f"   1: {own}:2328 {own}:0050 01 {columns}  1001        0 4712 1 0 100 0 0 10 0\n",
        )

    @pytest.fixture
    def process(self, tmp_path: Path, write: Write) -> Callable[..., None]:
        """Return a function that adds a process of a control group."""

        def add(pid: int, group: str, *, uid: int, inode: int | None) -> None:
            write(f"proc/{pid}/comm", "java\n")
            write(f"proc/{pid}/status", f"Name:\tjava\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
            write(f"proc/{pid}/cgroup", f"12:pids:/\n0::{group}\n")
            if inode is not None:
                (tmp_path / f"proc/{pid}/fd").mkdir()
                (tmp_path / f"proc/{pid}/fd/7").symlink_to(f"socket:[{inode}]")

        return add

    def test_free(self, tmp_path: Path) -> None:
        assert ports.check_ports(tmp_path, self.services, self.table) == []

    @pytest.mark.usefixtures("listening")
    def test_held_by_our_unit(self, tmp_path: Path, process: Callable[..., None]) -> None:
        process(80, "/system.slice/hdfs-namenode.service", uid=1001, inode=4711)
        assert ports.check_ports(tmp_path, self.services, self.table) == []

    @pytest.mark.usefixtures("listening")
    def test_held_by_another_unit(self, tmp_path: Path, process: Callable[..., None]) -> None:
        process(80, "/system.slice/hdfs-namenode.service", uid=1001, inode=4712)
        process(90, "/system.slice/nginx.service", uid=33, inode=4711)
        (found,) = ports.check_ports(tmp_path, self.services, self.table)
        assert found["fact"] == "port 9870 (namenode_http) is held by java, pid 90 of nginx.service"
        assert found["expected"] == "free, or held by hdfs-namenode.service"
        assert found["action"] == "stop it, or change lakehouse_ports.namenode_http"

    @pytest.mark.usefixtures("listening")
    @pytest.mark.parametrize(("uid", "count"), [(1001, 0), (1002, 1)])
    def test_the_user_decides_where_open_files_are_hidden(
        self, tmp_path: Path, process: Callable[..., None], uid: int, count: int
    ) -> None:
        process(80, "/docker/1f/system.slice/hdfs-namenode.service", uid=uid, inode=None)
        found = ports.check_ports(tmp_path, self.services, self.table)
        assert facts(found) == ["port 9870 (namenode_http) is held by a process of user id 1001"][:count]

    @pytest.mark.usefixtures("listening")
    def test_a_unit_may_be_a_pattern(self, tmp_path: Path, process: Callable[..., None]) -> None:
        process(80, "/system.slice/system-postgresql.slice/postgresql@17-main.service", uid=1001, inode=4711)
        service = {"unit": "postgresql@*.service", "ports": ["postgresql"]}
        assert ports.check_ports(tmp_path, [service], {"postgresql": 9870}) == []


class TestStorage:
    """Directories with data of this cluster, of another one, and of none."""

    @staticmethod
    def check(tmp_path: Path, kind: str) -> list[dict[str, str]]:
        service = {"storage": {"kind": kind, "paths": [str(tmp_path / "hdfs")]}}
        found: list[dict[str, str]] = storage.check_storage(tmp_path, [{}, service], "CID-ours")
        return found

    @pytest.mark.parametrize("kind", ["hdfs_name", "hdfs_data"])
    def test_nothing_there_yet(self, tmp_path: Path, kind: str) -> None:
        assert self.check(tmp_path, kind) == []
        (tmp_path / "hdfs").mkdir()
        assert self.check(tmp_path, kind) == []

    def test_ours(self, tmp_path: Path, write: Write) -> None:
        write("hdfs/current/VERSION", "#Sat Nov 21\nclusterID=CID-ours\n")
        assert self.check(tmp_path, "hdfs_data") == []
        write("hdfs/current/fsimage_0000000000000000000", "")
        assert self.check(tmp_path, "hdfs_name") == []

    @pytest.mark.parametrize("kind", ["hdfs_name", "hdfs_data"])
    def test_of_another_cluster(self, tmp_path: Path, write: Write, kind: str) -> None:
        write("hdfs/current/VERSION", "clusterID=CID-theirs\n")
        (found,) = self.check(tmp_path, kind)
        assert (found["check"], found["expected"]) == ("hdfs.cluster_id", "CID-ours")
        assert found["fact"] == f"{tmp_path}/hdfs belongs to cluster CID-theirs"
        assert "not touched" in found["action"]
        assert "lakehouse_cluster_id: CID-theirs" in found["action"]

    def test_an_interrupted_format(self, tmp_path: Path, write: Write) -> None:
        write("hdfs/current/VERSION", "clusterID=CID-ours\n")
        assert [found["check"] for found in self.check(tmp_path, "hdfs_name")] == ["hdfs.format"]

    def test_somebody_elses_files(self, tmp_path: Path, write: Write) -> None:
        write("hdfs/photos/cat.jpg", "")
        assert [found["check"] for found in self.check(tmp_path, "hdfs_data")] == ["hdfs.foreign"]

    @pytest.mark.parametrize(
        ("place", "count"), [("/data/postgresql/17/main", 0), ("/var/lib/postgresql/17/main", 1)]
    )
    def test_postgresql(self, tmp_path: Path, write: Write, place: str, count: int) -> None:
        service = {"storage": {"kind": "postgresql", "paths": ["/data/postgresql"], "cluster": "17/main"}}
        assert storage.check_storage(tmp_path, [service], "") == []
        write("etc/postgresql/17/main/postgresql.conf", f"port = 5432\ndata_directory = '{place}'\t# where\n")
        assert len(storage.check_storage(tmp_path, [service], "")) == count


class TestClock:
    """Only what is certainly wrong counts: the travel times are not an offset."""

    clock_offset: Any = staticmethod(
        runpy.run_path(str(REPOSITORY / "plugins/action/lakehouse_preflight.py"))["clock_offset"]
    )

    @pytest.mark.parametrize(
        ("before", "started", "finished", "after", "offset"),
        [
            (100.0, 100.4, 100.6, 101.0, 0.0),
            (100.0, 99.8, 100.0, 101.0, -0.2),
            (100.0, 105.4, 105.6, 101.0, 4.6),
            (100.0, 95.4, 95.6, 101.0, -4.6),
        ],
    )
    def test_offset(
        self, before: float, started: float, finished: float, after: float, offset: float
    ) -> None:
        assert self.clock_offset(before, started, finished, after) == pytest.approx(offset)
