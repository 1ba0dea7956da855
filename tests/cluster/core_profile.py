"""The small profile on bare nodes, before the rest comes on top: `make test` names this file then."""

from __future__ import annotations

import pytest

from lakehouse.model import profile
from lakehouse.model.inventory import Inventory
from tests.cluster.daemons import placements
from tests.cluster.machines import Machine
from tests.cluster.playbooks import Ansible

pytestmark = pytest.mark.cluster

ENGINES = ("trino", "flink")


def test_no_other_engine_is_installed(node: Machine) -> None:
    units = node.run("ls /etc/systemd/system")
    programs = node.run("ls %s", node.variable("lakehouse_install_dir"))
    found = [name for name in (units + programs).split() if name.startswith(ENGINES)]
    assert found == []


def test_every_service_of_it_runs(node: Machine) -> None:
    wanted = {
        placed.unit for placed in placements()
        if placed.group in node.host.groups and not placed.group.startswith(ENGINES)
    }  # fmt: skip
    states = {unit: node.run("systemctl list-units --no-legend --state=active %s", unit) for unit in wanted}
    assert wanted
    assert [unit for unit, line in states.items() if "running" not in line] == []


def test_a_run_without_a_word_keeps_it(
    cluster: Inventory, ansible: Ansible, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked what it would do, the plain playbook of a person who names no profile."""
    monkeypatch.delenv(profile.VARIABLE, raising=False)
    assert profile.of(str(cluster.path)) == profile.CORE
    outcome = ansible.playbook("site", "--tags", "trino,flink,clients", "--check")
    assert (outcome.code, outcome.changed) == (0, 0), outcome
