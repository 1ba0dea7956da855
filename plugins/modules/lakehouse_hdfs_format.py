#!/usr/bin/python
"""Format a NameNode that was never formatted."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse.hdfs_format import apply
from ansible.module_utils.lakehouse.refused import RefusedError

DOCUMENTATION = r"""
module: lakehouse_hdfs_format
short_description: Format the NameNode once
description:
  - Refuses when any of the directories is not empty.
  - A format that was interrupted is made anew by the next run.
options:
  name_dirs: {type: list, elements: path, required: true, description: The NameNode's directories.}
  cluster_id: {type: str, required: true, description: The id of the cluster that they are for.}
  command: {type: list, elements: str, required: true, description: What starts the NameNode; no arguments.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Format the NameNode
  lakehouse_hdfs_format: {name_dirs: [/data/nn], cluster_id: CID-lake, command: [hdfs, namenode]}
"""
RETURN = r""" # """


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "name_dirs": {"type": "list", "elements": "path", "required": True},
            "cluster_id": {"type": "str", "required": True},
            "command": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        apply(module.params, check=module.check_mode)
    except RefusedError as error:
        module.fail_json(**error.result())
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
