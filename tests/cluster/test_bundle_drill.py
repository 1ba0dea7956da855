"""A machine without a way to any registry installs a lakehouse out of one file, but not if it was changed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from lakehouse import run
from lakehouse.artifacts import airgap
from lakehouse.local.nodes import docker_api
from lakehouse.model import profile
from tests import pages
from tests.cluster import airgapped
from tests.cluster.airgapped import Control

# The runbook's.
WRITE, INSTALL = pages.blocks(pages.RUNBOOKS / "bundle.md")
# Of the time that it takes from mirrors.
MOST = 1.1

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a bundle of the small profile."""
    # Not below pytest's folder of three runs: it is 1.3 GiB.
    folder = tmp_path_factory.mktemp("bundles")
    program, *words, output, _ = shlex.split(WRITE)
    assert (program, output) == (".venv/bin/lakehouse", "--output")
    command = [run.program("lakehouse"), *words, output, str(folder / "core.tar")]
    assert not run.shown(command, {profile.VARIABLE: profile.CORE, airgap.VARIABLE: ""})
    return folder


@pytest.fixture(scope="module")
def control(bundles: Path) -> Iterator[Control]:
    client = docker.from_env(timeout=600)
    with airgapped.control(client, {bundles: "/bundles"}) as machine:
        yield machine
    client.close()
    for bundle in bundles.glob("*.tar"):
        bundle.unlink()


@pytest.fixture(scope="module")
def installed(control: Control) -> tuple[float, str]:
    """Install it out of the bundle; return the seconds to its services, and what `make` said."""
    make, target, bundle = shlex.split(INSTALL)
    assert (make, target) == ("make", "lakehouse")
    return control.install(f"{bundle.partition('=')[0]}=/bundles/core.tar")


def mirrors(control: Control) -> set[str]:
    """Return the hosts of this computer's mirrors, which stand in the control machine's sources too."""
    found = set(re.findall(r"://([^/:\s]+)", control.run("cat", "/etc/apt/sources.list")[1]))
    assert found
    return found


def test_there_is_no_way_out(control: Control) -> None:
    code, said = control.run("apt-get", "update", "--error-on=any", "-o", "Acquire::Retries=0")
    assert code
    assert "Get:" not in said
    for host in mirrors(control):
        assert control.run("getent", "hosts", host)[0]


@pytest.mark.parametrize(
    ("suffix", "listed", "reason"),
    [
        ("_amd64.deb", False, "not the file that was packed"),
        ("_amd64.deb", True, "in no index that Debian has signed"),
        ("Packages.xz", True, "apt does not trust it"),
        ("InRelease", True, "apt does not trust it"),
        (".whl", True, "its checksum is neither in versions.yml nor in requirements/runtime.lock"),
        (".jar", True, "its checksum is neither in versions.yml nor in requirements/runtime.lock"),
    ],
)
def test_a_changed_byte_is_refused_before_anything_is_used(
    control: Control, bundles: Path, suffix: str, listed: bool, reason: str
) -> None:
    bad = bundles / "bad.tar"
    name = airgapped.altered(bundles / "core.tar", bad, suffix, listed=listed)
    code, said = control.run("make", "lakehouse", "BUNDLE=/bundles/bad.tar")
    bad.unlink()
    last = said.splitlines()[-2]
    assert code
    assert reason in last, said
    assert Path(name).name in last or "debian/" in last, said
    assert control.run("test", "-e", ".venv")[0], "something was installed"
    assert control.run("sh", "-c", "command -v mmdebstrap")[0], "something was installed"


def test_a_lakehouse_is_installed_and_verified(installed: tuple[float, str]) -> None:
    assert f"VERIFIED: {airgapped.CLUSTER}" in installed[1]


def test_its_nodes_have_no_way_out_either(control: Control) -> None:
    client = docker.from_env()
    assert client.networks.get(airgapped.CLUSTER).attrs["Internal"]
    nodes = docker_api.containers(client, airgapped.CLUSTER)
    assert len(nodes) == 3
    for node in nodes:
        assert list(node.attrs["NetworkSettings"]["Networks"]) == [airgapped.CLUSTER]
        for host in mirrors(control):
            assert node.exec_run(["getent", "hosts", host]).exit_code
        # Nor has one an apt source.
        assert not node.exec_run(["sh", "-c", "cat /etc/apt/sources.list | grep ."]).output
    client.close()


def test_a_second_run_changes_nothing(control: Control) -> None:
    site = [".venv/bin/ansible-playbook", "-i", airgapped.INVENTORY, "playbooks/site.yml"]
    code, said = control.run(*site)
    assert not code, said[-4000:]
    assert not sum(map(int, run.CHANGED.findall(said)))


def test_it_takes_hardly_longer_than_from_mirrors(
    installed: tuple[float, str], record_property: Callable[[str, object], None]
) -> None:
    files, environment = airgapped.mirrors()
    client = docker.from_env(timeout=600)
    # In place of the machine that has no way out, and of its nodes.
    with airgapped.control(client, files, internal=False) as machine:
        usual, _ = machine.install(environment=environment)
    client.close()
    said = f"{installed[0]:.0f} s to services out of the bundle, {usual:.0f} s from mirrors"
    record_property("note", said)
    assert installed[0] <= MOST * usual, said
