"""Killed at any moment: whatever a verb or a playbook has left undone, the next run completes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from random import Random

import pytest

from lakehouse.inventory import Inventory
from lakehouse.run import ROOT, program
from ops.backup.making import UNIT
from testbed.engines.trino import Trino
from testbed.namenode import NameNode
from tests.cluster import bills, changing, kills
from tests.cluster.changing import Verb
from tests.cluster.fingerprints import fingerprints
from tests.cluster.kills import FEW_SHARES, SHARES, Kills
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.drill, pytest.mark.longdrill]

Note = Callable[[str, object], None]
# A seed chooses when a playbook is killed, so that a failure comes again.
SEEDS = range(3)
# In place of the cluster's name.
CLUSTER = "CLUSTER"
VERBS = (
    ("restart", "datanode", "--yes"),
    ("restart", "trino", "--yes"),
    ("restart", "metastore", "--yes"),
    ("restore", "--confirm", CLUSTER),
)
# Each has another release than versions.yml; the way there and back takes some minutes, of Hadoop twelve.
UPGRADES = {"iceberg": (bills.iceberg, SHARES), "hadoop": (bills.hadoop, FEW_SHARES)}
SITE_SECONDS = 60
# No process knows the key, and each one that reads the file restarts for it.
KEY = "kit.killed"


def complete(tries: Kills, words: list[str], trino: Trino, record_property: Note) -> None:
    """Kill a verb at every share of a run; all rows are there after each, and enough of the kills land."""
    before = fingerprints(trino)
    seconds = tries.measured(words)
    for share in SHARES:
        seconds = tries.at(share, seconds, words)
        assert fingerprints(trino) == before
    record_property("note", f"{tries.enough()}, the last runs lasted {seconds:.0f} s")


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


@pytest.mark.parametrize("component", UPGRADES)
def test_an_upgrade_is_completed_by_resume_there_and_back(
    verb: Verb, namenode: NameNode, trino: Trino, component: str, record_property: Note
) -> None:
    (bill, shares), before, tries = UPGRADES[component], fingerprints(trino), Kills(verb)
    ways = [["upgrade", component, *way, "--force", "--yes"] for way in (["--bill", bill()], [])]
    seconds = [tries.measured(way) for way in ways]
    for number, share in enumerate(shares):
        way = number % len(ways)
        seconds[way] = tries.at(share, seconds[way], ways[way])
        again = verb.run(*ways[way])
        assert "there is nothing to do" in again.stdout.splitlines()[-1], again
    assert fingerprints(trino) == before
    record_property("note", tries.enough())
    changing.healed(namenode)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_playbook_is_completed_by_the_next(
    ansible: Ansible, cluster: Inventory, seed: int, namenode: NameNode
) -> None:
    chance = Random(seed)  # noqa: S311 -- no secret
    own = cluster.group("datanodes")[0].variables.get("hdfs_datanode_hdfs_site", {})
    setting = json.dumps({"hdfs_datanode_hdfs_site": {**own, KEY: str(seed)}})
    argv = [program("ansible-playbook"), "-i", ansible.inventory, "playbooks/site.yml", "-e", setting]
    process = subprocess.Popen(
        argv,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=chance.uniform(0, SITE_SECONDS))
    except subprocess.TimeoutExpired:
        # With all that it has started, as when the control machine is switched off.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = ansible.playbook("site")
    assert done.code == 0, done
    changing.healed(namenode)


def test_nothing_of_it_is_left(verb: Verb, ansible: Ansible) -> None:
    healthy = verb.run("doctor")
    assert healthy.returncode == 0, healthy
    again = ansible.playbook("site")
    assert (again.code, again.changed) == (0, 0), again
    verified = verb.run("smoke")
    assert verified.returncode == 0, verified
