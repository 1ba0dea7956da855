"""A unit that serves is restarted on one host after the other; a first start and a second run take no turns.

Of a unit that does nothing: no other unit notices.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible, Outcome

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]


class Unit:
    """It on all machines, with a setting."""

    def __init__(self, machines: Machines, ansible: Ansible) -> None:
        self.name = f"kit-turn-{secrets.token_hex(3)}"
        self._machines = machines
        self._ansible = ansible

    def run(self, setting: str, **more: str) -> Outcome:
        return self._ansible.playbook("tests/cluster/turn.yml", unit=self.name, setting=setting, **more)

    def moments(self) -> list[tuple[float, float]]:
        """When it stopped and started for the last time, by host, the first of them first."""
        shown = "systemctl show --timestamp=us+utc --property=%s --value %s"
        names = ("ActiveExitTimestampMonotonic", "ActiveEnterTimestampMonotonic")
        found = [
            tuple(float(machine.run(shown, name, self.name)) for name in names)
            for machine in self._machines.values()
        ]
        return sorted((stopped, started) for stopped, started in found)

    def remove(self) -> None:
        for machine in self._machines.values():
            machine.run("systemctl stop %s; rm -f /run/systemd/system/%s.service /run/%s", *[self.name] * 3)
            machine.run("systemctl daemon-reload; systemctl reset-failed")


@pytest.fixture
def unit(machines: Machines, ansible: Ansible) -> Iterator[Unit]:
    if "local_nodes_cluster" not in next(iter(machines.values())).host.variables:
        pytest.skip("the clocks of other machines cannot be compared")
    made = Unit(machines, ansible)
    yield made
    made.remove()


def test_hosts_take_turns_until_one_does_not_come_back(unit: Unit) -> None:
    assert unit.run("one").code == 0
    first = unit.moments()

    again = unit.run("one")
    assert (again.code, again.changed) == (0, 0), again
    assert unit.moments() == first

    spared = unit.run("two", restarts="false")
    assert spared.code == 0, spared
    assert unit.moments() == first

    rolled = unit.run("two")
    assert rolled.code == 0, rolled
    moments = unit.moments()
    for (_, started), (stopped, _) in pairwise(moments):
        assert stopped >= started, moments

    broken = unit.run("three", first="/bin/false")
    assert broken.code != 0, broken
    assert f"{unit.name}: not restarted, because {unit.name} on " in broken.text, broken
    # The others go on with what they have.
    assert len(set(moments) & set(unit.moments())) == len(moments) - 1

    mended = unit.run("three")
    assert mended.code == 0, mended
