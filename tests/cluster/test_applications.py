"""Applications of Spark: one alone takes what the sizes allow, and leaves room for the next one."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from lakehouse.model.inventory import Inventory
from suites.testbed.engines.spark import pause
from suites.testbed.waiting import wait_for
from tests.cluster.daemons import spark_defaults
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

SECONDS = 120
# A task of three seconds holds a core, and computes nothing.
LAST_AWHILE = f"select distinct {pause(3000)} from range(0, {{0}}, 1, {{0}})"  # noqa: S608 -- a constant


class Master:
    """Spark's master, as its page tells."""

    def __init__(self, url: str) -> None:
        self._url = url

    def state(self) -> Any:
        return requests.get(f"{self._url}/json/", timeout=30).json()

    def cores(self, application: str) -> int:
        """Cores that an application's executors have."""
        return sum(app["cores"] for app in self.state()["activeapps"] if app["name"] == application)

    def cores_used(self) -> list[int]:
        """Cores that each worker has given away, to any application."""
        return [worker["coresused"] for worker in self.state()["workers"]]


@pytest.fixture
def master(cluster: Inventory) -> Master:
    [host] = cluster.group("spark_master")
    return Master(f"http://{host.address}:{host.variables['lakehouse_ports']['spark_master_http']}")


@contextmanager
def application(machine: Machine, statement: str) -> Iterator[str]:
    """Run a statement in an application of its own, which the name says; nothing of it stays."""
    name = f"kit-{secrets.token_hex(3)}"
    user = machine.variable("lakehouse_users")["spark"]
    with machine.transient(name):
        machine.run("systemd-run --unit=%s --uid=%s spark-sql --name %s -e %s", name, user, name, statement)
        yield name


def is_done(machine: Machine, name: str) -> bool:
    """Whether the application has ended; AssertionError with its log if not well."""
    state = str(machine.shell.run("systemctl is-active %s", name).stdout).strip()
    assert state != "failed", machine.run("journalctl --no-pager -o cat -u %s", name)
    return state == "inactive"


def test_an_application_alone_works_on_every_worker_and_the_next_one_starts(
    cluster: Inventory, machines: Machines, master: Master
) -> None:
    client = machines[cluster.group("clients")[0].name]
    allowed = int(spark_defaults(client)["spark.cores.max"])
    before = sum(master.cores_used())
    with application(client, LAST_AWHILE.format(10 * allowed)) as first:
        wait_for("all cores of one application", lambda: master.cores(first) == allowed, seconds=SECONDS)
        assert sum(used > 0 for used in master.cores_used()) == len(cluster.group("spark_workers"))
        with application(client, LAST_AWHILE.format(2)) as second:
            wait_for("executors of the next one", lambda: master.cores(second), seconds=SECONDS)
            assert master.cores(first) == allowed
            wait_for("its end", lambda: is_done(client, second), seconds=SECONDS)
        wait_for("the end of the first", lambda: is_done(client, first), seconds=SECONDS)
    # An application that has ended is in no list of them: its cores are seen on the workers alone.
    wait_for("nothing held", lambda: sum(master.cores_used()) == before, seconds=SECONDS)
