#!/usr/bin/python
"""Look at storage directories; refuse those of another cluster."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse.hdfs_storage import check
from ansible.module_utils.lakehouse.refused import RefusedError

DOCUMENTATION = r"""
module: lakehouse_hdfs_storage
short_description: Whether HDFS directories are empty, ours or foreign
description:
  - Reads only. Fails when a directory belongs to another cluster, holds half a format, or was written by a
    newer Hadoop.
options:
  name_dirs: {type: list, elements: path, default: [], description: The NameNode's directories.}
  data_dirs: {type: list, elements: path, default: [], description: The DataNode's directories.}
  cluster_id: {type: str, required: true, description: The cluster's identity.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Look at the DataNode's directories
  lakehouse_hdfs_storage: {data_dirs: [/data/hdfs/datanode], cluster_id: CID-lakehouse}
"""
RETURN = r"""
formatted: {type: bool, returned: always, description: Whether a directory holds data of this cluster.}
"""


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "name_dirs": {"type": "list", "elements": "path", "default": []},
            "data_dirs": {"type": "list", "elements": "path", "default": []},
            "cluster_id": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        formatted = check(**module.params)
    except RefusedError as error:
        module.fail_json(**error.result())
    module.exit_json(changed=False, formatted=formatted)


if __name__ == "__main__":
    main()
