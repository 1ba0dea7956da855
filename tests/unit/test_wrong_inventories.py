"""Each wrong inventory has its line: what is wrong, what was expected, what to do; no fault hides another."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from lakehouse.artifacts import manifest
from lakehouse.model import defaults, inventory, specs
from lakehouse.model.inventory import Host, Inventory
from lakehouse.run import BILL, ROOT
from lakehouse.validation import Finding, Undefined, replaced, twice, validate, variables

ORIGINAL = ROOT / "inventory" / "three-node"
SECRETS = {
    "lakehouse_database": {"password": "wYrm4-kettle-Otter"},
    "trino_shared_secret": "kettle-Otter-wYrm4",
}
MACHINE = {"node_memory_mb": 8192, "node_cores": 64}
# A second fault, which each of the others must leave visible.
NEIGHBOUR = {"hdfs_trash_minutes": -1}
ITS_LINE = (
    "FAIL vars.size all: hdfs_trash_minutes is -1 (expected at least 0): correct it in the inventory, or "
    "leave it out: it has a default"
)


TABLE = yaml.safe_load((Path(__file__).parent / "data/wrong_inventories.yml").read_text("utf-8"))


@dataclass(frozen=True)
class Base:
    """The sound inventory that is spoilt, the specifications of all roles, and the bill of materials."""

    sound: Inventory
    specs: list[dict[str, Any]]
    bill: manifest.Manifest

    def findings(self, wrong: Inventory, folder: Path | None = None) -> list[Finding]:
        """What validation finds in variables, and in the files of a folder."""
        found = validate(wrong, self.specs, self.bill)
        if folder:
            found += replaced(folder, DataLoader()) + twice(folder, [folder / "hosts.yml"])
        return found


@pytest.fixture(scope="module")
def base() -> Base:
    loaded = inventory.load(ORIGINAL)
    every = specs.every()
    known = variables.options(every)
    hosts = []
    for host in loaded.hosts:
        own = {
            name: host.variables.written(name)  # type: ignore[attr-defined]
            for name in host.variables
            if not name.startswith("inventory_") and name not in SECRETS
        }
        plain = {name: value for name, value in own.items() if name in known and "{{" not in str(value)}
        said = {"ansible_host": host.address, **plain, **SECRETS, **MACHINE}
        settings = {name: defaults.table(name, value) for name, value in said.items()}
        hosts.append(replace(host, variables=settings))
    return Base(replace(loaded, hosts=tuple(hosts)), every, manifest.load(ROOT / BILL, locked=False))


def spoilt(sound: Inventory, row: Mapping[str, Any], **more: Any) -> Inventory:
    """Change the sound inventory as a row of the table says."""
    groups = {
        name: [host.name for host in sound.group(name)]
        for name in {of for host in sound.hosts for of in host.groups}
    } | row.get("groups", {})
    new = [
        Host(name, "", frozenset(), {**sound.hosts[0].variables, **settings})
        for name, settings in row.get("hosts", {}).items()
        if name not in {host.name for host in sound.hosts}
    ]
    hosts = []
    for host in (*sound.hosts, *new):
        said = {**row.get("all", {}), **more, **row.get("hosts", {}).get(host.name, {})}
        own = {name: defaults.table(name, _valued(value)) for name, value in said.items()}
        variables = {name: value for name, value in {**host.variables, **own}.items() if value is not None}
        members = frozenset(group for group, names in groups.items() if host.name in names)
        name = row.get("rename", {}).get(host.name, host.name)
        hosts.append(Host(name, str(variables.get("ansible_host", "")), members, variables))
    return replace(sound, hosts=tuple(hosts))


def _valued(value: Any) -> Any:
    """Return a value of the table, of which `{undefined: x}` stands for a template that misses x."""
    return Undefined(value["undefined"]) if isinstance(value, dict) and set(value) == {"undefined"} else value


def written(row: Mapping[str, Any], folder: Path) -> Path | None:
    """Copy the original's files and add what the row says, where it says something."""
    if "files" not in row:
        return None
    shutil.copytree(ORIGINAL, folder / "copy")
    for name, change in row["files"].items():
        path = folder / "copy" / name
        text = path.read_text("utf-8") if path.exists() else ""
        if isinstance(change, str):
            text += change
        else:
            for old, new in change.items():
                text = text.replace(old, new)
        path.write_text(text, "utf-8")
    return folder / "copy"


def test_the_inventory_is_sound_before_it_is_spoilt(base: Base) -> None:
    assert list(map(str, base.findings(base.sound, ORIGINAL))) == []


@pytest.mark.parametrize("row", TABLE, ids=[row["fault"] for row in TABLE])
def test_each_fault_is_one_line_that_hides_no_other(base: Base, row: dict[str, Any], tmp_path: Path) -> None:
    folder = written(row, tmp_path)
    lines = list(map(str, base.findings(spoilt(base.sound, row), folder)))
    assert lines == row["lines"]
    beside = list(map(str, base.findings(spoilt(base.sound, row, **NEIGHBOUR), folder)))
    assert sorted(beside) == sorted([*lines, ITS_LINE])
    assert row.get("secret", "\0") not in "\n".join(beside)


def test_the_table_is_large_enough_to_mean_something() -> None:
    names = [row["fault"] for row in TABLE]
    assert len(names) == len(set(names)) >= 54
