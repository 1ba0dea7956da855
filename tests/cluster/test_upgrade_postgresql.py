"""`lakehouse upgrade postgresql`: another minor version, there and back, on the packages of Debian."""

from __future__ import annotations

import re

import pytest

from lakehouse.inventory import Inventory
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.drill]


@pytest.fixture
def server(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group("postgresql")[0].name]


def version(server: Machine) -> str:
    """What runs, such as 17.12."""
    asked = server.run("runuser -u postgres -- psql -XAt -p %s -c 'show server_version'", port(server))
    return asked.split()[0]


def port(server: Machine) -> int:
    return int(server.variable("lakehouse_ports")["postgresql"])


def others(server: Machine, now: str) -> list[str]:
    """The other versions that the archive has for it."""
    major = now.partition(".")[0]
    known = server.run(f"apt-cache madison postgresql-{major}")
    found = (re.split(r" *\| *", line)[1].partition("-")[0] for line in known.splitlines())
    return [one for one in dict.fromkeys(found) if one != now]


def test_another_major_version_is_refused(verb: Verb, server: Machine) -> None:
    before = version(server)
    done = verb.run("upgrade", "postgresql", "--to", "99", "--yes")
    assert done.returncode == 3, done
    assert "another major version has other data files" in done.stdout.splitlines()[-1]
    assert version(server) == before


@pytest.mark.longdrill
def test_the_version_before_comes_and_goes(verb: Verb, server: Machine) -> None:
    before = version(server)
    if not (known := others(server, before)):
        pytest.skip(f"the archive has PostgreSQL {before} alone")
    for wanted in (known[0], before):
        done = verb.run("upgrade", "postgresql", "--to", wanted, "--force", "--yes")
        print(done.stdout, done.stderr, sep="\n")  # noqa: T201 -- what docs/operations/upgrade.md says
        assert done.returncode == 0, done
        assert "it did not answer for " in done.stdout.splitlines()[-1]
        assert version(server) == wanted
    again = verb.run("upgrade", "postgresql", "--to", before, "--force", "--yes")
    assert "there is nothing to do" in again.stdout.splitlines()[-1], again
