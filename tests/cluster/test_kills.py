"""Killed at any moment: whatever a verb or a playbook has left undone, the next run completes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lakehouse.backup.create import UNIT
from lakehouse.model import profile
from lakehouse.model.inventory import Inventory
from lakehouse.run import ROOT, program
from suites.testbed.engines.trino import Trino
from suites.testbed.namenode import NameNode
from tests.cluster import bills, changing, kills
from tests.cluster.changing import Verb
from tests.cluster.fingerprints import fingerprints
from tests.cluster.kills import FEW_SHARES, LEAST, SHARES, Kills
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible
from tests.cluster.test_remove import running

pytestmark = [pytest.mark.cluster, pytest.mark.drill, pytest.mark.longdrill]

Note = Callable[[str, object], None]
# In place of the cluster's name.
CLUSTER = "CLUSTER"
VERBS = (
    ("restart", "datanode", "--yes"),
    ("restart", "trino", "--yes"),
    ("restart", "metastore", "--yes"),
    ("restore", "--confirm", CLUSTER),
)
# Each has another release than versions.yml; the way there and back takes some minutes, of Hadoop twelve.
UPGRADES = {"iceberg": bills.iceberg, "hadoop": bills.hadoop}
# No process knows the key, and each one that reads the file restarts for it.
KEY = "kit.killed"
QUIET: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)


def complete(tries: Kills, words: list[str], trino: Trino, record_property: Note) -> None:
    """Kill a verb at every share of a run; all rows are there after each, and enough of the kills land."""
    before = fingerprints(trino)
    seconds = tries.measured(words)
    for share in SHARES:
        seconds = tries.at(share, seconds, words)
        assert fingerprints(trino) == before
    record_property("note", f"{tries.enough()}, the last runs lasted {seconds:.0f} s")


def there_and_back(  # noqa: PLR0913, PLR0917 -- one for both kinds of ways
    tries: tuple[Kills, Kills],
    ways: tuple[list[str], list[str]],
    shares: Sequence[float],
    trino: Trino,
    record_property: Note,
    is_completed: Callable[[list[str]], None] = lambda _: None,
) -> None:
    """Kill a verb that goes one way and back, by turns; all rows are there after each."""
    before = fingerprints(trino)
    seconds = [kills.measured(way) for kills, way in zip(tries, ways, strict=True)]
    for number, share in enumerate(shares):
        turn = number % len(ways)
        seconds[turn] = tries[turn].at(share, seconds[turn], ways[turn])
        is_completed(ways[turn])
        assert fingerprints(trino) == before
    record_property("note", f"there: {tries[0].enough()}; back: {tries[1].enough()}")


@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(words[:2]))
def test_a_verb_is_completed_by_resume(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb,
    cluster: Inventory,
    namenode: NameNode,
    trino: Trino,
    words: tuple[str, ...],
    record_property: Note,
) -> None:
    name = str(cluster.hosts[0].variables["lakehouse_cluster"])
    typed = [name if word == CLUSTER else word for word in words]
    complete(Kills(verb), typed, trino, record_property)
    changing.healed(namenode)


@pytest.mark.parametrize("place", ["here", "host"])
def test_a_backup_is_completed_by_the_next(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb, cluster: Inventory, machines: Machines, trino: Trino, place: str, record_property: Note
) -> None:
    """Its work is a unit of a host, which goes on when the verb is killed, and is killed there itself."""
    begun, kill = kills.unit(machines[str(cluster.hosts[0].variables["lakehouse_backup_host"])], UNIT)
    tries = Kills(verb, begun=begun, kill=kill if place == "host" else kills.here)
    complete(tries, ["backup"], trino, record_property)
    verified = verb.run("backup", "verify")
    assert verified.returncode == 0, verified


@pytest.mark.parametrize(
    ("component", "shares"), [("iceberg", SHARES), ("hadoop", FEW_SHARES)], ids=["iceberg", "hadoop"]
)
def test_an_upgrade_is_completed_by_resume_there_and_back(  # noqa: PLR0913, PLR0917 -- fixtures
    verb: Verb,
    namenode: NameNode,
    trino: Trino,
    component: str,
    shares: tuple[float, ...],
    record_property: Note,
) -> None:
    words = ["upgrade", component, "--force", "--yes"]

    def is_completed(way: list[str]) -> None:
        again = verb.run(*way)
        assert "there is nothing to do" in again.stdout.splitlines()[-1], again

    ways = ([*words, "--bill", UPGRADES[component]()], words)
    there_and_back((Kills(verb), Kills(verb)), ways, shares, trino, record_property, is_completed)
    changing.healed(namenode)


def test_a_maintenance_is_completed_by_resume_there_and_back(
    verb: Verb, cluster: Inventory, namenode: NameNode, trino: Trino, record_property: Note
) -> None:
    host = changing.replaceable(cluster)
    confirmed = ("--confirm", str(host.variables["lakehouse_cluster"]))
    ways = (
        ["maintenance", host.name, "--for", "2h", *confirmed],
        ["maintenance", host.name, "--end", "--yes"],
    )
    tries = (Kills(verb, answer=confirmed), Kills(verb))
    there_and_back(tries, ways, SHARES, trino, record_property)
    changing.healed(namenode)


def test_a_removal_is_completed_by_resume(
    verb: Verb, machines: Machines, ansible: Ansible, monkeypatch: pytest.MonkeyPatch, record_property: Note
) -> None:
    """Flink goes with the profile that has it, and comes back before the next kill."""
    if not running(machines, "flink-*"):
        pytest.skip("this inventory has no Flink")
    tries, words, seconds = Kills(verb), ["remove", "flink", "--yes"], 0.0
    for share in (None, *SHARES):
        with monkeypatch.context() as small:
            small.setenv(profile.VARIABLE, profile.CORE)
            seconds = tries.at(share, seconds, words) if share else tries.measured(words)
        assert running(machines, "flink-*") == []
        converged = ansible.playbook("site", "--tags", "flink")
        assert converged.code == 0, converged
    record_property("note", f"{tries.enough()}, the last runs lasted {seconds:.0f} s")


def test_a_playbook_is_completed_by_the_next(
    ansible: Ansible, cluster: Inventory, namenode: NameNode, record_property: Note
) -> None:
    own = cluster.group("datanodes")[0].variables.get("hdfs_datanode_hdfs_site", {})
    landed, seconds = [], 0.0
    for number, share in enumerate((None, *SHARES)):
        setting = json.dumps({"hdfs_datanode_hdfs_site": {**own, KEY: str(number)}})
        argv = [program("ansible-playbook"), "-i", ansible.inventory, "playbooks/site.yml", "-e", setting]
        process, began = subprocess.Popen(argv, cwd=ROOT, start_new_session=True, **QUIET), time.monotonic()
        try:
            code = process.wait(timeout=share and share * seconds)
        except subprocess.TimeoutExpired:
            # With all that it has started, as when the control machine is switched off.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            landed.append(share)
        else:
            assert code == 0, argv
            seconds = time.monotonic() - began
        done = ansible.playbook("site")
        assert done.code == 0, done
    assert len(landed) >= LEAST, landed
    record_property("note", f"{len(landed)} of {len(SHARES)} kills landed, in runs of {seconds:.0f} s")
    changing.healed(namenode)


def test_nothing_of_it_is_left(verb: Verb, ansible: Ansible) -> None:
    healthy = verb.run("doctor")
    assert healthy.returncode == 0, healthy
    again = ansible.playbook("site")
    assert (again.code, again.changed) == (0, 0), again
    verified = verb.run("smoke")
    assert verified.returncode == 0, verified
