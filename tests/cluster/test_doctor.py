"""`lakehouse doctor` of the cluster: nothing when it is well, and of a fault its line and no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lakehouse.inventory import Host, Inventory
from tests.cluster.looking import Said, look, paused, secrets
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

# What the verb promises.
LIMIT_SECONDS = 20
NEEDED = {"namenode", "metastore", "postgresql"}


@pytest.fixture(scope="session")
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


def doctor(path: str, *options: str) -> Said:
    return look("doctor", path, *options, seconds=LIMIT_SECONDS)


def the_line(said: Said) -> str:
    """Return the one finding."""
    [line, last] = said.out.splitlines()
    assert last.startswith("doctor ")
    return line


def machine_of(group: str, cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group(group)[0].name]


@contextmanager
def undone(machine: Machine, fault: str, undo: str) -> Iterator[None]:
    """Make a fault, and take it away again whatever comes of it."""
    try:
        machine.run(fault)
        yield
    finally:
        machine.run(undo)


def test_a_cluster_that_is_well_has_no_finding_and_all_is_judged(path: str, cluster: Inventory) -> None:
    said = doctor(path)
    assert (said.code, said.err) == (0, ""), said.out
    [last] = said.out.splitlines()
    assert last.startswith(
        f"doctor {cluster.hosts[0].variables['lakehouse_cluster']}: 0 errors, 0 warnings; "
    )
    assert [secret for secret in secrets(cluster) if secret in said.out] == []


def test_programs_learn_how_much_was_judged(path: str, cluster: Inventory) -> None:
    said = doctor(path, "--json")
    document = said.document
    assert (document["outcome"], document["findings"]) == ("OK", []), document
    assert document["checks"]["judged"] == document["checks"]["of"] > len(cluster.hosts)
    assert document["hosts"].keys() == {host.name for host in cluster.hosts}
    assert [secret for secret in secrets(cluster) if secret in said.out] == []


@pytest.mark.drill
def test_a_stopped_service_is_its_line_alone(path: str, cluster: Inventory, machines: Machines) -> None:
    machine = machine_of("spark_history", cluster, machines)
    with undone(machine, "systemctl stop spark-history", "systemctl start spark-history"):
        said = doctor(path)
    assert said.code == 2, said.out
    assert the_line(said).startswith(
        f"FAIL unit.state {machine.name}: spark_history is stopped (inactive/dead)"
    )


@pytest.mark.drill
def test_a_timer_that_is_off_is_its_line_alone(path: str, cluster: Inventory, machines: Machines) -> None:
    machine = machine_of("namenode", cluster, machines)
    unit = "hdfs-checkpoint.timer"
    with undone(machine, f"systemctl stop {unit}", f"systemctl start {unit}"):
        said = doctor(path)
    assert said.code == 2, said.out
    assert the_line(said).startswith(f"FAIL hdfs.timer {machine.name}: {unit} is inactive")


@pytest.mark.drill
def test_a_file_that_a_daemon_has_not_read_is_its_line_alone(
    path: str, cluster: Inventory, machines: Machines
) -> None:
    machine = machine_of("spark_history", cluster, machines)
    file = "/etc/systemd/system/spark-history.service"
    restart = "systemctl daemon-reload && systemctl restart spark-history"
    with undone(machine, f"touch {file}", restart):
        said = doctor(path)
    assert said.code == 1, said.out
    assert the_line(said).startswith(f"WARN unit.pending {machine.name}: spark_history has not read {file}")


@pytest.mark.drill
def test_a_name_that_leads_to_loopback_is_its_line_alone(
    path: str, cluster: Inventory, machines: Machines
) -> None:
    machine = machine_of("spark_history", cluster, machines)
    kept = "/run/hosts-before-the-drill"
    # The file is mounted into a container: it can be written, and not replaced.
    fault = f"cp /etc/hosts {kept} && echo 127.0.1.1 {machine.name} >> /etc/hosts"
    with undone(machine, fault, f"cat {kept} > /etc/hosts && rm {kept}"):
        said = doctor(path)
    assert said.code == 2, said.out
    line = the_line(said)
    assert line.startswith(f"FAIL net.names {machine.name}: {machine.name} resolves to ")
    assert "127.0.1.1" in line


@pytest.mark.drill
def test_safe_mode_is_its_line_alone(path: str, cluster: Inventory, machines: Machines) -> None:
    machine = machine_of("namenode", cluster, machines)
    command = f"runuser -u {machine.variable('lakehouse_users')['hdfs']} -- hdfs dfsadmin -safemode"
    with undone(machine, f"cd / && {command} enter", f"cd / && {command} leave"):
        said = doctor(path)
    assert said.code == 2, said.out
    assert the_line(said).startswith(
        f"FAIL hdfs.safemode {machine.name}: nothing can be written, safe mode is on"
    )


@pytest.mark.drill
def test_a_silent_host_is_not_judged_and_is_its_line_alone(path: str, cluster: Inventory) -> None:
    if "local_nodes_cluster" not in cluster.hosts[0].variables:
        pytest.skip("nobody makes real machines hang for a test")
    with paused(_victim(cluster)):
        said = doctor(path)
    assert said.code == 2, said.out
    line = the_line(said)
    assert line.startswith(f"FAIL doctor.unjudged {_victim(cluster).name}: ")
    assert " not judged: no answer in " in line


def _victim(cluster: Inventory) -> Host:
    return next(host for host in reversed(cluster.group("datanodes")) if not NEEDED & host.groups)
