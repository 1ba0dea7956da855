#!/usr/bin/python
"""Files of a local folder in HDFS, through WebHDFS."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse.hdfs_upload import apply
from ansible.module_utils.lakehouse.refused import RefusedError

DOCUMENTATION = r"""
module: lakehouse_hdfs_upload
short_description: Put the files of a folder into HDFS
description:
  - A file that is there with the same length is left alone.
options:
  url: {type: str, required: true, description: The NameNode's web address.}
  user: {type: str, required: true, description: The user who will own the files.}
  source: {type: path, required: true, description: The folder on the host.}
  destination: {type: str, required: true, description: The folder in HDFS.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Land the flights
  lakehouse_hdfs_upload:
    url: http://cpu-node1:9870
    user: spark
    source: /opt/data
    destination: /lakehouse/landing
"""
RETURN = r"""
files: {type: list, returned: always, description: Files that were written.}
"""


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "user": {"type": "str", "required": True},
            "source": {"type": "path", "required": True},
            "destination": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        written = apply(module.params, check=module.check_mode)
    except RefusedError as error:
        module.fail_json(**error.result())
    module.exit_json(changed=bool(written), files=written)


if __name__ == "__main__":
    main()
