#!/usr/bin/python
"""Format a NameNode that was never formatted."""

from __future__ import annotations

import subprocess

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hdfs_storage import inspect

DOCUMENTATION = r"""
module: hdfs_format
short_description: Format the NameNode once
description:
  - Refuses when any of the directories is not empty.
options:
  name_dirs: {type: list, elements: path, required: true, description: The NameNode's directories.}
  argv: {type: list, elements: str, required: true, description: The command that formats.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Format the NameNode
  hdfs_format: {name_dirs: [/data/nn], argv: [...]}
"""
RETURN = r""" # """


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "name_dirs": {"type": "list", "elements": "path", "required": True},
            "argv": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    used = [path for path in module.params["name_dirs"] if inspect(path, name_dir=True).state != "empty"]
    if used:
        module.fail_json(msg=f"not empty, so not formatted: {', '.join(used)}; next: ls -lR {used[0]}")
    if not module.check_mode:
        done = subprocess.run(module.params["argv"], capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()
            module.fail_json(
                msg=f"formatting failed: {lines[-1] if lines else done.returncode}", log=lines[-20:]
            )
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
