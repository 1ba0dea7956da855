"""`lakehouse doctor` of the cluster: nothing when it is well, and what did not answer is not judged."""

from __future__ import annotations

import pytest

from lakehouse.model.inventory import Host, Inventory
from tests.cluster import changing
from tests.cluster.looking import DOCTOR_SECONDS, Said, doctor, look, paused, secrets

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

NEEDED = {"namenode", "metastore", "postgresql"}


@pytest.fixture(scope="session")
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


def the_line(said: Said) -> str:
    """Return the one finding."""
    lines = said.out.splitlines()
    assert len(lines) == len(["finding", "doctor"]), said.out
    line, last = lines
    assert last.startswith("doctor ")
    return line


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


@pytest.mark.parametrize("command", changing.runbook("doctor"), ids=" ".join)
def test_a_command_of_the_runbook_judges_it(command: list[str], path: str) -> None:
    said = look(command[0], path, *command[1:], seconds=DOCTOR_SECONDS)
    assert (said.code, said.err) == (0, ""), said.out


@pytest.mark.drill
def test_a_silent_host_is_not_judged_and_is_its_line_alone(path: str, cluster: Inventory) -> None:
    if "local_nodes_cluster" not in cluster.hosts[0].variables:
        pytest.skip("real machines are not made to hang for a test")
    with paused(_victim(cluster)):
        said = doctor(path)
    assert said.code == 2, said.out
    line = the_line(said)
    assert line.startswith(f"FAIL doctor.unjudged {_victim(cluster).name}: ")
    assert " not judged: no answer in " in line


def _victim(cluster: Inventory) -> Host:
    return next(host for host in reversed(cluster.group("datanodes")) if not NEEDED & host.groups)
