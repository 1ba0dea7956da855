#!/usr/bin/python
"""Refuse a configuration that would leave data behind."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse.orphaned_data import check

DOCUMENTATION = r"""
module: lakehouse_left_behind
short_description: Whether what is installed holds data that the desired configuration no longer names
description:
  - Reads only. The old place is what the installed unit, its configuration and the running NameNode name.
options:
  unit: {type: str, required: true, description: The service's unit.}
  storage:
    type: dict
    required: true
    description:
      - I(kind) hdfs_name or hdfs_data with I(paths), or metastore with I(host), I(address) and I(database).
  cluster_id: {type: str, default: "", description: The identity of the HDFS cluster.}
  forsaken: {type: list, elements: str, default: [], description: Old places whose data is given up.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Look for data that would be left behind
  lakehouse_left_behind:
    unit: hdfs-datanode.service
    storage: {kind: hdfs_data, paths: [/data/hdfs/datanode]}
"""
RETURN = r""" # """


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "unit": {"type": "str", "required": True},
            "storage": {"type": "dict", "required": True},
            "cluster_id": {"type": "str", "default": ""},
            "forsaken": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    options = module.params
    findings = check(Path("/"), options, options["forsaken"], options["cluster_id"])
    if findings:
        module.fail_json(msg="\n".join(f"{row['fact']}; {_next(row['action'])}" for row in findings))
    module.exit_json(changed=False)


def _next(action: str) -> str:
    """The action as errors end: nothing was touched; next: what to do."""
    return action.replace("nothing was touched; ", "nothing was touched; next: ", 1)


if __name__ == "__main__":
    main()
