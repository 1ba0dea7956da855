"""The metastore's password is where the metastore reads it, and nowhere else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lakehouse.inventory import Inventory
from lakehouse.run import BUILD, ROOT
from tests.cluster.machines import Machine
from tests.cluster.playbooks import Ansible

pytestmark = pytest.mark.cluster

SEARCH = str(Path(__file__).with_name("find_secret.yml").relative_to(ROOT))


def secret_file(config_dir: str) -> str:
    return f"{config_dir}/hive/metastore.env"


@pytest.fixture(scope="module")
def places(ansible: Ansible, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """By host: files, command lines and journals in which the password stands."""
    report = tmp_path_factory.mktemp("secrets") / "places.json"
    outcome = ansible.playbook(SEARCH, report=str(report))
    assert outcome.code == 0, outcome
    return {host: set(found) for host, found in json.loads(report.read_text()).items()}


@pytest.fixture(scope="module")
def password(cluster: Inventory) -> str:
    return str(cluster.group("metastore")[0].variables["lakehouse_database"]["password"])


@pytest.fixture(scope="module")
def state(cluster: Inventory) -> Path:
    variables = cluster.hosts[0].variables
    if "local_nodes_state" not in variables:
        pytest.skip("real machines have no keys of ours")
    return Path(variables["local_nodes_state"])


def test_it_stands_in_one_file_and_in_no_argument_or_journal(
    node: Machine, places: dict[str, set[str]]
) -> None:
    reads_it = "metastore" in node.host.groups
    assert places[node.name] == ({secret_file(node.variable("lakehouse_config_dir"))} if reads_it else set())


@pytest.mark.group("metastore")
def test_only_root_reads_that_file(node: Machine) -> None:
    file = node.shell.file(secret_file(node.variable("lakehouse_config_dir")))
    assert (file.user, file.group, oct(file.mode)) == ("root", "root", "0o600")


@pytest.mark.group("metastore")
def test_the_configuration_names_a_variable_instead(node: Machine) -> None:
    config = node.run("cat %s", f"{node.variable('lakehouse_config_dir')}/hive/hive-site.xml")
    assert "${env.METASTORE_DATABASE_PASSWORD}" in config


def test_the_state_is_for_its_owner_alone(state: Path) -> None:
    open_to_others = [
        path for path in (state, *state.rglob("*")) if path.stat().st_mode & 0o077 and path.suffix != ".pub"
    ]
    assert open_to_others == []


def test_git_never_sees_the_state(state: Path) -> None:
    git = ["git", "-C", str(ROOT)]
    tracked = subprocess.run([*git, "ls-files", str(state)], capture_output=True, check=True).stdout
    ignored = subprocess.run(
        [*git, "check-ignore", "--quiet", str(state / "secrets")], check=False
    ).returncode
    assert (tracked, ignored) == (b"", 0)


def test_what_the_control_machine_keeps_does_not_tell_it(password: str) -> None:
    secret = password.encode()
    # The list of names alone: a failure must not print the password either.
    telling = [str(path) for path in BUILD.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert telling == []
