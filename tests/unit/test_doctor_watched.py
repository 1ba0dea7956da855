"""The doctor watches for each service the files that its role gives to the module `daemon`."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from lakehouse import inventory, services
from lakehouse.inventory import Host, Inventory
from lakehouse.run import ROOT
from ops.doctor import asks

# The variable that names a service's own file of properties.
PROPERTIES = {
    **dict.fromkeys(("spark_master", "spark_worker", "spark_history"), "_spark_daemon_file"),
    "spark_thrift": "_spark_thrift_file",
    "spark_connect": "_spark_connect_file",
}
LOADER = DataLoader()


def read(path: str) -> Any:
    return LOADER.load_from_file(str(ROOT / path), trusted_as_template=True)


def roles() -> dict[str, Any]:
    """Defaults and variables of all roles; nothing is evaluated."""
    found: dict[str, Any] = {}
    for kind in ("defaults", "vars"):
        for path in sorted((ROOT / "roles").glob(f"*/{kind}/main.yml")):
            found |= read(str(path.relative_to(ROOT))) or {}
    return found


def variables(known: Inventory, host: Host) -> dict[str, Any]:
    names = {group for one in known.hosts for group in one.groups}
    return {
        **roles(),
        **{name: host.variables[name] for name in ("lakehouse_install_dir", "lakehouse_config_dir")},
        "lakehouse_bom": yaml.safe_load("versions: {postgresql: 17}"),
        "lakehouse_ports": host.variables["lakehouse_ports"],
        "lakehouse_nameservice": "lake",
        "lakehouse_root": "/lakehouse",
        "groups": {name: [one.name for one in known.group(name)] for name in names},
        "hostvars": {one.name: {"ansible_host": one.address} for one in known.hosts},
        "inventory_hostname": host.name,
        "ansible_host": host.address,
    }


@pytest.fixture(scope="module")
def known() -> Inventory:
    return inventory.load(ROOT / "inventory" / "three-node")


@pytest.mark.parametrize("name", services.load().services)
def test_a_service_is_watched_as_its_role_does(known: Inventory, name: str) -> None:
    service = services.load().services[name]
    host = known.group(service.groups[0])[0]
    tasks = read(f"roles/{service.role}/tasks/service.yml")
    files = next(task["daemon"]["files"] for task in tasks if "files" in task["daemon"])
    given = variables(known, host)
    if name in PROPERTIES:
        given["item"] = {"value": {"properties": f"/etc/spark/{given[PROPERTIES[name]].rpartition('/')[2]}"}}
    wanted = Templar(loader=LOADER, variables=given).template(files)
    watched = asks.watched(host, service)
    assert [path for path in wanted if not any(fnmatch(path, pattern) for pattern in watched)] == []
    assert [pattern for pattern in watched if not any(fnmatch(path, pattern) for path in wanted)] == []
