"""Backups of the cluster: one is good, a damaged one is found and refused, and nothing is done unasked."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lakehouse.metastore import Metastore
from lakehouse.model.inventory import Inventory
from plugins.module_utils.lakehouse.counting import counted
from suites.testbed.namenode import NameNode
from tests import pages
from tests.cluster import changing
from tests.cluster.daemons import placements
from tests.cluster.looking import DOCTOR_SECONDS, Said, look, secrets
from tests.cluster.machines import Machine, Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

# Of the runbook.
MAKE, LIST, VERIFY = changing.runbook("backup")
# Of the smoke lakehouse, every table counted; docs/operations/backup.md has what was measured.
BACKUP_SECONDS = 60
# Nothing here takes so long.
MADE_SECONDS = 180
VERIFY_SECONDS = 90


@pytest.fixture(scope="module")
def path(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--inventory"))


@pytest.fixture(scope="module")
def keeper(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.hosts[0].variables["lakehouse_backup_host"]]


@pytest.fixture(scope="module")
def made(path: str) -> Said:
    return look(MAKE[0], path, *MAKE[1:], seconds=MADE_SECONDS)


@pytest.fixture(scope="module")
def name(made: Said) -> str:
    assert made.code == 0, made.out + made.err
    return named(made)


def named(made: Said) -> str:
    """The backup of a last line."""
    return made.out.splitlines()[-1].partition("done; ")[2].partition(",")[0]


def run_of(said: Said) -> str:
    """The run of a last line."""
    return said.out.splitlines()[-1].partition(", run ")[2].partition(";")[0]


def listed(path: str, cluster: Inventory) -> list[str]:
    """The backups as the verb lists them."""
    said = look(LIST[0], path, *LIST[1:], seconds=VERIFY_SECONDS)
    assert said.code == 0, said.out + said.err
    [line] = said.out.splitlines()
    first = f"backups {cluster.hosts[0].variables['lakehouse_cluster']}: listed; "
    assert line.startswith(first), line
    facts, _, following = line.removeprefix(first).partition("; next: ")
    assert following == f".venv/bin/lakehouse backup verify -i {path}"
    number, *names = facts.split(", ")
    assert number == counted(len(names), "backup")
    return names


def verify(path: str, *options: str) -> Said:
    return look(VERIFY[0], path, *VERIFY[1:], *options, seconds=VERIFY_SECONDS)


def folder(keeper: Machine, name: str) -> str:
    return f"{keeper.variable('lakehouse_backup_dir')}/backups/{name}"


def test_a_backup_says_when_it_was_made_and_of_how_much(made: Said, name: str, cluster: Inventory) -> None:
    last = made.out.splitlines()[-1]
    word = cluster.hosts[0].variables["lakehouse_cluster"]
    assert last.startswith(f"backup {word}: done; {name}, T0 ")
    assert " tables, " in last
    assert last.endswith(f"next: .venv/bin/lakehouse status -i {cluster.path}")
    assert [secret for secret in secrets(cluster) if secret in made.out] == []


@pytest.mark.longdrill
def test_one_of_the_smoke_lakehouse_takes_a_minute_at_most(path: str, made: Said, name: str) -> None:
    known = json.loads(look("runs", path, "--json", seconds=15).out)["runs"]
    [seconds] = [one["seconds"] for one in known if one["run"] == run_of(made)]
    assert seconds <= BACKUP_SECONDS, name


def test_the_list_names_it_first(path: str, name: str, cluster: Inventory) -> None:
    names = listed(path, cluster)
    assert names[0] == name
    assert names == sorted(set(names), reverse=True)


def test_its_manifest_ties_every_table_with_rows_and_checksum(name: str, keeper: Machine) -> None:
    manifest = json.loads(keeper.run("cat %s", f"{folder(keeper, name)}/manifest.json"))
    assert manifest["database"]["at"] < manifest["hdfs"]["at"]
    assert manifest["tables"]
    for table in manifest["tables"]:
        assert table["format"] in {"iceberg", "delta", "hive", "view"}
        if table["format"] != "view":
            assert table["unknown"] == "", table
            assert table["metadata"], table
            assert isinstance(table["rows"], int), table
            assert isinstance(table["checksum"], int), table
            # The sum of a number of each row, of the columns that can be compared.
            assert bool(table["checksum"]) is bool(table["rows"] and table["columns"]), table
    assert any(table["rows"] for table in manifest["tables"])


def test_what_it_encrypts_can_be_read_with_the_passphrase_alone(
    name: str, keeper: Machine, cluster: Inventory
) -> None:
    """By the line of the runbooks, which asks for it: without a terminal it reads what comes in."""
    texts = [(pages.RUNBOOKS / page).read_text(encoding="utf-8") for page in ("backup.md", "restore.md")]
    [line] = {found for text in texts for found in re.findall(r"openssl enc [^`\n]+", text)}
    word = str(cluster.hosts[0].variables["lakehouse_backup_passphrase"])
    with keeper.scratch("configuration-of-tests") as scratch:
        keeper.run("cp %s %s", f"{folder(keeper, name)}/configuration.enc", scratch)
        keeper.run("cd %s && printf '%%s\\n' %s | setsid --wait sh -c %s", scratch, word, line)
        written = keeper.run("cd %s && find . -type f", scratch).splitlines()
        assert "./versions.yml" in written
        [inventory] = [path for path in written if path.endswith("/hosts.yml")]
        text = (cluster.path / "hosts.yml").read_text(encoding="utf-8")
        assert keeper.run("cat %s", f"{scratch}/{inventory}") == text.rstrip()
    assert keeper.run("grep -rlF %s %s %s || true", word, folder(keeper, name), "/etc/lakehouse-backup") == ""


def test_a_good_backup_is_good(path: str, name: str) -> None:
    said = verify(path, name)
    assert said.code == 0, said.out + said.err
    assert f"verify {name}: good; " in said.out


def test_status_shows_its_age(path: str, name: str) -> None:
    said = look("status", path, "--json", seconds=15)
    assert json.loads(said.out)["cluster"]["backup"]["value"]["good"], name


# -- Who may do what with it --

KEYS = "/etc/ssh/lakehouse"
ARCHIVER, KEEPER = "lakehouse-archive", "lakehouse-backup"


class Login:
    """SSH from PostgreSQL's host to the one that keeps backups, with PostgreSQL's key."""

    def __init__(self, cluster: Inventory, machines: Machines, keeper: Machine) -> None:
        [database] = cluster.group("postgresql")
        [kept] = [host for host in cluster.hosts if host.name == keeper.name]
        self.machine, self._address = machines[database.name], kept.address
        port = kept.variables.get("ansible_port", 22)
        self._options = (
            f"-oBatchMode=yes -oStrictHostKeyChecking=yes -oUserKnownHostsFile={KEYS}/postgres/known_hosts"
            f" -oPort={port} -oConnectTimeout=10 -oIdentitiesOnly=yes -i {KEYS}/postgres/key"
        )

    def sftp(self, command: str, user: str = ARCHIVER) -> tuple[int, str]:
        """Run one command of SFTP; return how it ended and what it printed."""
        line = f"runuser -u postgres -- sftp -q {self._options} -b - {user}@{self._address}"
        return self._ended(f"printf '%s\\n' {shlex.quote(command)} | {line}")

    def exec(self, command: str, *options: str, user: str = ARCHIVER) -> tuple[int, str]:
        """Run a command by SSH; return how it ended and what it printed."""
        words = f"{' '.join(options)} {self._options} {user}@{self._address}"
        return self._ended(f"timeout 20 runuser -u postgres -- ssh -n {words} {command}")

    def _ended(self, line: str) -> tuple[int, str]:
        # The connection to the machine is SSH, too, whose own failure has the same code.
        script = f'cd /; {{ {line}; }} 2>&1; code=$?; echo; echo "$code"'
        output, _, code = self.machine.run("sh -c %s", script).rpartition("\n")
        return int(code), output


@pytest.fixture(scope="module")
def login(cluster: Inventory, machines: Machines, keeper: Machine, name: str) -> Login:
    assert name
    return Login(cluster, machines, keeper)


def test_the_user_of_postgresqls_repository_sees_that_alone(login: Login) -> None:
    code, listing = login.sftp("ls -1 /")
    assert code == 0, listing
    assert {line.strip() for line in listing.splitlines() if "sftp>" not in line} == {"/archive", "/backup"}
    code, listing = login.sftp("ls -1 /backup/lakehouse")
    assert code == 0, listing


def test_it_reaches_nothing_of_the_keepers_and_writes_nowhere_else(
    login: Login, keeper: Machine, name: str
) -> None:
    place, mark = str(keeper.variable("lakehouse_backup_dir")), f"lakehouse-{uuid4().hex}"
    before = keeper.run("find %s -maxdepth 2 | sort", place)
    for command in (
        f"ls {place}/backups",
        "ls ../../backups",
        "ls /var/lib/lakehouse-backup",
        f"get {place}/backups/{name}/manifest.json /dev/null",
        f"get {KEYS}/{KEEPER}/key /dev/null",
        f"put /etc/hostname /{mark}",
        f"put /etc/hostname /../{mark}",
        f"rename /backup /{mark}",
        f"rm {place}/configuration.enc",
        "rmdir /archive",
        "chmod 777 /",
    ):
        code, output = login.sftp(command)
        assert code, f"{command}: {output}"
    assert keeper.run("find %s -maxdepth 2 | sort", place) == before


def test_it_has_no_shell_no_command_and_no_forwarding(login: Login) -> None:
    for command, options in (("id", ()), ("", ("-tt",)), ("/bin/sh", ("-tt",))):
        code, output = login.exec(command, *options)
        assert code, output
        assert "uid=" not in output
    code, output = login.exec("", "-N", "-oExitOnForwardFailure=yes", "-R 127.0.0.1:0:127.0.0.1:22")
    # That of ssh; timeout has another one.
    assert code == 255, output


def test_nobody_logs_in_as_the_keeper(login: Login) -> None:
    assert login.sftp("ls /", KEEPER)[0]
    code, output = login.exec("id", user=KEEPER)
    assert code, output
    assert "Permission denied" in output


def test_keys_and_what_lets_them_in_are_roots(login: Login, keeper: Machine) -> None:
    for machine, user in ((login.machine, "postgres"), (keeper, KEEPER)):
        found = machine.run("find %s -printf '%%U %%m %%P\\n' | sort -k3", f"{KEYS}/{user}").splitlines()
        owners = {line.split(" ", 2)[2]: line.split(" ", 2)[:2] for line in found}
        number = machine.run("id -u %s", user)
        assert owners[""] == ["0", "755"]
        assert owners.pop("key") == [number, "600"]
        assert {owner for owner, _ in owners.values()} == {"0"}
    for machine, home in ((login.machine, "/var/lib/postgresql"), (keeper, "/var/lib/lakehouse-backup")):
        assert machine.run("ls -A %s/.ssh 2>/dev/null || true", home) == ""


def test_each_of_the_two_users_owns_its_own(keeper: Machine) -> None:
    place = str(keeper.variable("lakehouse_backup_dir"))
    for path, owner in (("", "root"), ("postgresql", "root"), ("configuration.enc", KEEPER)):
        assert keeper.run("stat -c %%U %s", f"{place}/{path}") == owner
    others = "find %s %s ! -user %s -print -quit"
    assert keeper.run(others, f"{place}/postgresql/archive", f"{place}/postgresql/backup", ARCHIVER) == ""
    assert keeper.run(others, f"{place}/backups", f"{place}/state", KEEPER) == ""
    for user, folder in ((ARCHIVER, "backups"), (KEEPER, "postgresql/archive")):
        assert keeper.shell.run("cd / && runuser -u %s -- ls %s", user, f"{place}/{folder}").rc


@contextmanager
def sshd_setting(machine: Machine, text: str) -> Iterator[None]:
    """A setting of an administrator's before all others; sshd itself is not told of it."""
    path = "/etc/ssh/sshd_config.d/00-tests.conf"
    machine.run("printf '%%s\\n' %s > %s", text, path)
    try:
        yield
    finally:
        machine.run("rm -f %s", path)


