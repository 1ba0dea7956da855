"""`lakehouse remove`: what the inventory has no longer goes from its hosts, and nothing else."""

from __future__ import annotations

import pytest

from lakehouse.model import profile
from tests.cluster.changing import Verb
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

_UNITS = "systemctl list-units --plain --no-legend --state=active %s"


def running(machines: Machines, pattern: str) -> list[str]:
    return [name for name, machine in machines.items() if machine.run(_UNITS, pattern).strip()]


def test_what_the_inventory_has_is_refused(verb: Verb, machines: Machines) -> None:
    before = running(machines, "flink-*")
    if not before:
        pytest.skip("this inventory has no Flink")
    done = verb.run("remove", "flink", "--yes")
    assert done.returncode == 3, done
    assert done.stdout.splitlines()[-1].startswith("remove flink: refused; the inventory has flink on ")
    assert running(machines, "flink-*") == before


def test_what_no_cluster_can_do_without_is_one_line(verb: Verb) -> None:
    done = verb.run("remove", "hdfs_namenode")
    assert (done.returncode, done.stdout) == (64, ""), done
    [line] = done.stderr.splitlines()
    assert "hdfs_namenode is nothing that a cluster can do without" in line


@pytest.mark.longdrill
def test_it_goes_with_the_profile_and_comes_back(
    verb: Verb, machines: Machines, ansible: Ansible, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not running(machines, "flink-*"):
        pytest.skip("this inventory has no Flink")
    others = {pattern: running(machines, pattern) for pattern in ("trino*", "spark-*", "hdfs-*")}
    with monkeypatch.context() as small:
        small.setenv(profile.VARIABLE, profile.CORE)
        assert "lakehouse remove flink " in verb.run("doctor").stdout
        done = verb.run("remove", "flink", "--yes")
        assert done.returncode == 0, done
        assert running(machines, "flink-*") == []
        assert {pattern: running(machines, pattern) for pattern in others} == others
        again = verb.run("remove", "flink", "--yes")
        assert again.stdout.splitlines()[-1].startswith("remove flink: done; there is nothing to do; ")
        unconfirmed = verb.run("remove", "flink", "--data", "--yes")
        assert unconfirmed.returncode == 4, unconfirmed
    converged = ansible.playbook("site")
    assert converged.code == 0, converged
    healthy = verb.run("doctor")
    assert healthy.returncode == 0, healthy
