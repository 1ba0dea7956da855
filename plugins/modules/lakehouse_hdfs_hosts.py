#!/usr/bin/python
"""The list of DataNodes that the NameNode lets register."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import hdfs_hosts, host_manifest, host_state
from ansible.module_utils.lakehouse.probes import fetch

DOCUMENTATION = r"""
module: lakehouse_hdfs_hosts
short_description: DataNodes that the NameNode lets register
description:
  - Adds hosts to the file that C(dfs.hosts) names. Those that are in it stay, with the state in which a verb
    has put them, whether they are in the inventory or not.
options:
  path: {type: path, required: true, description: The file.}
  hosts: {type: list, elements: str, required: true, description: The DataNodes of the inventory.}
  namenode:
    type: str
    default: ""
    description: Web address of the NameNode, which is asked whom of them it knows while it answers.
  manifest: {type: path, description: The manifest of the host.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: The NameNode knows its DataNodes
  lakehouse_hdfs_hosts: {path: /etc/hadoop/namenode/datanodes.json, hosts: [node1, node2]}
"""
RETURN = r"""
hosts: {type: list, elements: str, returned: always, description: The hosts of the file.}
unknown:
  type: list
  elements: str
  returned: always
  description: >-
    Hosts that the NameNode has not seen since it started; their names may have led nowhere when it read this.
"""
MODE = 0o644


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "hosts": {"type": "list", "elements": "str", "required": True},
            "namenode": {"type": "str", "default": ""},
            **host_manifest.OPTION,
        },
        supports_check_mode=True,
    )
    path = Path(module.params["path"])
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    try:
        entries = hdfs_hosts.joined(hdfs_hosts.read(before), module.params["hosts"])
    except ValueError as error:
        module.fail_json(msg=f"{path}: {error}; next: look at it, or move it away")
    after = hdfs_hosts.written(entries)
    changed = after != before or not has_attributes(path)
    if changed and not module.check_mode:
        # The NameNode may read the file at any time, so it is replaced atomically.
        new = path.with_name(f".{path.name}.new")
        new.write_text(after, encoding="utf-8")
        new.chmod(MODE)
        new.replace(path)
    # Without a digest: the line of a host that leaves changes later.
    file = {"kind": "file", "path": str(path), "owner": "root", "group": "root", "mode": f"{MODE:04o}"}
    listed = {"name": str(path), "hosts": module.params["hosts"], "url": module.params["namenode"]}
    host_manifest.put(module, [file, {"kind": "datanodes", **listed}])
    registered_hosts = registered(module.params["namenode"]) if module.params["namenode"] else None
    unknown = (
        []
        if registered_hosts is None
        else [name for name in module.params["hosts"] if name not in registered_hosts]
    )
    module.exit_json(changed=changed, hosts=[entry["hostName"] for entry in entries], unknown=unknown)


def has_attributes(path: Path) -> bool:
    """Tell whether the file is this user's, and has the mode that lets the NameNode read it."""
    status = path.stat()
    return (status.st_uid, stat.S_IMODE(status.st_mode)) == (os.geteuid(), MODE)


def registered(namenode: str) -> set[str] | None:
    """Return the DataNodes that the NameNode knows, dead ones too; None where it does not answer."""
    try:
        return host_state.registered(fetch(f"{namenode}{host_state.DATANODES}"))
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    main()