@pytest.mark.longdrill
def test_an_sshd_that_reads_other_keys_is_said(path: str, login: Login) -> None:
    setting = "Match User postgres\n    AuthorizedKeysFile .ssh/authorized_keys\nMatch all"
    with sshd_setting(login.machine, setting):
        refused = Ansible(path).playbook("site", "--tags", "backup")
    assert refused.code, refused.text
    assert (
        f"{login.machine.name}: sshd has 'authorizedkeysfile .ssh/authorized_keys' for postgres"
        in refused.text
    )
    again = Ansible(path).playbook("site", "--tags", "backup")
    assert again.code == 0, again.text


def test_a_home_with_a_link_gives_nothing_away(path: str, keeper: Machine) -> None:
    """An account that put a link where root once made a folder."""
    with keeper.scratch("link-of-tests") as target:
        before = keeper.run("stat -c '%%U %%G %%a' %s", target)
        home = "/var/lib/lakehouse-backup"
        link = f"rm -rf {home}/.ssh && ln -s {target} {home}/.ssh"
        keeper.run("runuser -u %s -- sh -c %s", KEEPER, link)
        try:
            done = Ansible(path).playbook("site", "--tags", "backup")
            assert done.code == 0, done.text
            assert keeper.run("stat -c '%%U %%G %%a' %s", target) == before
            assert keeper.run("ls -A %s", target) == ""
        finally:
            keeper.run("rm -f /var/lib/lakehouse-backup/.ssh")


