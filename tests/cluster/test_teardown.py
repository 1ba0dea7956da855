"""`teardown.yml`: whatever the kit has started stops, data stays, and `site.yml` brings all of it back."""

from __future__ import annotations

import pytest

from lakehouse.model import services
from lakehouse.model.inventory import Inventory
from suites.testbed.engines.trino import Trino
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

_ACTIVE = "systemctl list-units --plain --no-legend --state=active --type=service,timer | cut -d' ' -f1"


def active(machines: Machines) -> set[str]:
    """Return the units of the kit that run or wait for the clock, with their hosts."""
    units = [service.unit.rstrip("*") for service in services.load().services.values()]
    begin = (*units, "hdfs-", "lakehouse-")
    found = {host: machine.run(_ACTIVE).split() for host, machine in machines.items()}
    return {f"{unit} on {host}" for host in found for unit in found[host] if unit.startswith(begin)}


def test_everything_stops_and_comes_back(
    ansible: Ansible, cluster: Inventory, machines: Machines, trino: Trino, schema: str
) -> None:
    trino.sql(f"CREATE TABLE iceberg.{schema}.kept AS SELECT 7 n")
    before = active(machines)
    assert {unit.partition(".timer")[0] for unit in before if ".timer" in unit} == {
        "hdfs-checkpoint", "lakehouse-backup", "lakehouse-catalog"
    }  # fmt: skip
    unconfirmed = ansible.playbook("teardown")
    assert unconfirmed.code != 0, unconfirmed
    assert active(machines) == before

    stopped = ansible.playbook("teardown", teardown_cluster=cluster.hosts[0].variables["lakehouse_cluster"])
    assert stopped.code == 0, stopped
    assert active(machines) == set()

    converged = ansible.playbook("site")
    assert converged.code == 0, converged
    assert active(machines) == before
    assert trino.sql(f"TABLE iceberg.{schema}.kept") == [(7,)]
