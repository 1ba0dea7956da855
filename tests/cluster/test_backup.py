"""Backups of the cluster: one is good, a damaged one is found and refused, and nothing is done unasked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.inventory import Inventory
from tests.cluster.looking import Said, look, secrets
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

# What docs/operations/backup.md promises for the smoke lakehouse is 60 s; a busy machine takes longer.
BACKUP_SECONDS = 180
VERIFY_SECONDS = 90


@pytest.fixture(scope="module")
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


@pytest.fixture(scope="module")
def keeper(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.hosts[0].variables["lakehouse_backup_host"]]


@pytest.fixture(scope="module")
def made(path: str) -> Said:
    return look("backup", path, seconds=BACKUP_SECONDS)


@pytest.fixture(scope="module")
def name(made: Said) -> str:
    assert made.code == 0, made.out + made.err
    return named(made)


def named(made: Said) -> str:
    """The backup of a last line."""
    return made.out.splitlines()[-1].partition("done; ")[2].partition(",")[0]


def verify(path: str, *options: str) -> Said:
    return look("backup", path, "verify", *options, seconds=VERIFY_SECONDS)


def folder(keeper: Machine, name: str) -> str:
    return f"{keeper.variable('lakehouse_backup_dir')}/backups/{name}"


def test_a_backup_says_when_it_was_made_and_of_how_much(made: Said, name: str, cluster: Inventory) -> None:
    last = made.out.splitlines()[-1]
    word = cluster.hosts[0].variables["lakehouse_cluster"]
    assert last.startswith(f"backup {word}: done; {name}, T0 ")
    assert " tables, " in last
    assert last.endswith(f"next: lakehouse status -i {cluster.path}")
    assert [secret for secret in secrets(cluster) if secret in made.out] == []


def test_its_manifest_ties_every_table_with_rows_and_checksum(name: str, keeper: Machine) -> None:
    manifest = json.loads(keeper.run("cat %s", f"{folder(keeper, name)}/manifest.json"))
    assert manifest["database"]["at"] < manifest["hdfs"]["at"]
    assert manifest["tables"]
    for table in manifest["tables"]:
        assert table["format"] in {"iceberg", "delta", "hive", "view"}
        if table["format"] != "view":
            assert table["unknown"] == "", table
            assert table["metadata"], table


def test_what_it_encrypts_can_be_read_with_the_passphrase_alone(
    name: str, keeper: Machine, cluster: Inventory
) -> None:
    word = str(cluster.hosts[0].variables["lakehouse_backup_passphrase"])
    read = "openssl enc -d -aes-256-cbc -pbkdf2 -iter 600000 -a -in %s -pass pass:%s | tar -tz"
    listed = keeper.run(read, f"{folder(keeper, name)}/configuration.enc", word)
    assert any(line.endswith("hosts.yml") for line in listed.splitlines())
    assert keeper.run("grep -rlF %s %s %s || true", word, folder(keeper, name), "/etc/lakehouse-backup") == ""


def test_a_good_backup_is_good(path: str, name: str) -> None:
    said = verify(path, name)
    assert said.code == 0, said.out + said.err
    assert f"verify {name}: good; " in said.out


def test_status_shows_its_age(path: str, name: str) -> None:
    said = look("status", path, "--json", seconds=15)
    assert json.loads(said.out)["cluster"]["backup"]["value"]["good"], name


@pytest.fixture
def damaged(name: str, keeper: Machine) -> Iterator[str]:
    """A file of the copy with one byte more, in this backup alone: others link to the same file."""
    files = f"{folder(keeper, name)}/files"
    victim = keeper.run("find %s -name '*.parquet' -size +0 | sort | head -n 1", files)
    keeper.run("mv %s %s && (cat %s; printf x) > %s", victim, f"{victim}.kept", f"{victim}.kept", victim)
    try:
        yield str(Path(victim).relative_to(files))
    finally:
        keeper.run("mv %s %s", f"{victim}.kept", victim)
        keeper.run("rm -f %s", f"{folder(keeper, name)}/damaged.json")


def test_a_damaged_backup_is_found_and_refused(
    path: str, name: str, damaged: str, cluster: Inventory
) -> None:
    said = verify(path, name)
    assert said.code == 2, said.out
    assert f"files/{damaged} is not as it was written" in said.out
    word = str(cluster.hosts[0].variables["lakehouse_cluster"])
    refused = look("restore", path, name, "--confirm", word, seconds=VERIFY_SECONDS)
    assert refused.code == 3, refused.out
    assert f"restore {name}: refused; damaged: " in refused.out


def test_a_restore_wants_the_name_of_the_cluster(path: str, name: str, cluster: Inventory) -> None:
    for options in ((), ("--confirm", "another")):
        said = look("restore", path, name, *options, seconds=VERIFY_SECONDS)
        assert said.code == 4, said.out
        word = cluster.hosts[0].variables["lakehouse_cluster"]
        assert said.out.splitlines()[-1].endswith(f"restore {name} -i {path} --confirm {word}")


def test_a_backup_is_one_of_the_runs(path: str, made: Said, name: str) -> None:
    run = made.out.splitlines()[-1].partition(", run ")[2].partition(";")[0]
    shown = next(
        line for line in look("runs", path, seconds=15).out.splitlines() if line.startswith(f"{run} ")
    )
    assert f"{name}, T0 " in shown.partition(" done ")[2]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("restore", "20000101T000000Z"), "there is no backup 20000101T000000Z"),
        (("backup", "verify", "latest"), "'latest' is no backup"),
        (("backup", "run", "mine"), "a backup gets its name by itself"),
        (("restore", "--to", "yesterday"), "is no time with an offset"),
    ],
)
def test_bad_input_is_one_line(path: str, options: tuple[str, ...], what: str) -> None:
    verb, *rest = options
    said = look(verb, path, *rest, seconds=VERIFY_SECONDS)
    assert (said.code, said.out) == (1, "")
    [line] = said.err.splitlines()
    assert what in line
    assert "; next: " in line


def test_a_full_disk_is_said_and_leaves_nothing(keeper: Machine) -> None:
    free = int(keeper.run("df -B1 --output=avail /dev | tail -n 1"))
    if free > 200 << 20:
        pytest.skip("this machine has no small disk")
    settings = f"{keeper.variable('lakehouse_config_dir')}/lakehouse-backup/settings.json"
    with keeper.scratch("small") as scratch:
        small = json.loads(keeper.run("cat %s", settings)) | {"folder": "/dev/lakehouse-small"}
        keeper.run("install -d -o lakehouse-backup /dev/lakehouse-small")
        try:
            keeper.run("printf %%s %s > %s && chmod 755 %s", json.dumps(small), f"{scratch}/s.json", scratch)
            argv = "runuser -u lakehouse-backup -- lakehouse-backup --settings %s run || true"
            said = json.loads(keeper.run(f"cd / && {argv}", f"{scratch}/s.json"))
            assert "MiB left and needs" in said["why"]
            assert keeper.run("ls /dev/lakehouse-small/backups") == ""
        finally:
            keeper.run("rm -rf /dev/lakehouse-small")