@pytest.fixture
def damaged(path: str, name: str, keeper: Machine) -> Iterator[str]:
    """A file of the copy with one byte more, in this backup alone: others link to the same file."""
    files = f"{folder(keeper, name)}/files"
    victim = keeper.run("find %s -name '*.parquet' -size +0 | sort | head -n 1", files)
    keeper.run("mv %s %s && (cat %s; printf x) > %s", victim, f"{victim}.kept", f"{victim}.kept", victim)
    try:
        yield str(Path(victim).relative_to(files))
    finally:
        keeper.run("mv %s %s", f"{victim}.kept", victim)
        again = verify(path, name)
        assert again.code == 0, again.out + again.err
        assert " damaged" not in look("status", path, seconds=15).out


@pytest.fixture
def untouched(
    path: str, cluster: Inventory, machines: Machines, namenode: NameNode, metastore: Metastore
) -> Iterator[None]:
    """Nothing was changed when a test is over: no process, table, file or run is another one."""

    def state() -> Any:
        tables = {
            (database, name): metastore.call("get_table", database, name)
            for database in metastore.call("get_all_databases")
            for name in metastore.call("get_all_tables", database)
        }
        root = cluster.hosts[0].variables["lakehouse_root"]
        # Drivers that wait for work write of themselves below spark.
        files = {file.path: file.bytes for file in namenode.files(root)}
        return {
            "processes": {
                (one.group, one.unit): changing.starts(cluster, machines, one.unit, one.group)
                for one in placements()
            },
            "tables": {key: (table.parameters, table.sd.location) for key, table in tables.items()},
            "files": {path: size for path, size in files.items() if not path.startswith(f"{root}/spark/")},
            "runs": json.loads(look("runs", path, "--json", seconds=15).out)["runs"],
        }

    before = state()
    assert before["tables"]
    yield
    assert state() == before


