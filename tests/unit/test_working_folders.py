"""No program works in a folder that the account of another service could change, or make first in /tmp."""

from __future__ import annotations

import re
import stat
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from backup import run
from lakehouse.run import ROOT
from tests.unit.test_root_writes import scripts
from tests.unit.test_superuser_sessions import settings

GOLDEN = ROOT / "tests" / "render" / "golden"
CLUSTERS = sorted(path for path in GOLDEN.iterdir() if path.is_dir())
# Where a program puts or finds what it runs.
WORKING = re.compile(
    r"\b(?:SPARK_LOCAL_DIRS|SPARK_WORKER_DIR|TMPDIR|PYTHONPATH|LOCAL_DIRS|[A-Z]+_PID_DIR|java\.io\.tmpdir)=(/[^\s\"']*)"
)
ROOTS = ("/usr/", "/opt/", "/etc/")
# In the folder that every user may write to, what has a name of its own.
PREDICTABLE = re.compile(r"(?<![\w}/.])/(?:var/)?tmp/[\w.{$]")


def units(cluster: Path) -> dict[Path, dict[str, str]]:
    """Return the rendered units of a cluster, with the drop-ins of Debian's."""
    found = {}
    for path in cluster.rglob("etc/systemd/system/**/*"):
        if path.is_file() and "[Service]" in (text := path.read_text(encoding="utf-8")):
            found[path] = dict(line.split("=", 1) for line in text.splitlines() if "=" in line[1:])
    return found


def paths(unit: dict[str, str]) -> list[Path]:
    return [Path(word.removeprefix("-")) for word in unit.get("ReadWritePaths", "").split()]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda path: path.name)
def test_a_unit_writes_where_no_other_account_does(cluster: Path) -> None:
    owners = defaultdict(set)
    for unit in units(cluster).values():
        for path in paths(unit):
            owners[path].add(unit["User"])
    shared = {
        (str(path), str(other), *sorted(users | owners[other]))
        for path, users in owners.items()
        for other in (path, *path.parents)
        if other in owners and len(users | owners[other]) > 1
    }
    assert shared == set()


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda path: path.name)
def test_a_unit_works_in_folders_of_its_own(cluster: Path) -> None:
    for name, unit in units(cluster).items():
        for place in map(Path, WORKING.findall(name.read_text(encoding="utf-8"))):
            own = any(path in {place, *place.parents} for path in paths(unit))
            assert own or str(place).startswith(ROOTS), (name, place)


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda path: path.name)
def test_a_unit_has_a_tmp_of_its_own(cluster: Path) -> None:
    # Their drop-ins of systemd's targets and timers start nothing.
    assert {name for name, unit in units(cluster).items() if unit.get("PrivateTmp") != "true"} == set()


def test_pgbackrest_locks_in_a_folder_of_its_user() -> None:
    text = (ROOT / "roles" / "backup" / "vars" / "main.yml").read_text(encoding="utf-8")
    [folder] = re.findall(r"^  lock-path: (\S+)$", text, re.MULTILINE)
    servers = [
        unit for cluster in CLUSTERS for unit in units(cluster).values() if unit.get("User") == "postgres"
    ]
    assert servers
    for unit in servers:
        assert {*Path(folder).parents} & {*paths(unit)}


def test_no_program_has_a_predictable_name_in_tmp() -> None:
    found = set()
    for top in ("backup", "lakehouse", "plugins"):
        for path in (ROOT / top).rglob("*.py"):
            if path.is_relative_to(ROOT / "lakehouse" / "local"):
                # A container of this computer has its /tmp for itself.
                continue
            found |= {str(path.relative_to(ROOT)) for text in scripts(path) if PREDICTABLE.search(text)}
    for top in ("roles", "templates", "playbooks"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix in {".yml", ".j2", ".sh"} and PREDICTABLE.search(path.read_text(encoding="utf-8")):
                found.add(str(path.relative_to(ROOT)))
    assert found == set()


def test_the_keepers_spark_works_in_a_folder_of_the_keeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/of/spark")
    program = (
        "import json, os, sys; p = os.environ['SPARK_LOCAL_DIRS']; d = os.path.dirname(p); "
        "json.dump([{'p': p, 'm': [os.stat(p).st_mode, os.stat(d).st_mode]}], open(sys.argv[-1], 'w'))"
    )
    keeper = replace(settings(), folder=str(tmp_path), spark_submit=(sys.executable, "-c", program))
    [said] = run._count(keeper, [])
    place = Path(said["p"])
    assert place.parent == keeper.state / "spark"
    assert {stat.S_IMODE(mode) for mode in said["m"]} == {0o700}
    assert not place.exists()
