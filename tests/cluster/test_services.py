"""Every daemon runs as its unit promises; asked of systemd and of the kernel, not of the files."""

from __future__ import annotations

import pytest
import yaml

from lakehouse.run import ROOT
from tests.cluster.daemons import Daemon, Listener
from tests.cluster.machines import Machine

pytestmark = pytest.mark.cluster

PROMISED = (
    "Restart", "UMask", "NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectSystem", "ProtectHome",
    "ProtectKernelTunables", "ProtectControlGroups", "ProtectProc", "RestrictSUIDSGID",
    "CapabilityBoundingSet",
)  # fmt: skip
# What Debian's PostgreSQL keeps of its own.
KEPT_BY_POSTGRESQL = {"UMask"}
# Of a set that the filter leaves out, and of one that it takes.
REFUSED_CALL, ALLOWED_CALL = "mount", "chown"
# What systemd-analyze gives at most, of 10; it reads the unit and not the kernel.
EXPOSURE = 3.0
# Neither Hive 3.1 nor the service of shuffle files in a Spark worker has a setting for the address.
ON_EVERY_ADDRESS = {"metastore", "spark_shuffle", "flink_jobmanager_metrics", "flink_taskmanager_metrics"}


def promises(daemon: Daemon) -> dict[str, str]:
    """The directives of all units, in the words of `systemctl show`."""
    defaults = yaml.safe_load((ROOT / "roles/node/vars/main.yml").read_text())["node_service"]
    desired = defaults | daemon.machine.host.variables.get("node_unit_service", {})
    words = {True: "yes", False: "no"}
    return {name: words[value] if isinstance(value, bool) else str(value) for name, value in desired.items()}


def test_it_runs_and_comes_back_with_the_machine(daemon: Daemon) -> None:
    service = daemon.machine.shell.service(daemon.unit)
    assert (service.is_running, service.is_enabled) == (True, True)


def test_it_runs_as_a_user_of_its_own(daemon: Daemon) -> None:
    uid = daemon.machine.run("id -u %s", daemon.user)
    assert uid != "0"
    assert set(daemon.status["Uid"].split()) == {uid}
    if daemon.is_member:
        group = daemon.machine.run("getent group %s", daemon.machine.variable("lakehouse_group"))
        assert set(daemon.status["Gid"].split()) == {group.split(":")[2]}


def test_its_java_is_its_own(daemon: Daemon) -> None:
    environment = daemon.as_itself("cat /proc/%s/environ", daemon.pid).split("\0")
    homes = [
        value for name, _, value in (entry.partition("=") for entry in environment) if name == "JAVA_HOME"
    ]
    assert len(homes) == int(daemon.is_member)
    for home in homes:
        assert daemon.as_itself("readlink /proc/%s/exe", daemon.pid).startswith(f"{home}/")


def test_its_limit_of_open_files_holds(daemon: Daemon) -> None:
    desired = int(daemon.properties["LimitNOFILE"])
    assert desired == int(promises(daemon)["LimitNOFILE"])
    # systemd gives what it has itself: in a container less than the unit asks for.
    assert daemon.open_files(daemon.pid) == min(desired, daemon.open_files("1"))


def test_its_sandbox_is_what_the_unit_promises(daemon: Daemon) -> None:
    names = [name for name in PROMISED if daemon.is_ours or name not in KEPT_BY_POSTGRESQL]
    desired = promises(daemon)
    assert {name: daemon.properties[name] for name in names} == {name: desired[name] for name in names}
    allowed = daemon.properties["SystemCallFilter"].split()
    assert (ALLOWED_CALL in allowed, REFUSED_CALL in allowed) == (True, False)


def test_its_sandbox_holds_in_the_kernel(daemon: Daemon) -> None:
    assert daemon.status["NoNewPrivs"] == "1"
    if daemon.is_ours:
        assert daemon.status["Umask"] == promises(daemon)["UMask"]
    assert {daemon.status[name].strip("0") for name in ("CapBnd", "CapPrm", "CapEff", "CapAmb")} == {""}
    # Of filters of system calls; the machine's own may be among them.
    assert daemon.status["Seccomp"] == "2"
    mounts = daemon.as_itself("cat /proc/%s/mountinfo", daemon.pid).splitlines()
    places = {fields[4]: fields for fields in map(str.split, mounts)}
    assert "ro" in places["/"][5].split(",")
    assert "hidepid=invisible" in " ".join(places["/proc"]).replace("hidepid=2", "hidepid=invisible")


def test_its_unit_is_not_exposed(daemon: Daemon) -> None:
    said = daemon.machine.run("systemd-analyze security --no-pager %s | tail -n 1", daemon.unit)
    assert float(said.split(": ")[-1].split()[0]) <= EXPOSURE, said


def test_it_listens_on_its_ports_and_address_alone(daemon: Daemon) -> None:
    address, table = daemon.machine.host.address, daemon.machine.variable("lakehouse_ports")
    # A program that asks for any port gets one of these; such are the executors' on a worker.
    any_port = int(daemon.machine.run("cut -f 1 /proc/sys/net/ipv4/ip_local_port_range"))
    heard = {one for one in daemon.listeners() if not one.address.startswith("127.")}
    assert {one for one in heard if one.port < any_port} == {
        Listener("*" if name in ON_EVERY_ADDRESS else address, table[name]) for name in daemon.placed.ports
    }
    assert {one.address for one in heard if one.port >= any_port} <= {address}


def test_the_machine_has_no_java_home(node: Machine) -> None:
    assert node.run("env -i bash --login -c 'echo $JAVA_HOME'") == ""
    assert "JAVA_HOME=" not in node.run(
        "systemctl show-environment; cat /etc/environment 2>/dev/null || true"
    )


def test_the_machine_lives_in_utc(node: Machine) -> None:
    zone = node.host.variables.get("node_time_zone", "Etc/UTC")
    assert node.shell.file("/etc/localtime").linked_to == f"/usr/share/zoneinfo/{zone}"
    assert node.run("date +%z") == "+0000"