@pytest.mark.usefixtures("untouched")
def test_a_damaged_backup_is_found_and_refused(
    path: str, name: str, damaged: str, cluster: Inventory, keeper: Machine
) -> None:
    said = verify(path, name)
    assert said.code == 2, said.out
    assert f"files/{damaged} is not as it was written" in said.out
    assert listed(path, cluster)[0] == f"{name} (damaged)"
    assert re.search(r" newer damaged| none good, 1 damaged", look("status", path, seconds=15).out)
    found = look("doctor", path, seconds=DOCTOR_SECONDS)
    assert f"FAIL backup.damaged {keeper.name}: {name}, the newest backup, is damaged" in found.out
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
    lines = look("runs", path, seconds=15).out.splitlines()
    shown = next(line for line in lines if line.startswith(f"{run_of(made)} "))
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
    assert (said.code, said.out) == (64, "")
    [line] = said.err.splitlines()
    assert what in line
    assert "; next: " in line


@contextmanager
def disk(keeper: Machine, place: str, options: str) -> Iterator[str]:
    """A disk of the keeper's user over a folder, whose files lie below it meanwhile; the folder is given."""
    whose = "mode=700,uid=$(id -u lakehouse-backup),gid=$(id -g lakehouse-backup)"
    keeper.run(f"mount -t tmpfs -o {options},{whose} lakehouse-disk %s", place)
    try:
        yield place
    finally:
        keeper.run("umount --lazy %s", place)
        keeper.shell.run("systemctl reset-failed lakehouse-backup")


def small_disk(keeper: Machine) -> AbstractContextManager[str]:
    """A disk of 64 MiB in the place of backups."""
    return disk(keeper, str(keeper.variable("lakehouse_backup_dir")), "size=64m")


