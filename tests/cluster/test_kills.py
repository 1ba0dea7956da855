"""Killed at any moment: whatever a verb or a playbook has left undone, the next run completes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from random import Random

import pytest

from lakehouse.inventory import Inventory
from lakehouse.run import ROOT, program
from testbed.namenode import NameNode
from tests.cluster import bills, changing
from tests.cluster.changing import Verb
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.drill, pytest.mark.longdrill]

# In place of the cluster's name.
CLUSTER = "CLUSTER"
# A seed chooses what is killed and when, so that a failure comes again.
SEEDS = range(10)


@dataclass(frozen=True)
class Work:
    """A verb that changes the cluster, and after how many seconds at the most it is killed."""

    words: tuple[str, ...]
    seconds: float


VERBS = (
    Work(("restart", "datanode", "--yes"), 20),
    Work(("restart", "trino", "--yes"), 30),
    Work(("restart", "metastore", "--yes"), 10),
    Work(("backup",), 45),
    Work(("restore", "--confirm", CLUSTER), 90),
)
# Each has another release than versions.yml, and the way there and back takes some minutes.
UPGRADES = (("iceberg", bills.iceberg), ("hadoop", bills.hadoop))
UPGRADE_SECONDS = 240
SITE_SECONDS = 60
# No process knows the key, and each one that reads the file restarts for it.
KEY = "kit.killed"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_verb_is_completed_by_resume(verb: Verb, seed: int, namenode: NameNode, cluster: Inventory) -> None:
    chance = Random(seed)  # noqa: S311 -- no secret
    work = chance.choice(VERBS)
    name = str(cluster.hosts[0].variables["lakehouse_cluster"])
    typed = [name if word == CLUSTER else word for word in work.words]
    changing.complete(verb, typed, chance.uniform(0, work.seconds))
    changing.healed(namenode)


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_an_upgrade_is_completed_by_resume_there_and_back(verb: Verb, seed: int, namenode: NameNode) -> None:
    chance = Random(seed)  # noqa: S311 -- no secret
    component, bill = UPGRADES[seed % len(UPGRADES)]
    for way in (["--bill", bill()], []):
        words = ["upgrade", component, *way, "--force", "--yes"]
        changing.complete(verb, words, chance.uniform(0, UPGRADE_SECONDS))
        # What was killed before it began is done by now, and so is what was not.
        again = verb.run(*words)
        assert "there is nothing to do" in again.stdout.splitlines()[-1], again
    changing.healed(namenode)


@pytest.mark.parametrize("seed", SEEDS[:3])
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
