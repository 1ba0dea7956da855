#!/usr/bin/python
"""Directories in HDFS with owner, group and mode, through WebHDFS."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest
from ansible.module_utils.lakehouse.hdfs_path import apply, items
from ansible.module_utils.lakehouse.refused import RefusedError, UnansweredError

DOCUMENTATION = r"""
module: lakehouse_hdfs_path
short_description: Directories in HDFS
options:
  url: {type: str, required: true, description: The NameNode's web address.}
  user: {type: str, required: true, description: HDFS's superuser.}
  owner: {type: str, required: true, description: Owner of every path that does not name another.}
  group: {type: str, required: true, description: Group of every path that does not name another.}
  mode: {type: str, required: true, description: "Mode (octal digits) of every path that names no other."}
  paths:
    type: list
    elements: dict
    default: []
    description: >-
      Entries of C(path), and if they differ C(owner), C(group), C(mode). C(readers) are
      users outside the group who may pass and list the directory, by entries of its access control list.
  folders:
    type: list
    elements: str
    default: []
    description: Paths without anything of their own; after C(paths).
  snapshots:
    type: list
    elements: str
    default: []
    description: Paths of whose directories the owner may make snapshots.
  manifest: {type: path, description: The manifest of the host.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Create the warehouse
  lakehouse_hdfs_path:
    url: http://cpu-node1:9870
    user: hdfs
    owner: hive
    group: lakehouse
    mode: "0770"
    paths: [{path: /tmp, owner: hdfs, mode: "1777"}]
    folders: [/lakehouse, /lakehouse/iceberg]
    snapshots: [/lakehouse]
"""
RETURN = r"""
paths: {type: list, returned: always, description: Paths that changed.}
"""


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "user": {"type": "str", "required": True},
            "owner": {"type": "str", "required": True},
            "group": {"type": "str", "required": True},
            "mode": {"type": "str", "required": True},
            "paths": {"type": "list", "elements": "dict", "default": []},
            "folders": {"type": "list", "elements": "str", "default": []},
            "snapshots": {"type": "list", "elements": "str", "default": []},
            **host_manifest.OPTION,
        },
        supports_check_mode=True,
    )
    try:
        changed = apply(module.params, check=module.check_mode)
    except UnansweredError as error:
        if not module.check_mode:
            module.fail_json(**error.result())
        module.warn(f"taken for an empty HDFS, because it cannot be asked yet: {error.what}")
        paths, folders = (module.params[name] for name in ("paths", "folders"))
        changed = [*(path["path"] for path in paths), *folders]
    except RefusedError as error:
        module.fail_json(**error.result())
    host_manifest.put(module, items(module.params))
    module.exit_json(changed=bool(changed), paths=changed)


if __name__ == "__main__":
    main()