def test_a_full_disk_is_said_and_leaves_nothing(
    path: str, name: str, keeper: Machine, cluster: Inventory, namenode: NameNode
) -> None:
    variables = cluster.hosts[0].variables
    snapshots, names = f"{variables['lakehouse_root']}/.snapshot", listed(path, cluster)
    before = namenode.names(snapshots)
    with small_disk(keeper) as place:
        said = look("backup", path, seconds=MADE_SECONDS)
        left = keeper.run("ls %s", f"{place}/backups")
    assert said.code == 1, said.out + said.err
    _, last = said.out.splitlines()
    why = f"backup {variables['lakehouse_cluster']}: failed; {keeper.name}: no backup: {place} has "
    assert last.startswith(why), last
    assert re.search(r" has \d+ MiB left and needs \d+ MiB, ", last), last
    assert last.endswith(f"; next: .venv/bin/lakehouse doctor -i {path}"), last
    assert left == ""
    assert name in names
    assert (listed(path, cluster), namenode.names(snapshots)) == (names, before)


@pytest.mark.longdrill
def test_a_backup_that_is_due_to_verify_finds_a_damaged_file_in_all_that_share_it_and_fetches_it_again(
    path: str, name: str, keeper: Machine, cluster: Inventory
) -> None:
    place, names = str(keeper.variable("lakehouse_backup_dir")), listed(path, cluster)
    if len(names) == 1:
        second = look("backup", path, seconds=MADE_SECONDS)
        assert second.code == 0, second.out + second.err
        names = listed(path, cluster)
    mark = f"{place}/state/verified.json"
    found = "find %s -name '*.parquet' -size +0 -links +1 -printf '%%n %%P\\n' | sort -rn | head -n 1"
    links, file = keeper.run(found, f"{folder(keeper, names[0])}/files").split(" ", 1)
    victim = f"{folder(keeper, names[0])}/files/{file}"
    with keeper.scratch("damage-of-tests") as scratch:
        keeper.run(
            "cp %s %s && printf X | dd of=%s bs=1 seek=5 conv=notrunc status=none", victim, scratch, victim
        )
        try:
            keeper.run("echo '{\"at\": 0}' > %s && chown lakehouse-backup %s", mark, mark)
            said = look("backup", path, seconds=MADE_SECONDS)
            assert said.code == 0, said.out + said.err
            after = listed(path, cluster)
            good = verify(path, named(said))
            shown = look("doctor", path, seconds=DOCTOR_SECONDS).out
        finally:
            # In its place, so that it is whole for all.
            keeper.run("cat %s > %s", f"{scratch}/{Path(file).name}", victim)
            for each in [one.removesuffix(" (damaged)") for one in listed(path, cluster)]:
                again = verify(path, each)
                assert again.code == 0, again.out
    assert (after[0], good.code) == (named(said), 0), good.out
    assert sum(one.endswith(" (damaged)") for one in after) >= min(int(links), len(after) - 1)
    assert name in names
    assert "backup.damaged" not in shown
    assert json.loads(keeper.run("cat %s", mark))["at"] > 0


def disk_that_fills(keeper: Machine) -> AbstractContextManager[str]:
    """A disk with room for bytes, and for 40 files: it fills in the middle of a copy, wherever that is."""
    return disk(keeper, f"{keeper.variable('lakehouse_backup_dir')}/backups", "size=1g,nr_inodes=40")


@pytest.mark.longdrill
def test_a_disk_that_fills_on_the_way_is_said_and_the_next_backup_works(
    path: str, name: str, keeper: Machine, cluster: Inventory, namenode: NameNode
) -> None:
    variables = cluster.hosts[0].variables
    snapshots, names = f"{variables['lakehouse_root']}/.snapshot", listed(path, cluster)
    before = namenode.names(snapshots)
    with disk_that_fills(keeper) as place:
        said = look("backup", path, seconds=MADE_SECONDS)
        left = keeper.run("ls %s", place)
    assert said.code == 1, said.out + said.err
    *_, last = said.out.splitlines()
    why = f"{variables['lakehouse_backup_dir']} was full before the copy was whole: No space left on device; "
    assert f": failed; {keeper.name}: no backup: {why}" in last
    assert last.endswith(f"; next: .venv/bin/lakehouse doctor -i {path}"), last
    assert left == ""
    assert (name in names, listed(path, cluster), namenode.names(snapshots)) == (True, names, before)
    again = look("backup", path, seconds=MADE_SECONDS)
    assert again.code == 0, again.out + again.err
    assert listed(path, cluster)[0] == named(again)
