"""Each secret is where its one service reads it, and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible.module_utils.lakehouse import credentials

from lakehouse.model.inventory import Inventory
from lakehouse.run import BUILD, ROOT
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible

pytestmark = pytest.mark.cluster

_BLOCK = 1 << 20
SEARCH = str(Path(__file__).with_name("find_secret.yml").relative_to(ROOT))


@dataclass(frozen=True)
class Secret:
    """What find_secret.yml calls it; the machines of these groups have it in this file, under this name.

    The file is below the folder of configuration where its path is not whole. Its `reader` is a user of the
    catalogue or an account, and who else may read it.
    """

    variable: str
    groups: frozenset[str]
    file: str
    name: str
    reader: str
    group: str = "root"
    mode: str = "0o600"

    def path(self, machine: Machine) -> str | None:
        """Where it stands on a machine, None if nothing there reads it."""
        reads_it = self.groups & machine.host.groups
        return str(Path(machine.variable("lakehouse_config_dir"), self.file)) if reads_it else None

    def word(self, machines: Machines) -> str:
        """The secret itself, as the first machine that has it says; empty if none has."""
        words = (
            json.loads(machine.run("cat %s", path))[self.name]
            if path.endswith(".json")
            else machine.run('sed -En \'s/^%s="?([^"]*)"?$/\\1/p\' %s', self.name, path)
            for machine in machines.values()
            if (path := self.path(machine))
        )
        return next(words, "")


TRINO = frozenset({"trino_coordinator", "trino_workers"})
SECRETS = (
    Secret(
        "lakehouse_database",
        frozenset({"metastore"}),
        "hive/credentials.json",
        credentials.PASSWORD,
        "hive",
        mode="0o400",
    ),
    Secret("lakehouse_federation", TRINO, "trino/trino.env", "TRINO_FEDERATION_PASSWORD", "root"),
    Secret("trino_shared_secret", TRINO, "trino/trino.env", "TRINO_SHARED_SECRET", "root"),
    Secret(
        "lakehouse_backup_passphrase",
        frozenset({"postgresql"}),
        "/etc/pgbackrest/pgbackrest.conf",
        "repo1-cipher-pass",
        "root",
        "postgres",
        "0o640",
    ),
)


@pytest.fixture(scope="module", params=SECRETS, ids=lambda secret: secret.variable)
def secret(request: pytest.FixtureRequest, machines: Machines) -> Secret:
    found: Secret = request.param
    if not found.word(machines):
        pytest.skip(f"this inventory has no {found.variable}")
    return found


@pytest.fixture(scope="module")
def places(secret: Secret, ansible: Ansible, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """By host: files, command lines and journals in which the password stands."""
    report = tmp_path_factory.mktemp("secrets") / "places.json"
    outcome = ansible.playbook(SEARCH, report=str(report), secret=secret.variable)
    assert outcome.code == 0, outcome
    return {host: set(found) for host, found in json.loads(report.read_text()).items()}


@pytest.fixture(scope="module")
def state(cluster: Inventory) -> Path:
    variables = cluster.hosts[0].variables
    if "local_nodes_state" not in variables:
        pytest.skip("real machines have no keys of ours")
    return Path(variables["local_nodes_state"])


def test_it_stands_in_one_file_and_in_no_argument_or_journal(
    secret: Secret, machines: Machines, places: dict[str, set[str]]
) -> None:
    paths = {machine.name: secret.path(machine) for machine in machines.values()}
    assert places == {name: {path} if path else set() for name, path in paths.items()}


def test_only_root_or_its_daemon_reads_that_file(secret: Secret, machines: Machines) -> None:
    for machine in machines.values():
        if path := secret.path(machine):
            file = machine.shell.file(path)
            reader = machine.variable("lakehouse_users").get(secret.reader, secret.reader)
            expected = (reader, secret.group, secret.mode)
            assert (file.user, file.group, oct(file.mode)) == expected, machine.name


@pytest.mark.group("metastore")
def test_the_metastore_has_no_secret_in_its_environment(node: Machine) -> None:
    [secret] = [one for one in SECRETS if one.variable == "lakehouse_database"]
    word = secret.word({node.name: node})
    pid = node.run("systemctl show --property=MainPID --value hive-metastore")
    assert word not in node.run("tr '\\0' '\\n' < /proc/%s/environ", pid)


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


def test_what_the_control_machine_keeps_does_not_tell_it(secret: Secret, machines: Machines) -> None:
    word = secret.word(machines).encode()
    # The list of names alone: a failure must not print the password either.
    assert [str(path) for path in kept() if tells(path, word)] == []


def kept() -> Iterator[Path]:
    """Files that the control machine keeps, but for bundles: gigabytes of what was fetched, of no cluster."""
    for folder, _, names in os.walk(BUILD):
        yield from (Path(folder, name) for name in names if not name.endswith(".bundle.tar"))


def tells(path: Path, word: bytes) -> bool:
    """Whether a file has a word; what a neighbour has taken away meanwhile has none."""
    before = b""
    with suppress(FileNotFoundError), path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            if word in before + block:
                return True
            before = block[-len(word) :]
    return False
