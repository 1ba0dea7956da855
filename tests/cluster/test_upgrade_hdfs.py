"""`lakehouse upgrade hadoop`: HDFS takes another version while tables are written, and can go back."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest

from lakehouse.model.inventory import Inventory
from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests.cluster import bills, changing, stream
from tests.cluster.changing import Verb
from tests.cluster.looking import look
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible
from tests.cluster.stream import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.drill, pytest.mark.longdrill]

# Each format has rows in many files.
_MADE = """
CREATE DATABASE {db};
CREATE TABLE iceberg.{db}.ice USING iceberg AS SELECT id, uuid() AS word FROM range(20000);
CREATE TABLE {db}.delta USING delta AS SELECT id, uuid() AS word FROM range(20000);
CREATE TABLE {db}.hive STORED AS PARQUET AS SELECT id, uuid() AS word FROM range(20000);
CREATE TABLE iceberg.{db}.stream (row INT) USING iceberg;
"""
_SUM = "SELECT '{table}', count(*), bit_xor(xxhash64(id, word)) FROM {table}"


@dataclass(frozen=True)
class Storage:
    """HDFS of a cluster, with a database of a table of each format, and one that is written all the time."""

    path: str
    cluster: Inventory
    machines: Machines
    namenode: NameNode
    db: str

    def ask(self, statements: str) -> list[list[str]]:
        said = look("sql", self.path, "--engine", "spark", "--csv", "-f", "-", seconds=600, given=statements)
        assert said.code == 0, said
        return [line.split(",") for line in said.out.splitlines()[1:]]

    def sums(self) -> list[list[str]]:
        """Rows and checksum of each table."""
        names = (f"iceberg.{self.db}.ice", f"{self.db}.delta", f"{self.db}.hive")
        found = sorted(self.ask(" UNION ALL ".join(_SUM.format(table=name) for name in names)))
        assert len(found) == len(names)
        return found

    def writing(self) -> AbstractContextManager[Stream]:
        """Commit rows, which each stream counts from 1, while the block runs."""
        self.ask(f"DELETE FROM iceberg.{self.db}.stream")  # noqa: S608
        [client, *_] = self.cluster.group("clients")
        return stream.commits(self.machines[client.name], f"iceberg.{self.db}.stream")

    def assert_whole(self, written: Stream) -> None:
        """Every commit that was answered is there, once; HDFS in safe mode takes none, and says so."""
        found = self.ask(f"SELECT row FROM iceberg.{self.db}.stream")  # noqa: S608
        written.assert_whole([int(row) for (row,) in found])
        assert [fault for fault in written.faults if "SafeModeException" not in fault] == []

    def releases(self) -> set[str]:
        """The releases that hosts use."""
        place = f"{self.cluster.hosts[0].variables['lakehouse_install_dir']}/hadoop/current"
        return {machine.run("readlink %s", place) for machine in self.machines.values()}

    def versions(self) -> set[str]:
        """What the DataNodes say that they are."""
        return {str(row["version"]) for row in self.namenode.members().values()}


@pytest.fixture(scope="module")
def storage(verb: Verb, cluster: Inventory, machines: Machines, namenode: NameNode) -> Iterator[Storage]:
    found = Storage(verb.path, cluster, machines, namenode, f"kit_upgrade_{secrets.token_hex(3)}")
    found.ask(_MADE.format(db=found.db))
    yield found
    found.ask(f"DROP DATABASE {found.db} CASCADE")


@pytest.fixture(autouse=True)
def as_it_was(verb: Verb) -> Iterator[None]:
    """What a drill leaves is what versions.yml says, and final."""
    yield
    for words in (("hadoop",), ("hadoop", "--finalize")):
        done = verb.run("upgrade", *words, "--yes")
        assert done.returncode == 0, done


def upgrade(verb: Verb, *words: str, ending: int = 0) -> str:
    """Run the verb and return its last line."""
    done = verb.run("upgrade", *words, "--force", "--yes")
    print(done.stdout, done.stderr, sep="\n")  # noqa: T201 -- what docs/operations/upgrade.md says
    assert done.returncode == ending, done
    return done.stdout.splitlines()[-1]


def unfinished(verb: Verb) -> bool:
    """Whether both verbs that look say in one line that nothing is final."""
    said = {name: verb.run(name).stdout for name in ("status", "doctor")}
    found = {
        name: [line for line in text.splitlines() if "--finalize" in line] for name, text in said.items()
    }
    assert len({bool(lines) for lines in found.values()}) == 1, found
    return bool(found["doctor"])


def test_another_version_comes_in_while_tables_are_written_and_stays(
    verb: Verb, storage: Storage, ansible: Ansible
) -> None:
    """From what versions.yml has to 3.4.2, and final; then as the runbook has it, from there."""
    old, sums = storage.releases(), storage.sums()
    for number, words in enumerate((("hadoop", "--bill", bills.hadoop()), ("hadoop",))):
        with storage.writing() as written:
            last = upgrade(verb, *words)
        print(written)  # noqa: T201 -- as above
        assert "HDFS did not answer for " in last, last
        assert "lakehouse upgrade hadoop --finalize" in last, last
        assert storage.releases().isdisjoint(old) is (number == 0)
        assert len(storage.versions()) == 1
        storage.assert_whole(written)
        assert storage.sums() == sums
        assert unfinished(verb)
        if number:
            converged = ansible.playbook("site")
            assert (converged.code, converged.changed) == (0, 0), converged
            assert unfinished(verb)
        assert upgrade(verb, "hadoop", "--finalize").startswith("upgrade hadoop: done; HDFS is finalized, ")
        assert not unfinished(verb)
        changing.healed(storage.namenode)
    assert storage.releases() == old


def test_it_goes_back_after_a_run_that_was_killed_and_what_was_written_since_stays(
    verb: Verb, storage: Storage, ansible: Ansible
) -> None:
    old, [before] = storage.releases(), storage.versions()
    process = verb.started("upgrade", "hadoop", "--bill", bills.hadoop(), "--force", "--yes")
    wait_for("one host has it", lambda: storage.releases() != old, seconds=changing.SECONDS)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    resumed = verb.run("resume", "--yes")
    assert resumed.returncode == 0, resumed
    assert before not in storage.versions()
    refused = ansible.playbook("site", "--tags", "hdfs")
    assert refused.code != 0
    assert "next: .venv/bin/lakehouse upgrade hadoop" in refused.text
    assert before not in storage.versions()
    with storage.writing() as written:
        pass
    last = upgrade(verb, "hadoop")
    assert storage.releases() == old
    assert "lakehouse doctor" in last, last
    assert storage.versions() == {before}
    storage.assert_whole(written)
    assert not unfinished(verb)
    changing.healed(storage.namenode)
