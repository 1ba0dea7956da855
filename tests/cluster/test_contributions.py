"""Contributions on a cluster: daemons serve, restart and go, and the kit's unit tests pass with them."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lakehouse import run
from lakehouse.model.inventory import Inventory
from plugins.module_utils.lakehouse import probes
from tests import contributions
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible
from tests.render.test_jvm_options import NO_JVM
from tests.trees import Tree

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

INVENTORY = "tests/inventory"
VOTERS = ("alpha1", "beta2", "gamma3")
# Prints where each service of an inventory has metrics of its JVM, as the catalogue of the copy says.
METRICS = """
import json, sys
from lakehouse.model import endpoints, inventory
from lakehouse.model import placement

cluster = placement.read(inventory.load(sys.argv[1]))
print(json.dumps({
    f"{service.name} on {host.name}": [
        f"{endpoints.on(listener.name, host).uri}{listener.metrics}"
        for listener in service.listeners
        if listener.name == f"{service.name}_jmx"
    ]
    for host in cluster.hosts
    for service in cluster.services[host.name]
}))
"""
# From the agent in every JVM, and from HDFS.
OF_EVERY_JVM, OF_HDFS = "jvm_memory_used_bytes", "Hadoop_"
HDFS = {"namenode", "datanode"}


@dataclass(frozen=True)
class Contributed:
    """A copy of the kit with a contribution, which manages the cluster of this one."""

    tree: Tree

    def converge(self, tags: str) -> str:
        """Run a part of the site playbook; return what it prints."""
        return self.tree.play("site", "--tags", tags)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a `lakehouse` command on the cluster."""
        return self.tree.call("python", "-m", "lakehouse.cli", *words, "-i", INVENTORY)


def contributed(name: str, folder: Path, cluster: Inventory) -> Contributed:
    """Copy the kit with a contribution; skip for a cluster that is not that of the tests' inventory."""
    if cluster.path.name != Path(INVENTORY).parts[-1] or cluster.path.parent.name != "tests":
        pytest.skip(f"contributions are edits of {INVENTORY}")
    tree = Tree(folder / name)
    tree.contribute(contributions.FOLDER / name)
    for shared in (".state", "build"):
        (tree.root / shared).symlink_to(run.ROOT / shared)
    return Contributed(tree)


def changed(output: str) -> int:
    """Return how many tasks of a playbook changed something."""
    return sum(int(number) for number in re.findall(r"\bchanged=(\d+)", output))


