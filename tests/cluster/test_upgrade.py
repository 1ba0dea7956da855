"""`lakehouse upgrade`: another release comes in and the data stays, and one that does not serve goes back."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lakehouse.model.inventory import Inventory
from suites.testbed.engines.trino import Trino
from suites.testbed.tables import suffix
from suites.testbed.waiting import wait_for
from tests.cluster import bills, changing
from tests.cluster.changing import Verb
from tests.cluster.fingerprints import fingerprints
from tests.cluster.machines import Machines
from tests.cluster.playbooks import Ansible

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

# A release that does not serve: short enough to wait for, and longer than a good one takes.
_READY = "150"


@contextmanager
def returning(verb: Verb, component: str) -> Iterator[None]:
    """What a test leaves is what versions.yml says."""
    try:
        yield
    finally:
        again = verb.run("upgrade", component, "--yes")
        assert again.returncode == 0, again


def releases(cluster: Inventory, machines: Machines, component: str) -> dict[str, str]:
    place = f"{cluster.hosts[0].variables['lakehouse_install_dir']}/{component}/current"
    return {name: machine.run("readlink %s", place) for name, machine in machines.items()}


def test_where_everything_is_installed_there_is_nothing_to_do(verb: Verb) -> None:
    done = verb.run("upgrade", "--yes")
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-1].startswith("upgrade all: done; there is nothing to do; next: ")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("icberg",), 64, "no component is called icberg (did you mean iceberg?)"),
        (("java",), 64, "java is a package of Debian, and in no release"),
        (("--bill", "build/none.yml"), 64, "build/none.yml: "),
    ],
)
def test_what_cannot_be_is_one_line(verb: Verb, words: tuple[str, ...], code: int, said: str) -> None:
    done = verb.run("upgrade", *words)
    assert (done.returncode, done.stdout) == (code, ""), done
    [line] = done.stderr.splitlines()
    assert said in line
    assert "; next: " in line


def test_another_version_is_refused_before_anybody_locks_it(verb: Verb) -> None:
    done = verb.run("upgrade", "trino", "--to", "477")
    assert done.returncode == 3, done
    assert "never tested together" in done.stdout.splitlines()[-1]


def test_versions_that_were_never_run_together_are_refused(
    verb: Verb, cluster: Inventory, machines: Machines
) -> None:
    before = releases(cluster, machines, "spark")
    refused = verb.run("upgrade", "delta", "--bill", bills.delta(), "--yes")
    assert refused.returncode == 3, refused
    assert " refused; delta 4.3.1 with spark " in refused.stdout.splitlines()[-1]
    planned = verb.run("upgrade", "delta", "--bill", bills.delta(), "--dry-run", "--force")
    assert planned.returncode == 0, planned
    assert re.search(r"spark 4\S+ -> 4\S+ \(delta \S+ -> 4\.3\.1\)", planned.stdout), planned
    assert releases(cluster, machines, "spark") == before


@pytest.mark.longdrill
def test_a_library_that_a_table_is_beyond_is_refused(
    verb: Verb, cluster: Inventory, machines: Machines
) -> None:
    before, database = releases(cluster, machines, "spark"), f"kit_{suffix()}"
    in_spark(verb, f"CREATE DATABASE iceberg.{database}")
    try:
        in_spark(
            verb, f"CREATE TABLE iceberg.{database}.newer (id INT) TBLPROPERTIES ('format-version' = '3')"
        )
        refused = verb.run("upgrade", "iceberg", "--bill", bills.older_iceberg(), "--yes")
    finally:
        in_spark(verb, f"DROP DATABASE {database} CASCADE")
    assert refused.returncode == 3, refused
    last = refused.stdout.splitlines()[-1]
    assert re.search(r" refused; iceberg \S+ -> 1\.0\.0: \d+ tables? (is|are) beyond it, ", last), last
    assert releases(cluster, machines, "spark") == before


def in_spark(verb: Verb, statement: str) -> None:
    done = verb.run("sql", "--engine", "spark", statement)
    assert done.returncode == 0, done


@pytest.mark.longdrill
def test_iceberg_comes_in_and_the_data_is_the_same(
    verb: Verb, cluster: Inventory, machines: Machines, trino: Trino, ansible: Ansible
) -> None:
    """As the runbook does it, from Iceberg 1.12.0 to what versions.yml has, and to 1.12.0 before that."""
    before, old = fingerprints(trino), releases(cluster, machines, "spark")
    with returning(verb, "spark"):
        there = verb.run("upgrade", "iceberg", "--bill", bills.iceberg(), "--force", "--yes", "--json")
        print(there.stdout, there.stderr, sep="\n")  # noqa: T201 -- a failure is judged by it
        assert there.returncode == 0, there
        assert json.loads(there.stdout)["outcome"] == "DONE"
        assert set(old.values()).isdisjoint(releases(cluster, machines, "spark").values())
        assert fingerprints(trino) == before
        shown, done = (verb.run(*words) for words in changing.runbook("upgrade")[:2])
        assert (shown.returncode, done.returncode) == (0, 0), (shown, done)
        assert "iceberg 1.12.0 -> " in shown.stdout
    assert releases(cluster, machines, "spark") == old
    assert fingerprints(trino) == before
    converged = ansible.playbook("site")
    assert (converged.code, converged.changed) == (0, 0), converged


@pytest.mark.longdrill
def test_delta_goes_and_comes_in_a_run_that_is_killed_and_resumed(
    verb: Verb, cluster: Inventory, machines: Machines, trino: Trino
) -> None:
    before, old = fingerprints(trino), releases(cluster, machines, "spark")
    with returning(verb, "spark"):
        process = verb.started("upgrade", "delta", "--bill", bills.delta(), "--force", "--yes")
        wait_for(
            "one host has it", lambda: releases(cluster, machines, "spark") != old, seconds=changing.SECONDS
        )
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        resumed = verb.run("resume", "--yes")
        assert resumed.returncode == 0, resumed
        assert set(old.values()).isdisjoint(releases(cluster, machines, "spark").values())
        assert fingerprints(trino) == before
    assert releases(cluster, machines, "spark") == old
    assert fingerprints(trino) == before


@pytest.mark.longdrill
def test_a_release_that_does_not_serve_goes_back_by_itself(
    verb: Verb, cluster: Inventory, machines: Machines, trino: Trino
) -> None:
    before, old = fingerprints(trino), releases(cluster, machines, "trino")
    done = verb.run("upgrade", "trino", "--bill", bills.broken_trino(), "--ready", _READY, "--yes")
    print(done.stdout, done.stderr, sep="\n")  # noqa: T201 -- a failure is judged by it
    assert done.returncode == 7, done
    last = done.stdout.splitlines()[-1]
    assert last.startswith("upgrade trino: went back; trino serves "), last
    assert "; next: .venv/bin/lakehouse logs trino " in last
    assert releases(cluster, machines, "trino") == old
    assert fingerprints(trino) == before
    # Nobody runs what is not installed, and there is nothing that could be resumed.
    findings = verb.run("doctor").stdout
    assert [check for check in ("unit.pending", "host.drift") if check in findings] == [], findings
    run = json.loads(verb.run("runs", "--json").stdout)["runs"][-1]
    assert (run["verb"], run["exit"], run["resumable"]) == ("upgrade", 7, False)
