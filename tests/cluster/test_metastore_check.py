"""`lakehouse metastore check`: each address answers, and what is behind a silent one is named."""

from __future__ import annotations

import pytest

from lakehouse.model.inventory import Inventory
from tests.cluster.changing import Verb, answers, stopped
from tests.cluster.machines import Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone]


def test_a_healthy_metastore_answers_everything(verb: Verb) -> None:
    said = verb.json("metastore", "check")
    assert said["outcome"] == "OK", said
    [one] = said["endpoints"]
    assert one["failed"] is None
    assert one["milliseconds"].keys() == {"tcp", "thrift", "database"}
    assert said["schema"]
    assert said["warehouse"]["writable"]


@pytest.mark.drill
def test_without_its_database_the_database_is_named(
    verb: Verb, cluster: Inventory, machines: Machines
) -> None:
    machine = machines[cluster.group("postgresql")[0].name]
    with stopped(machine, "postgresql"):
        done = verb.run("metastore", "check")
    assert done.returncode == 2, done
    assert "DOWN metastore.database" in done.stdout + done.stderr, done
    assert "PostgreSQL does not answer" in done.stdout + done.stderr
    answers(verb)
