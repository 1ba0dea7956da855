#!/usr/bin/python
"""Look at a node and report what would make the roles fail, changing nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse.host_comparison import compared
from ansible.module_utils.lakehouse.preflight_accounts import check_accounts, members
from ansible.module_utils.lakehouse.preflight_away import check_away, check_lock
from ansible.module_utils.lakehouse.preflight_machine import (
    check_disk,
    check_kind,
    check_memory,
    facts,
    memory_mb,
)
from ansible.module_utils.lakehouse.preflight_names import (
    HOSTS_FILE,
    check_cloud_init,
    check_hosts_file,
    check_own_address,
    check_resolution,
)
from ansible.module_utils.lakehouse.preflight_ports import check_ports
from ansible.module_utils.lakehouse.preflight_storage import check_storage, datanodes, formats

DOCUMENTATION = r"""
module: lakehouse_preflight
short_description: Find what would make a node fail, before anything is changed
description:
  - Reads only, needs no facts, and never fails itself.
  - The action plugin of the same name adds the difference of the clocks, and fails if there is a finding.
options:
  name: {type: str, required: true, description: The node's name in the inventory.}
  addresses: {type: dict, required: true, description: Every node's inventory address by name.}
  checks:
    type: list
    elements: str
    choices: [away, machine, memory, disk, names, accounts, ports, storage]
    default: [away, machine, memory, disk, names, accounts, ports, storage]
    description: What to look at.
  manage_hosts:
    type: bool
    default: false
    description: Names that the node role is going to write into the hosts file need not resolve yet.
  supported_os: {type: list, elements: str, default: [], description: "Such as debian-13."}
  architectures: {type: list, elements: str, default: [x86_64, aarch64], description: As uname -m says.}
  min_memory_mb: {type: int, default: 0, description: Memory that the node must have.}
  min_disk_mb: {type: int, default: 0, description: Free space that every file system with data must have.}
  data_dirs: {type: list, elements: path, default: [], description: Where that space is measured.}
  ports: {type: dict, default: {}, description: The cluster's port table.}
  config_dir: {type: path, default: "", description: Where marks of hosts that are away would be.}
  run: {type: str, default: "", description: The run that calls the playbook; the lock of another is a fault.}
  services:
    type: list
    elements: dict
    default: []
    description: The services of this node, each with I(unit), I(ports) and optionally I(storage).
  cluster_id: {type: str, default: "", description: The identity of the HDFS cluster.}
  forsaken: {type: list, elements: str, default: [], description: Old places whose data is given up.}
  users: {type: list, elements: str, default: [], description: Accounts of the kit.}
  group: {type: str, default: "", description: The group that they must be in.}
  manifest: {type: path, description: "The manifest of the host, which is compared with it."}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Names lead to the inventory addresses and back
  lakehouse_preflight:
    name: "{{ inventory_hostname }}"
    addresses: {n1: 10.0.0.11, n2: 10.0.0.12}
    checks: [names]
"""
RETURN = r"""
findings:
  type: list
  elements: dict
  returned: always
  description: One entry per fault, with check, fact, action and expected; host, if it is another.
memory_mb: {type: int, returned: always, description: Memory that the node may use, in MiB.}
facts:
  type: dict
  returned: always
  description: C(memtotal_mb), C(processor_vcpus), C(architecture), C(lakehouse_members) beside the kit's own.
differences: {type: list, elements: str, returned: always, description: Of the host from its manifest.}
inputs: {type: str, returned: always, description: Inputs from which the manifest was written.}
formats: {type: bool, returned: always, description: Whether a NameNode is to run here that has no data yet.}
datanodes: {type: list, elements: str, returned: always, description: Uuids in the DataNode's directories.}
started: {type: float, returned: always, description: The node's clock before the checks, in seconds.}
finished: {type: float, returned: always, description: The node's clock after them.}
"""

CHECKS = ["away", "machine", "memory", "disk", "names", "accounts", "ports", "storage"]


def main() -> None:
    """Entry point."""
    started = time.time()
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "addresses": {"type": "dict", "required": True},
            "checks": {"type": "list", "elements": "str", "choices": CHECKS, "default": CHECKS},
            "manage_hosts": {"type": "bool", "default": False},
            "supported_os": {"type": "list", "elements": "str", "default": []},
            "architectures": {"type": "list", "elements": "str", "default": ["x86_64", "aarch64"]},
            "min_memory_mb": {"type": "int", "default": 0},
            "min_disk_mb": {"type": "int", "default": 0},
            "data_dirs": {"type": "list", "elements": "path", "default": []},
            "config_dir": {"type": "path", "default": ""},
            "run": {"type": "str", "default": ""},
            "ports": {"type": "dict", "default": {}},
            "services": {"type": "list", "elements": "dict", "default": []},
            "cluster_id": {"type": "str", "default": ""},
            "forsaken": {"type": "list", "elements": "str", "default": []},
            "users": {"type": "list", "elements": "str", "default": []},
            "group": {"type": "str", "default": ""},
            "manifest": {"type": "path"},
        },
        supports_check_mode=True,
    )
    options = module.params
    root = Path("/")
    checks: dict[str, Callable[[], list[dict[str, str]]]] = {
        "away": lambda: (
            check_away(Path(options["config_dir"]), options["name"], options["addresses"])
            + check_lock(root, options["run"])
        ),
        "machine": lambda: check_kind(root, options["supported_os"], options["architectures"]),
        "memory": lambda: check_memory(root, options["min_memory_mb"]),
        "disk": lambda: check_disk(root, options["data_dirs"], options["min_disk_mb"]),
        "names": lambda: (
            check_names(options["name"], options["addresses"], options["manage_hosts"])
            + check_cloud_init(root)
        ),
        "accounts": lambda: check_accounts(options["users"], options["group"]),
        "ports": lambda: check_ports(root, options["services"], options["ports"]),
        "storage": lambda: check_storage(
            root, options["services"], options["cluster_id"], options["forsaken"]
        ),
    }
    findings = [finding for name in options["checks"] for finding in checks[name]()]
    differences, inputs = compared(options["manifest"]) if options["manifest"] else ([], "")
    module.exit_json(
        changed=False,
        differences=differences,
        inputs=inputs,
        findings=findings,
        memory_mb=memory_mb(root),
        facts=facts(root) | {"lakehouse_members": members(options["group"], options["users"])},
        formats=formats(options["services"]),
        datanodes=datanodes(options["services"]),
        started=started,
        finished=time.time(),
    )


def check_names(name: str, addresses: dict[str, str], manage_hosts: bool) -> list[dict[str, str]]:
    """Check the names as they are now, or as they will be once the node role has written them."""
    text = Path(HOSTS_FILE).read_text(encoding="utf-8")
    names = check_hosts_file(text, addresses) if manage_hosts else check_resolution(text, addresses)
    return check_own_address(addresses[name]) + names


if __name__ == "__main__":
    main()
