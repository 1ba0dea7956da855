"""Machines are lost with their disks: new ones, a backup and its passphrase become the lakehouse again."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from lakehouse.local import nodes
from lakehouse.local.nodes import spec
from lakehouse.model.inventory import Host, Inventory
from lakehouse.run import ROOT
from suites.testbed.engines.trino import Trino
from tests import pages
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, container_of, reached
from tests.cluster.playbooks import Ansible
from tests.cluster.restoring import backed_up, check_well, restore

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

PAGE = pages.RUNBOOKS / "restore.md"
COPY = "backups.tar"


@pytest.fixture
def table(verb: Verb, trino: Trino, iceberg_schema: str) -> str:
    """A table with two rows; HDFS has a snapshot with the files of another one, which was dropped."""
    name, dropped = f"iceberg.{iceberg_schema}.kept", f"iceberg.{iceberg_schema}.dropped"
    trino.sql(f"CREATE TABLE {dropped} AS SELECT 1 AS id")
    verb.committed()
    trino.sql(f"DROP TABLE {dropped}")
    trino.sql(f"CREATE TABLE {name} AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (id, word)")
    return name


def printed(first: str) -> str:
    """Return the block of the runbook that begins so."""
    [found] = [block for block in pages.blocks(PAGE) if block.startswith(first)]
    return found


def on_the_keeper(cluster: Inventory, commands: str) -> None:
    """Run commands of the runbook on the host that keeps backups."""
    with reached(cluster) as machines:
        machine = machines[keeper(cluster).name]
        machine.run(f"set -e; cd /root; BACKUPS=%s\n{commands}", machine.variable("lakehouse_backup_dir"))


def keeper(cluster: Inventory) -> Host:
    [found] = [host for host in cluster.hosts if host.name == host.variables["lakehouse_backup_host"]]
    return found


def take_out(cluster: Inventory, target: Path) -> None:
    """Copy all backups to this computer, as to a third place."""
    on_the_keeper(cluster, printed("tar "))
    with container_of(keeper(cluster)) as container:
        stream, _ = container.get_archive(f"/root/{COPY}")
        with tarfile.open(fileobj=BytesIO(b"".join(stream))) as tar:
            tar.extract(COPY, target, filter="data")


def put_back(cluster: Inventory, source: Path) -> None:
    """Give the new host that keeps backups the copy."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(source / COPY, COPY)
    with container_of(keeper(cluster)) as container:
        assert container.put_archive("/root", packed.getvalue())
    on_the_keeper(cluster, printed("find "))


def unpack(folder: Path, passphrase: str) -> None:
    """Decrypt what the copy has of the inventory, as the runbook says; it asks for the passphrase."""
    with tarfile.open(folder / COPY) as tar:
        tar.extract("./configuration.enc", folder, filter="data")
    command = printed("openssl").replace("openssl enc ", "openssl enc -pass env:PASSPHRASE ")
    environment = {**os.environ, "PASSPHRASE": passphrase}
    subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=folder, env=environment, check=True)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def set_aside(machine: Machine) -> None:
    """Stop a DataNode and move its directories away, as the refusal says."""
    machine.run("systemctl stop hdfs-datanode")
    for folder in machine.variable("lakehouse_datanode_dirs"):
        machine.run("mv %s %s", folder, f"{folder}.lost")


def test_bare_machines_become_the_lakehouse_of_a_backup_alone(
    verb: Verb, cluster: Inventory, trino: Trino, table: str, tmp_path: Path
) -> None:
    path, local = verb.path, spec.read(cluster)
    assert local
    # It is read from where nothing will be left.
    passphrase = str(keeper(cluster).variables["lakehouse_backup_passphrase"])
    name = backed_up(path)
    take_out(cluster, tmp_path)
    # With their data, and with the keys and secrets that the control machine has of them.
    nodes.down(path, print)
    assert not local.state.exists()

    unpack(tmp_path, passphrase)
    assert files(tmp_path / Path(path).name) == files(ROOT / path)
    # Before the inventory is read: what is missing would be made anew.
    shutil.copytree(tmp_path / "secrets", local.state / "secrets")
    nodes.up(path, print)
    converged = Ansible(path).playbook("site")
    assert converged.code == 0, converged
    put_back(cluster, tmp_path)
    restore(path, name, cluster)

    assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "a"), (2, "b")]
    backed_up(path)
    check_well(path)


def test_new_hosts_take_the_place_of_namenode_and_database(
    verb: Verb, cluster: Inventory, trino: Trino, table: str
) -> None:
    path = verb.path
    lost = [*cluster.group("namenode"), *cluster.group("postgresql")]
    if keeper(cluster) in lost:
        pytest.skip("the backups would be lost, too: that is the other drill")
    name = backed_up(path)
    for host in lost:
        with container_of(host) as container:
            container.remove(force=True, v=True)
    nodes.up(path, print)

    refused = Ansible(path).playbook("site")
    assert refused.code
    assert "formatting would orphan them; nothing was touched" in refused.text, refused
    with reached(cluster) as machines:
        for host in cluster.group("datanodes"):
            if host not in lost:
                set_aside(machines[host.name])
    converged = Ansible(path).playbook("site")
    assert converged.code == 0, converged
    assert "has the backups of another database" in converged.text
    restore(path, name, cluster)

    assert sorted(trino.sql(f"SELECT * FROM {table}")) == [(1, "a"), (2, "b")]
    backed_up(path)
    check_well(path)