@pytest.fixture(params=sorted(contributions.MOST_FILES))
def pages_written(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    """The kit with a contribution, and with the pages and golden files that `make docs golden` writes."""
    tree = Tree(tmp_path / request.param)
    tree.contribute(contributions.FOLDER / request.param)
    tree.with_history()
    for module in ("lakehouse.dev.roledocs", "lakehouse.doctor.failures", "tests.render.rendering"):
        written = tree.call("python", "-m", module)
        assert written.returncode == 0, written.stdout + written.stderr
    return tree


def test_every_unit_test_passes_with_it(pages_written: Tree) -> None:
    done = pages_written.call(
        "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "2", "--dist", "loadfile",
        "-m", "not network and not cluster and not drill and not longdrill", "tests/render", "tests/unit",
        # A contribution is made once.
        "--ignore", "tests/render/test_contributions.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


class TestQuorum:
    """ZooKeeper: three voters from the release of Hadoop."""

    @pytest.fixture(scope="class")
    def quorum(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        cluster: Inventory,
        machines: Machines,
        ansible: Ansible,
    ) -> Iterator[Contributed]:
        """The cluster with ZooKeeper; without it at the end, in the hosts' manifests as well."""
        own = contributed("quorum", tmp_path_factory.mktemp("contributions"), cluster)
        try:
            own.converge("zookeeper,node")
            yield own
        finally:
            for machine in machines.values():
                machine.run(
                    "systemctl disable --now zookeeper 2>/dev/null;"
                    " rm -rf /etc/systemd/system/zookeeper.service /srv/data/zookeeper"
                    " /etc/proving/zookeeper;"
                    " systemctl daemon-reload"
                )
            converged = ansible.playbook("site")
            assert converged.code == 0, converged

    def states(self, cluster: Inventory) -> dict[str, str]:
        """Return what each voter says that it is."""
        return {
            host.name: json.loads(probes.fetch(f"http://{host.address}:18180/commands/monitor"))[
                "server_state"
            ]
            for host in cluster.hosts
        }

    def test_three_daemons_have_one_leader(self, quorum: Contributed, cluster: Inventory) -> None:
        assert sorted(self.states(cluster).values()) == ["follower", "follower", "leader"]
        assert changed(quorum.converge("zookeeper")) == 0

    def test_the_leading_one_is_restarted_last(self, quorum: Contributed, cluster: Inventory) -> None:
        [leader] = [host for host, state in self.states(cluster).items() if state == "leader"]
        done = quorum.command("restart", "zookeeper", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        order = re.findall(r"zookeeper on (\w+): answers after", done.stderr)
        assert sorted(order) == sorted(VOTERS)
        assert order[-1] == leader
        # Another one has taken over.
        assert self.states(cluster)[leader] == "follower"

    def test_status_counts_it_and_doctor_finds_nothing(self, quorum: Contributed) -> None:
        hosts = json.loads(quorum.command("status", "--json").stdout)["hosts"]
        assert {hosts[host]["services"]["zookeeper"]["state"] for host in VOTERS} == {"running"}
        assert "zookeeper" not in quorum.command("doctor").stdout

    def test_it_goes_without_a_trace(self, quorum: Contributed, machines: Machines) -> None:
        hosts = quorum.tree.root / INVENTORY / "hosts.yml"
        text = hosts.read_text(encoding="utf-8")
        hosts.write_text(re.sub(r"zookeeper:\n( .*\n)+", "", text), encoding="utf-8")
        done = quorum.command("remove", "zookeeper", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        for machine in machines.values():
            assert machine.run("ls /etc/systemd/system/zookeeper.service 2>/dev/null; true") == ""


class TestTls:
    """Flink's history server listens with TLS alone."""

    @pytest.fixture(scope="class")
    def authority(self, tmp_path_factory: pytest.TempPathFactory, cluster: Inventory) -> Path:
        """A certificate of the history server that signs itself, and beside it a keystore with its key."""
        folder = tmp_path_factory.mktemp("tls")
        [host] = cluster.group("flink_jobmanager")
        for argv in (
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={host.name}",
             "-addext", f"subjectAltName=IP:{host.address},DNS:{host.name}",
             "-keyout", "key.pem", "-out", "certificate.pem"],
            ["pkcs12", "-export", "-in", "certificate.pem", "-inkey", "key.pem", "-out", "keystore.p12",
             "-passout", "pass:changeit"],
        ):  # fmt: skip
            subprocess.run(["openssl", *argv], cwd=folder, check=True, capture_output=True)
        return folder / "certificate.pem"

    @pytest.fixture(scope="class")
    def secured(
        self,
        authority: Path,
        tmp_path_factory: pytest.TempPathFactory,
        cluster: Inventory,
        machines: Machines,
        ansible: Ansible,
    ) -> Iterator[Contributed]:
        """The cluster with a keystore on the host of the history server, and TLS there."""
        own = contributed("tls", tmp_path_factory.mktemp("contributions"), cluster)
        [host] = cluster.group("flink_jobmanager")
        machine, config = machines[host.name], host.variables["lakehouse_config_dir"]
        settings = {
            probes.AUTHORITY: authority.read_text(encoding="utf-8"),
            "flink_history_keystore": f"{config}/ssl/flink-history.p12",
        }
        own.tree.write(f"{INVENTORY}/group_vars/all/tls.yml", json.dumps(settings))
        keystore = base64.b64encode(authority.with_name("keystore.p12").read_bytes()).decode()
        machine.run(
            "cd %s && mkdir ssl && echo %s | base64 -d >ssl/flink-history.p12"
            " && chown %s ssl/flink-history.p12 && chmod 0400 ssl/flink-history.p12",
            config, keystore, host.variables["lakehouse_users"]["flink"],
        )  # fmt: skip
        try:
            own.converge("flink")
            yield own
        finally:
            converged = ansible.playbook("site", "--tags", "flink")
            machine.run("rm -rf %s/ssl %s/flink/history", config, config)
            assert converged.code == 0, converged

    def test_it_answers_to_who_knows_the_authority(
        self, secured: Contributed, authority: Path, cluster: Inventory
    ) -> None:
        [host] = cluster.group("flink_jobmanager")
        place = f"{host.address}:{host.variables['lakehouse_ports']['flink_history']}/jobs/overview"
        known = authority.read_text(encoding="utf-8")
        assert "jobs" in json.loads(probes.fetch(f"https://{place}", authority=known))
        for refused in (f"https://{place}", f"http://{place}"):
            with pytest.raises(OSError, match=r"certificate verify failed|not HTTP|reset|HTTP Error"):
                probes.fetch(refused)
        assert changed(secured.converge("flink")) == 0

    def test_restart_waits_for_it_over_tls(self, secured: Contributed) -> None:
        done = secured.command("restart", "flink_history", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        healthy = secured.command("doctor")
        assert healthy.returncode == 0, healthy.stdout


class TestMetrics:
    """An agent in every JVM: metrics on a port of each service's own."""

    @pytest.fixture(scope="class")
    def metrics(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        cluster: Inventory,
        machines: Machines,
        ansible: Ansible,
    ) -> Iterator[Contributed]:
        """The cluster with the agent in every JVM and with both servers of Spark; without them at the end."""
        own = contributed("metrics", tmp_path_factory.mktemp("contributions"), cluster)
        own.tree.write(
            f"{INVENTORY}/group_vars/all/servers.yml",
            "---\nspark_thrift_enabled: true\nspark_connect_enabled: true\n",
        )
        try:
            own.converge("all")
            yield own
        finally:
            outcome = ansible.playbook("site")
            for machine in machines.values():
                machine.run("rm -rf %s/lakehouse-metrics", machine.variable("lakehouse_config_dir"))
            assert outcome.code == 0, outcome

    def test_every_jvm_serves_its_metrics(self, metrics: Contributed) -> None:
        printed = metrics.tree.call("python", "-c", METRICS, INVENTORY)
        assert printed.returncode == 0, printed.stderr
        addresses: dict[str, list[str]] = json.loads(printed.stdout)
        assert {name.split()[0] for name, uris in addresses.items() if not uris} <= NO_JVM
        for name, uri in ((name, uri) for name, uris in addresses.items() for uri in uris):
            text = probes.fetch(uri).decode()
            families = {family.name for family in text_string_to_metric_families(text)}
            assert OF_EVERY_JVM in families, f"{name}, {uri}: {text[:2000]}"
            of_hdfs = any(family.startswith(OF_HDFS) for family in families)
            assert of_hdfs or name.split()[0] not in HDFS, f"{name}, {uri}: {sorted(families)}"

    def test_a_second_run_changes_nothing(self, metrics: Contributed) -> None:
        again = metrics.converge("all")
        assert changed(again) == 0, again[-6000:]

    def test_doctor_finds_every_listener_where_it_belongs(self, metrics: Contributed) -> None:
        done = metrics.command("doctor")
        assert "net.listens" not in done.stdout, done.stdout + done.stderr
