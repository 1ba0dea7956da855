"""What is changed on hosts behind the kit's back is findings, shown and repaired: drift.yml."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from jinja2 import Environment, StrictUndefined

from lakehouse import yamlfile
from lakehouse.model.inventory import Host, Inventory
from plugins.module_utils.lakehouse import host_state
from tests.cluster.looking import Said, doctor
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible, Outcome

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.longdrill]

CHANGES: list[dict[str, str]] = yamlfile.read(Path(__file__).with_name("drift.yml"))
FUNCTIONS = yamlfile.read(Path(__file__).with_name("faults.yml"))["functions"]
LEAST = 30
# A run that changes nothing, by preflight alone.
MOST_TIMES = 2.0
_SCRIPTS = Environment(undefined=StrictUndefined, autoescape=False)  # noqa: S701 -- of shells, not of pages


@dataclass(frozen=True)
class Change:
    """A change of a host, and the lines that have to name it."""

    host: Host
    row: Mapping[str, str]

    def rendered(self, name: str) -> str:
        return _SCRIPTS.from_string(self.row[name]).render(self.host.variables, name=self.host.name)

    def is_in(self, lines: list[str]) -> bool:
        return any(re.search(self.rendered("line"), line) for line in lines)


def of(cluster: Inventory, row: Mapping[str, str]) -> Change:
    return Change(cluster.group(row["group"])[0], row)


@dataclass(frozen=True)
class Course:
    """What was printed, from the changes to the run after the repair."""

    doctor: Said
    check: Outcome
    repair: Outcome
    healed: Said
    rerun: Outcome


@pytest.fixture(scope="module")
def course(cluster: Inventory, machines: Machines, ansible: Ansible) -> Course:
    """Make all changes, print them, and repair the hosts."""
    path = ansible.inventory
    changes = [of(cluster, row) for row in CHANGES]
    for change in changes:
        machines[change.host.name].run("bash -euc %s", f"{_functions(change)}\n{change.rendered('make')}")
    try:
        findings = doctor(path)
        check = ansible.playbook("site", "--check", "--diff")
    finally:
        repair = ansible.playbook("site")
        healed = doctor(path)
        rerun = ansible.playbook("site")
        for change in changes:
            if "undo" in change.row:
                script = f"{_functions(change)}\n{change.rendered('undo')}"
                machines[change.host.name].run("bash -euc %s", script)
    return Course(findings, check, repair, healed, rerun)


def _functions(change: Change) -> str:
    return _SCRIPTS.from_string(FUNCTIONS).render(change.host.variables, name=change.host.name)


def test_there_are_enough_of_them() -> None:
    assert len(CHANGES) >= LEAST


@pytest.mark.parametrize("row", CHANGES, ids=[row["line"][:60] for row in CHANGES])
def test_a_change_is_found_by_doctor_and_shown_by_a_check(
    cluster: Inventory, course: Course, row: Mapping[str, str]
) -> None:
    change = of(cluster, row)
    assert change.is_in(course.doctor.out.splitlines()), course.doctor
    assert change.is_in(course.check.output.splitlines()), course.check


def test_a_run_repairs_all_of_it_and_the_next_one_changes_nothing(course: Course) -> None:
    assert course.repair.code == 0, course.repair
    assert course.repair.changed > 0, course.repair
    assert "host.drift" not in course.healed.out, course.healed
    assert (course.rerun.code, course.rerun.changed) == (0, 0), course.rerun
    assert "TASK [lakehouse : " not in course.rerun.output.partition("Leave out hosts")[2], course.rerun


def _edited(path: str) -> str:
    return f'sed -i \'s/"mode": "0644"/"mode": "0666"/\' {path}'


def _of_another_version(path: str) -> str:
    return f'sed -i \'s/"format": [0-9]*/"format": 0/\' {path}'


SPOILED = {
    "edited": (_edited, "was edited"),
    "another version": (_of_another_version, "was written by another version of the kit"),
    "missing": ("rm {}".format, "is not there"),
}


@pytest.mark.usefixtures("course")
@pytest.mark.parametrize("fault", SPOILED)
def test_a_manifest_that_cannot_be_used_is_written_anew_and_nothing_restarts(
    cluster: Inventory, machines: Machines, ansible: Ansible, fault: str
) -> None:
    spoil, words = SPOILED[fault]
    path, host = ansible.inventory, cluster.group("metastore")[0]
    machine = machines[host.name]
    place = f"{machine.variable('lakehouse_config_dir')}/{host_state.NAME}"
    before = started(machines, host)
    machine.run("sh -c %s", spoil(place))
    assert f"{host_state.NO_MANIFEST}: {place} {words}" in doctor(path).out
    outcome = ansible.playbook("site")
    assert (outcome.code, outcome.changed) == (0, 0), outcome
    assert started(machines, host) == before
    assert "host.drift" not in doctor(path).out
    rerun = ansible.playbook("site")
    assert rerun.output.count("TASK [") < outcome.output.count("TASK ["), rerun


def started(machines: Machines, host: Host) -> str:
    """When the daemons of a host started."""
    command = "systemctl show --property=Id,ExecMainStartTimestamp '*.service'"
    lines = machines[host.name].run("sh -c %s", command).splitlines()
    prefixes = ("hdfs-", "hive-", "trino", "spark-", "flink-", "postgresql@")
    blocks = "\n".join(lines).split("\n\n")
    return "\n".join(sorted(block for block in blocks if block.partition("Id=")[2].startswith(prefixes)))


@pytest.mark.usefixtures("course")
def test_a_run_that_changes_nothing_takes_at_most_twice_the_time_of_preflight(
    ansible: Ansible, record_property: Callable[[str, object], None]
) -> None:
    """The least of three runs in turn: what else the machine does only adds to a run."""
    least: dict[str, float] = {}
    for _ in range(3):
        for playbook in ("preflight", "site"):
            began = time.monotonic()
            outcome = ansible.playbook(playbook)
            seconds = time.monotonic() - began
            assert (outcome.code, outcome.changed) == (0, 0), outcome
            least[playbook] = min(seconds, least.get(playbook, seconds))
    ratio = least["site"] / least["preflight"]
    record_property("note", f"{least['site']:.1f} s, {ratio:.2f} times preflight")
    assert ratio <= MOST_TIMES, least
