"""Asked what it would do, a run says what: nothing where all is as it should be, and it does none of it."""

from __future__ import annotations

import secrets

import pytest

from lakehouse.model.inventory import Inventory
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

KEY = "kit.check"


def test_a_converged_cluster_has_nothing_to_change(ansible: Ansible) -> None:
    outcome = ansible.playbook("site", "--check")
    assert (outcome.code, outcome.changed) == (0, 0), outcome


def test_what_a_run_would_change_is_shown_and_not_done(
    cluster: Inventory, machines: Machines, ansible: Ansible
) -> None:
    """Another password, and another key of the metastore: a role, two files, and their daemon."""
    machine = machines[cluster.group("metastore")[0].name]
    old, new = machine.variable("lakehouse_database"), f"hush{secrets.token_hex(12)}"
    desired = {"lakehouse_database": {**old, "password": new}, "hive_metastore_hive_site": {KEY: "1"}}
    before = state(machine)
    outcome = ansible.playbook("site", "--check", "--diff", "--tags", "postgresql,metastore", **desired)
    assert outcome.code == 0, outcome
    assert f"+    <name>{KEY}</name>" in outcome.output, outcome
    assert "(another secret)" in outcome.output, outcome
    told = {name: f"changed: [{machine.name}]" in of(outcome.output, name) for name in TASKS}
    assert told == dict.fromkeys(TASKS, True), outcome
    assert state(machine) == before
    # The words alone: a failure must not print them either.
    assert [word in outcome.output for word in (str(old["password"]), new)] == [False, False]


TASKS = (
    "The databases of the metastore and of federation exist, each with its role",
    "Write hive-site.xml, the secret and the unit",
    "The metastore runs and lists its databases",
)


def of(output: str, task: str) -> str:
    """What a run says of one task, on all hosts."""
    return next((part for part in output.split("\nTASK [") if part.partition("]")[0].endswith(task)), "")


def state(machine: Machine) -> tuple[str, str]:
    """The configuration of the metastore, and its process."""
    config = machine.listing(f"{machine.variable('lakehouse_config_dir')}/hive")
    return config, machine.run("systemctl show --property=MainPID,ExecMainStartTimestamp hive-metastore")
