"""What breaks on a cluster is a line of `lakehouse doctor`, whose command mends it: faults.yml."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, StrictUndefined

from lakehouse import yamlfile
from lakehouse.doctor.diagnosis import CHECKS
from lakehouse.model.inventory import Host, Inventory
from lakehouse.run import ROOT
from suites.testbed.waiting import wait_for
from tests.cluster.looking import Said, doctor
from tests.cluster.machines import Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

FAULTS: Mapping[str, Any] = yamlfile.read(Path(__file__).with_name("faults.yml"))
# After it the cluster is well again: a leader has noticed who came back, and a daemon has settled.
WELL_SECONDS = 300
# What the command of a line may take: a whole site.yml.
COMMAND_SECONDS = 900
# Of these a person mends the fault.
PERSONS = {check.name for check in CHECKS if check.person}
_LEVELS = {"WARN": 1, "FAIL": 2}
_SCRIPTS = Environment(undefined=StrictUndefined, autoescape=False)  # noqa: S701 -- of shells, not of pages


@dataclass(frozen=True)
class Place:
    """The cluster on which things are broken, and the host that a fault's group stands for."""

    path: str
    cluster: Inventory
    machines: Machines
    first: Mapping[str, Host]

    def rendered(self, text: str, host: Host) -> str:
        return _SCRIPTS.from_string(text).render(host.variables, name=host.name, first=self.first)

    @contextmanager
    def broken(self, fault: Mapping[str, Any]) -> Iterator[None]:
        """Make a fault, and take away whatever is left of it in the end."""
        host = self.first[fault["group"]]

        def run(script: str) -> None:
            text = self.rendered(f"{FAULTS['functions']}\n{script}", host)
            self.machines[host.name].run("bash -euc %s", text)
            for group, command in fault.get("then", {}).items():
                for member in self.cluster.group(group):
                    self.machines[member.name].run(command)

        try:
            run(fault["make"])
            yield
        finally:
            run(fault["undo"])


@pytest.fixture(scope="module")
def place(pytestconfig: pytest.Config, cluster: Inventory, machines: Machines) -> Place:
    """The first host of each group; that of the backups is named by a variable."""
    groups = {group for host in cluster.hosts for group in host.groups}
    backup = cluster.hosts[0].variables["lakehouse_backup_host"]
    keeps = next(host for host in cluster.hosts if host.name == backup)
    first = {group: cluster.group(group)[0] for group in groups} | {"backup": keeps}
    return Place(str(pytestconfig.getoption("--inventory")), cluster, machines, first)


def rows(*, often: bool) -> list[Any]:
    """The faults of `make test`, or those of `make drills`."""
    chosen = [fault for fault in FAULTS["faults"] if bool(fault.get("often")) is often]
    return [pytest.param(fault, id=fault["check"]) for fault in chosen]


@pytest.mark.drill
@pytest.mark.parametrize("fault", rows(often=True))
def test_a_fault_is_its_line_alone(fault: Mapping[str, Any], place: Place) -> None:
    assert_alone(fault, place)


@pytest.mark.longdrill
@pytest.mark.parametrize("fault", rows(often=False))
def test_every_other_fault_is_its_line_alone_too(fault: Mapping[str, Any], place: Place) -> None:
    assert_alone(fault, place)


def assert_alone(fault: Mapping[str, Any], place: Place) -> None:
    """See the line of a fault and no other, run its command, and see that it is gone."""
    check, named = fault["check"], place.first[fault.get("at", fault["group"])].name
    level, _, words = place.rendered(fault["line"], place.first[fault["group"]]).partition(" ")
    expected = re.compile(rf"{level} {check} {named}: {words}")
    last: list[Said] = []

    def lines() -> list[str]:
        last[:] = [doctor(place.path)]
        return last[0].out.splitlines()[:-1]

    def is_said() -> bool:
        others = [line for line in lines() if not expected.match(line)]
        following = [line for line in others if line.split()[1] in fault.get("too", ())]
        codes = {_LEVELS[line.split()[0]] for line in last[0].out.splitlines()[:-1]}
        return others == following and last[0].out.count(f" {check} ") == 1 and last[0].code == max(codes)

    def is_gone() -> bool:
        return not [line for line in lines() if line.startswith(f"{level} {check} ")]

    def wait(what: str, is_so: Callable[[], bool], seconds: float) -> None:
        try:
            wait_for(what, is_so, seconds=seconds)
        except TimeoutError:
            pytest.fail(f"{what}\n{last[0].out}")

    with place.broken(fault):
        wait(expected.pattern, is_said, fault.get("within", 0))
        if check not in PERSONS and "not_run" not in fault:
            run_next(place, check, named)
            wait(f"{check} is gone", is_gone, WELL_SECONDS)
    wait("the cluster is well again", lambda: not lines(), WELL_SECONDS)


def run_next(place: Place, check: str, where: str) -> None:
    """Run the command of a line as a person does who pastes it in a terminal, and answers yes."""
    [command] = [
        found["next"]
        for found in doctor(place.path, "--json").document["findings"]
        if (found["code"], found["where"]) == (check, where)
    ]
    done = subprocess.run(
        ["script", "--quiet", "--return", "--command", command, "/dev/null"],
        cwd=ROOT, input="y\n", capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}"
