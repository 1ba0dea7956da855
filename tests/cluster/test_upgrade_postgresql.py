"""`lakehouse upgrade postgresql`: another minor version, there and back, on the packages of Debian."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lakehouse.model.inventory import Inventory
from tests.cluster.changing import Verb
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

# Programs tell the version that they were compiled as: another one of the same length is written over it.
_REMADE = """set -e
mkdir -p {folder}/made; cd {folder}
for name in {names}; do
  apt-get download -qq "$name={old}"
  dpkg-deb --raw-extract "$name"_*.deb tree
  sed -i 's/{old}/{new}/g' tree/DEBIAN/control $(find tree -type f -path '{programs}')
  dpkg-deb -Zgzip -z1 --build tree made >/dev/null
  rm -r tree
done
mkdir -p {kept}; mv made {kept}/{new}
"""
WHOLE, SERVER_ALONE = "*/postgresql/*/bin/*", "*/postgresql/*/bin/postgres"


@pytest.fixture
def server(cluster: Inventory, machines: Machines) -> Machine:
    return machines[cluster.group("postgresql")[0].name]


@contextmanager
def remade(server: Machine, programs: str) -> Iterator[str]:
    """Give the version that runs another name, in these programs of it; its packages are on the host.

    What a verb does with packages does not depend on what is new in them, and Debian's archive often has one
    version alone.
    """
    old = version(server)
    new = re.sub(r"u(?=\d+$)", "k", old)
    assert new != old
    listed = server.run("dpkg-query --show --showformat='${source:Package} ${Version} ${Package}\\n'")
    names = [line.split()[2] for line in listed.splitlines() if line.startswith(f"{package(old)} {old} ")]
    kept = f"{server.variable('lakehouse_data_dir')}/packages/postgresql"
    with server.scratch("postgresql-remade") as folder:
        server.run(
            _REMADE.format(
                folder=folder, names=" ".join(names), old=old, new=new, programs=programs, kept=kept
            )
        )
    try:
        yield new
    finally:
        server.run("rm -rf %s", f"{kept}/{new}")


@pytest.fixture
def other(server: Machine) -> Iterator[str]:
    """Another version than the one that runs: one of the archive, or else the same under another name."""
    if known := others(server, version(server)):
        yield known[0]
    else:
        with remade(server, WHOLE) as made:
            yield made


def version(server: Machine) -> str:
    """What runs, such as 17.12-0+deb13u1."""
    asked = server.run("runuser -u postgres -- psql -XAt -p %s -c 'show server_version'", port(server))
    return str(re.findall(r"\(Debian (.+)\)", asked)[0])


def package(known: str) -> str:
    return f"postgresql-{known.partition('.')[0]}"


def port(server: Machine) -> int:
    return int(server.variable("lakehouse_ports")["postgresql"])


def others(server: Machine, now: str) -> list[str]:
    """The other versions that the archive has for it."""
    known = server.run("apt-cache madison %s", package(now)).splitlines()
    found = (re.split(r" *\| *", line)[1] for line in known)
    return [one for one in dict.fromkeys(found) if one != now]


def test_another_major_version_is_refused(verb: Verb, server: Machine) -> None:
    before = version(server)
    done = verb.run("upgrade", "postgresql", "--to", "99", "--yes")
    assert done.returncode == 3, done
    assert "another major version has other data files" in done.stdout.splitlines()[-1]
    assert version(server) == before


@pytest.mark.longdrill
def test_the_version_before_comes_and_goes(verb: Verb, server: Machine, other: str) -> None:
    before = version(server)
    for wanted in (other, before):
        done = verb.run("upgrade", "postgresql", "--to", wanted, "--force", "--yes")
        print(done.stdout, done.stderr, sep="\n")  # noqa: T201 -- what docs/operations/upgrade.md says
        assert done.returncode == 0, done
        assert "it did not answer for " in done.stdout.splitlines()[-1]
        assert version(server) == wanted
    again = verb.run("upgrade", "postgresql", "--to", before, "--force", "--yes")
    assert "there is nothing to do" in again.stdout.splitlines()[-1], again


@pytest.mark.longdrill
def test_one_that_does_not_start_goes_back_by_itself(verb: Verb, server: Machine) -> None:
    """Its programs are of two versions: PostgreSQL's own check refuses to start the server."""
    before = version(server)
    with remade(server, SERVER_ALONE) as broken:
        done = verb.run("upgrade", "postgresql", "--to", broken, "--force", "--yes")
    assert done.returncode == 7, done
    assert f"PostgreSQL {before} serves again: " in done.stdout.splitlines()[-1]
    assert version(server) == before
